/** Only what a dependency offers is imported: its root, or a path that its `exports` name. Other files may go with any version. */
import { type Finding, isNode, lineAt, type Source, walk } from "./source.ts";

/** The `exports` of a package's manifest; undefined: it has none, and all but the root is private. */
export type ExportsOf = (packageName: string) => Readonly<Record<string, unknown>> | undefined;

/** The imports of private files in one source. */
export function privateImports(source: Source, exportsOf: ExportsOf): Finding[] {
  return importedModules(source).flatMap(({ module, offset }): Finding[] => {
    const [packageName, path] = takenApart(module);
    if (path === undefined || packageName.startsWith("@longshore/")) return [];
    const paths = Object.keys(exportsOf(packageName) ?? {});
    if (paths.some((pattern) => matches(pattern, `./${path}`))) return [];
    const message = `${module} is a private file of ${packageName}; import its root, or a path that its exports name`;
    return [{ path: source.path, line: lineAt(source, offset), message }];
  });
}

function importedModules(source: Source): { readonly module: string; readonly offset: number }[] {
  const found: { module: string; offset: number }[] = [];
  walk(source.program, (node) => {
    if (!/^(?:Import(?:Declaration|Expression)|Export(?:Named|All)Declaration)$/.test(node.type)) return;
    // The compiler sees when a file of types has moved.
    if (node.importKind === "type" || node.exportKind === "type") return;
    if (isNode(node.source)) found.push({ module: String(node.source.value), offset: node.start });
  });
  return found;
}

/** A package and the path in it; no path for a root, for modules of Node and for files of our own. */
function takenApart(module: string): readonly [packageName: string, path?: string] {
  if (/^(?:\.|\/|node:)/.test(module)) return [module];
  const parts = module.split("/");
  const length = module.startsWith("@") ? 2 : 1;
  const packageName = parts.slice(0, length).join("/");
  return parts.length === length ? [packageName] : [packageName, parts.slice(length).join("/")];
}

function matches(pattern: string, path: string): boolean {
  const [before, after] = pattern.split("*");
  if (after === undefined) return pattern === path;
  return path.startsWith(before as string) && path.endsWith(after) && path.length >= pattern.length;
}
