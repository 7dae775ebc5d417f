/** Do the source maps of built packages lead to sources? */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** A map as far as it is looked at (ECMA-426). */
interface SourceMap {
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
}

/**
 * What is wrong with the maps that the `.js` and `.d.ts` files below `directory` name, one line each: a map that is not there, or a
 * source that is neither in the map nor beside it. Dependencies below a `node_modules` are passed by.
 * @throws Error when no file names a map
 */
export function brokenSourceMaps(directory: string): string[] {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const broken: string[] = [];
  let maps = 0;
  for (const path of paths.filter((candidate) => /\.(js|d\.ts)$/.test(candidate))) {
    if (path.includes("node_modules")) continue;
    const file = join(directory, path);
    const map = /^\/\/# sourceMappingURL=(\S+)\s*$/m.exec(readFileSync(file, "utf8"))?.[1];
    if (map === undefined) continue;
    maps += 1;
    broken.push(
      ...brokenSources(join(dirname(file), map)).map((problem) => `${relative(directory, file)}: ${problem}`),
    );
  }
  if (maps === 0) throw new Error(`no file in ${directory} names a source map`);
  return broken;
}

function brokenSources(path: string): string[] {
  if (!existsSync(path)) return [`its source map ${path} is not there`];
  const { sources, sourcesContent = [] } = JSON.parse(readFileSync(path, "utf8")) as SourceMap;
  return sources
    .filter((source, i) => typeof sourcesContent[i] !== "string" && !existsSync(join(dirname(path), source)))
    .map((source) => `its source map has no text of ${source}`);
}
