/**
 * A package is tested alone: a test of it imports the package itself and those it depends on, also where it imports them through
 * packages/testing or scripts. A test that needs another package is in tests/components.
 */
import { importedModules } from "./imported-modules.ts";
import { type Finding, lineAt, type Source } from "./source.ts";

/** A package that tests of another need, although that one does not depend on it. */
export interface KnownDependency {
  readonly tested: string;
  readonly needs: string;
  readonly because: string;
}

const server = "the embedded API server, which is on a floor below, is the world of its tests";

/** See {@link KnownDependency}. The packages of the lower floors (runtime, translation, kube, csi, storage) have none. */
export const knownDependencies: readonly KnownDependency[] = [
  { tested: "volumes", needs: "apiserver", because: server },
  { tested: "sidecars", needs: "apiserver", because: server },
  { tested: "deployment", needs: "apiserver", because: server },
  { tested: "dashboard", needs: "apiserver", because: server },
  {
    tested: "reference-driver",
    needs: "conformance",
    because: "the conformance suite, which is on a floor below, is its contract",
  },
];

/** What the rule asks about the repository. */
export interface Repository {
  /** The source that an import in the file `from` names; undefined for libraries. */
  resolve(from: string, module: string): Source | undefined;
  /** The packages that a package depends on, also through others. */
  dependencies(name: string): ReadonlySet<string>;
}

/** The imports in one test of packages that it may not need; the needs that permit one are added to `used`. */
export function testDependencies(
  source: Source,
  repository: Repository,
  known: readonly KnownDependency[],
  used: Set<KnownDependency> = new Set(),
): Finding[] {
  const tested = packageOf(source.path);
  if (tested === undefined || tested === "testing" || !isTest(source.path)) return [];
  const below = repository.dependencies(tested);
  return importedModules(source).flatMap(({ module, offset }) =>
    [...reached(source.path, module, repository)].flatMap(([name, by]): Finding[] => {
      if (name === tested || below.has(name)) return [];
      const need = known.find((candidate) => candidate.tested === tested && candidate.needs === name);
      if (need !== undefined) {
        used.add(need);
        return [];
      }
      const through = by === source.path ? "" : ` (through ${by})`;
      const reason = `a test of ${tested} needs ${name}${through}, on which ${tested} does not depend`;
      const message = `${reason}; move it to tests/components/${tested}`;
      return [{ path: source.path, line: lineAt(source, offset), message }];
    }),
  );
}

/** The packages that an import reaches, each with the file that imports it. Goes on in files that are of no package, and in testing. */
function reached(from: string, module: string, repository: Repository): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const seen = new Set<string>();
  const imports = [{ from, module }];
  for (let next = imports.pop(); next !== undefined; next = imports.pop()) {
    const target = repository.resolve(next.from, next.module);
    if (target === undefined || seen.has(target.path)) continue;
    seen.add(target.path);
    const name = packageOf(target.path);
    if (name === undefined || name === "testing") {
      imports.push(...importedModules(target).map((each) => ({ from: target.path, module: each.module })));
    } else if (!found.has(name)) found.set(name, next.from);
  }
  return found;
}

function packageOf(path: string): string | undefined {
  return /^packages\/([^/]+)\/src\//.exec(path)?.[1];
}

function isTest(path: string): boolean {
  return /\.(test|contract|bench)\.ts$|\/testing\//.test(path);
}
