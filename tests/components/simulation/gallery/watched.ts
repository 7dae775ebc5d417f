/** The sources with the conditions of mutants watched: what never holds in a world, no mutant of it changes. */
import { readFileSync } from "node:fs";
import type { Changes } from "./changed-program.ts";
import { type Mutant, repository } from "./mutant.ts";

/** The global function that the sources call with the name of a mutant and whether its condition holds. */
export const watchedBy = "longshoreGalleryHolds";

/** The sources of the files, in which the conditions of those mutants are watched that have one. */
export function watchedSources(mutants: readonly Mutant[]): Changes {
  const watched = mutants.filter(({ condition }) => condition !== undefined);
  const files = [...new Set(watched.map(({ file }) => file))];
  return new Map(
    files.map((file) => [
      file,
      watchedSource(
        file,
        watched.filter((each) => each.file === file),
      ),
    ]),
  );
}

function watchedSource(file: string, mutants: readonly Mutant[]): string {
  const source = readFileSync(`${repository}${file}`, "utf8");
  const places = mutants.map(({ name, find, condition = "" }) => {
    const at = source.indexOf(find) + find.indexOf(`if (${condition})`) + "if (".length;
    return { name, from: at, to: at + condition.length };
  });
  // From the end, so that a change does not shift those that follow.
  return places
    .sort((a, b) => b.from - a.from)
    .reduce((text, { name, from, to }) => {
      const call = `globalThis.${watchedBy}(${JSON.stringify(name)}, ${text.slice(from, to)})`;
      return text.slice(0, from) + call + text.slice(to);
    }, source);
}
