/** Mutants: one change of our sources each, kept as data and never written to disk. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The repository's directory, with a slash at its end. */
export const repository = fileURLToPath(new URL("../../../../", import.meta.url));

/** Tests of a scenario: a file, and a part of the full names of those that run; all of them where there is none. */
export interface Scenario {
  readonly file: string;
  readonly test?: string;
}

/** One mutant. */
export interface Mutant {
  /** Unique; lower case with hyphens. */
  readonly name: string;
  /** The source that it changes, from the repository's root. */
  readonly file: string;
  /** Occurs exactly once in the source. */
  readonly find: string;
  readonly replace: string;
  /** Where the mutant is that this condition in `find` never holds: it changes nothing unless that holds. */
  readonly condition?: string;
  /** What the program does wrong with it. */
  readonly story: string;
  readonly caughtBy: Scenario;
}

/** One that brings a bug back that upstream has had. */
export interface UpstreamMutant extends Mutant {
  /** The issue, e.g. `kubernetes#79043`; `docs/gallery.md` has its story. */
  readonly upstream: string;
  /** The rule of docs/contract.md that it breaks. */
  readonly rule: "C1" | "C2" | "C3" | "C4" | "C5" | "C6" | "C7" | "C8";
}

/**
 * The source with the change in it.
 * @throws Error where the text to change is not there exactly once
 */
export function changedSource({ name, file, find, replace }: Mutant): string {
  const source = readFileSync(`${repository}${file}`, "utf8");
  const parts = source.split(find);
  if (parts.length !== 2) {
    throw new Error(
      `mutant ${name}: its \`find\` occurs ${parts.length - 1} times in ${file}, not once; make it fit the source again`,
    );
  }
  return parts.join(replace);
}

/** The changed source by its file; none without a mutant. */
export function changesOf(mutant: Mutant | undefined): ReadonlyMap<string, string> {
  return new Map(mutant === undefined ? [] : [[mutant.file, changedSource(mutant)]]);
}

/** A mutant in which one condition of a decision never holds; `condition` is that in the `find` text. */
export function never(mutant: Omit<Mutant, "replace" | "story"> & { readonly condition: string }): Mutant {
  const { find, condition } = mutant;
  const replace = find.replace(`if (${condition})`, () => "if (false)");
  return { ...mutant, replace, story: `acts as if \`${condition}\` never held` };
}
