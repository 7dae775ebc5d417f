/**
 * Within a package, folders have an order as packages have: of two parts of one folder (its files, and its subfolders each as a
 * whole) that need each other, directly or through others, neither can be read first. Imports of types count.
 */
import { posix } from "node:path";
import { type Finding, isNode, lineAt, type Source, walk } from "./source.ts";

/** An import of a file of the same package. */
interface Import {
  readonly source: Source;
  readonly offset: number;
  /** The file that is imported, relative to the repository. */
  readonly imported: string;
}

/** The imports among the parts of one folder, each with the first import that says so. */
type Parts = Map<string, Map<string, Import>>;

/**
 * Every circle of folders, each with the imports that it consists of; the finding is at the first of these. Circles of files
 * alone are dependency-cruiser's to find.
 */
export function folderCircles(sources: Iterable<Source>): Finding[] {
  return [...partsOfFolders(sources)].flatMap(([folder, parts]) =>
    circlesOf(parts).map((circle) => findingOf(folder, circle, parts)),
  );
}

/** For each folder, the imports between its parts. */
function partsOfFolders(sources: Iterable<Source>): ReadonlyMap<string, Parts> {
  const folders = new Map<string, Parts>();
  for (const source of sources) {
    for (const each of importsOf(source)) {
      const { folder, from, to } = separated(source.path, each.imported);
      const parts = entryOf(folders, folder, () => new Map());
      const imports = entryOf(parts, from, () => new Map<string, Import>());
      if (!imports.has(to)) imports.set(to, each);
    }
  }
  return folders;
}

function importsOf(source: Source): Import[] {
  const found: Import[] = [];
  walk(source.program, (node) => {
    if (!/^(?:Import(?:Declaration|Expression)|TSImportType|Export(?:Named|All)Declaration)$/.test(node.type))
      return;
    const module = isNode(node.source) ? String(node.source.value) : "";
    if (!/^\.\.?\//.test(module)) return;
    const imported = posix.join(posix.dirname(source.path), module);
    if (imported !== source.path) found.push({ source, offset: node.start, imported });
  });
  return found;
}

/** The deepest folder that holds both files, and its parts in which they are. */
function separated(fromPath: string, toPath: string) {
  const [from, to] = [fromPath.split("/"), toPath.split("/")];
  let depth = 0;
  while (from[depth] === to[depth]) depth++;
  const part = (path: readonly string[]) => `${path[depth]}${path.length > depth + 1 ? "/" : ""}`;
  return { folder: from.slice(0, depth).join("/"), from: part(from), to: part(to) };
}

/** The shortest circle through each import of a part, each circle once, as far as a folder is in it. */
function circlesOf(parts: Parts): readonly (readonly string[])[] {
  const circles = new Map<string, readonly string[]>();
  for (const [from, imports] of parts) {
    for (const to of imports.keys()) {
      const way = shortestWay(parts, to, from);
      if (way?.some((part) => part.endsWith("/")) !== true) continue;
      const key = [...way].sort().join(" ");
      if (!circles.has(key)) circles.set(key, way);
    }
  }
  return [...circles.values()];
}

/** The parts from `start` to `end`, both included, each of which imports the next; undefined when there is no such way. */
function shortestWay(parts: Parts, start: string, end: string): readonly string[] | undefined {
  const before = new Map<string, string | undefined>([[start, undefined]]);
  // Parts that are added meanwhile are gone through, too.
  for (const at of before.keys()) {
    if (at === end) return wayTo(at, before);
    for (const next of parts.get(at)?.keys() ?? []) if (!before.has(next)) before.set(next, at);
  }
  return undefined;
}

function wayTo(end: string, before: ReadonlyMap<string, string | undefined>): readonly string[] {
  const way: string[] = [];
  for (let at: string | undefined = end; at !== undefined; at = before.get(at)) way.unshift(at);
  return way;
}

function findingOf(folder: string, circle: readonly string[], parts: Parts): Finding {
  const imports = circle.map(
    (part, i) => parts.get(part)?.get(circle[(i + 1) % circle.length] ?? "") as Import,
  );
  const { source, offset } = imports[0] as Import;
  const shown = imports.map(
    (each) => `${each.source.path}:${lineAt(each.source, each.offset)} imports ${each.imported}`,
  );
  const message = `${circle.join(", ")} of ${folder} import each other in a circle: ${shown.join("; ")}`;
  return { path: source.path, line: lineAt(source, offset), message };
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const there = map.get(key) ?? make();
  map.set(key, there);
  return there;
}
