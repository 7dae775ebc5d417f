/**
 * No package reaches into another's `src`, tests included: it imports @longshore/NAME, or another entry of its exports. What
 * the tests of several packages share is in packages/testing.
 */
import { join } from "node:path/posix";
import { importedModules } from "./imported-modules.ts";
import { type Finding, lineAt, type Source } from "./source.ts";

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
    because: "worlds of a package's own tests run with other packages, processes and real Kubernetes, too",
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

/** What a source imports by a relative path, relative to the repository. */
function importedPaths(source: Source): { readonly path: string; readonly offset: number }[] {
  return importedModules(source)
    .filter(({ module }) => module.startsWith("."))
    .map(({ module, offset }) => ({ path: join(source.path, "..", module), offset }));
}
