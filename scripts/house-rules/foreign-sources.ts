/**
 * No package reaches into another's `src`, tests included: it imports @longshore/NAME, or another entry of its exports. What
 * the tests of several packages share is in packages/testing.
 */
import { join } from "node:path/posix";
import { type Finding, isNode, lineAt, type Source, walk } from "./source.ts";

/** Folders beside the packages that reach into their sources on purpose. */
export interface KnownReach {
  /** Ends with a slash, relative to the repository. */
  readonly folder: string;
  readonly because: string;
}

/** See {@link KnownReach}. */
export const knownReaches: readonly KnownReach[] = [
  { folder: "bench/", because: "a benchmark measures an inner part" },
  { folder: "scripts/", because: "vectors, flags and fuzzing come from inner tables" },
  {
    folder: "tests/",
    because: "worlds of a package's own tests run against processes and real Kubernetes, too",
  },
];

/** The imports in one source of files of another package; the reaches that permit one are added to `used`. */
export function foreignSources(
  source: Source,
  known: readonly KnownReach[],
  used: Set<KnownReach> = new Set(),
): Finding[] {
  return importedPaths(source).flatMap(({ path, offset }): Finding[] => {
    const name = /^packages\/([^/]+)\/src\//.exec(path)?.[1];
    if (name === undefined || source.path.startsWith(`packages/${name}/`)) return [];
    const reach = known.find(({ folder }) => source.path.startsWith(folder));
    if (reach !== undefined) {
      used.add(reach);
      return [];
    }
    const message = `${path} is a file of another package; import @longshore/${name}, or share it through packages/testing`;
    return [{ path: source.path, line: lineAt(source, offset), message }];
  });
}

/** What a source imports by a relative path, types included, relative to the repository. */
function importedPaths(source: Source): { readonly path: string; readonly offset: number }[] {
  const found: { path: string; offset: number }[] = [];
  walk(source.program, (node) => {
    if (!/^(?:TSImportType|Import(?:Declaration|Expression)|Export(?:Named|All)Declaration)$/.test(node.type))
      return;
    const module = isNode(node.source) ? String(node.source.value) : "";
    if (module.startsWith(".")) found.push({ path: join(source.path, "..", module), offset: node.start });
  });
  return found;
}
