/** Everything that a package exports says in a doc comment what it is: functions, classes, types and constants. */
import { dirname, join } from "node:path/posix";
import { type Finding, isNode, lineAt, type Node, type Source } from "./source.ts";

interface Declaration {
  readonly source: Source;
  readonly statement: Node;
}

/** Undocumented exports reachable from a package's root. `load` returns a file by its path, if it is one of ours. */
export function undocumentedExports(rootPath: string, load: (path: string) => Source | undefined): Finding[] {
  const findings: Finding[] = [];
  for (const [name, { source, statement }] of exportsOf(rootPath, load, new Set())) {
    if (!hasDocs(source, statement)) {
      const line = lineAt(source, statement.start);
      findings.push({ path: source.path, line, message: `${name} is exported without a doc comment` });
    }
  }
  return findings;
}

function exportsOf(
  path: string,
  load: (path: string) => Source | undefined,
  seen: Set<string>,
): Map<string, Declaration> {
  const exported = new Map<string, Declaration>();
  const source = seen.has(path) ? undefined : load(path);
  if (source === undefined) return exported;
  seen.add(path);
  const local = new Map<string, Declaration>();
  for (const statement of source.program.body as Node[]) {
    const declaration = isNode(statement.declaration) ? statement.declaration : statement;
    for (const name of declaredBy(declaration)) {
      // The first of several overloads carries the docs.
      const known = { source, statement };
      if (!local.has(name)) local.set(name, known);
      if (statement !== declaration && !exported.has(name)) exported.set(name, known);
    }
  }
  for (const statement of source.program.body as Node[]) {
    if (!/^Export(Named|All)Declaration$/.test(statement.type)) continue;
    const from = isNode(statement.source) ? String(statement.source.value) : undefined;
    const there =
      from === undefined
        ? local
        : from.startsWith(".")
          ? exportsOf(join(dirname(path), from), load, new Set(seen))
          : new Map<string, Declaration>();
    if (statement.type === "ExportAllDeclaration") {
      for (const [name, declaration] of there) exported.set(name, declaration);
    }
    for (const specifier of (statement.specifiers ?? []) as Node[]) {
      const declaration = there.get(String((specifier.local as Node).name));
      if (declaration !== undefined) exported.set(String((specifier.exported as Node).name), declaration);
    }
  }
  return exported;
}

function declaredBy(node: Node): string[] {
  if (node.type === "VariableDeclaration") {
    return (node.declarations as Node[]).map(({ id }) => String((id as Node).name));
  }
  if (!/^(TSDeclareFunction|(Function|Class|TSInterface|TSTypeAlias)Declaration)$/.test(node.type)) return [];
  return isNode(node.id) ? [String(node.id.name)] : [];
}

function hasDocs(source: Source, statement: Node): boolean {
  return source.comments.some(
    ({ type, value, end }) =>
      type === "Block" &&
      value.startsWith("*") &&
      // The text between the two of a comment further down is empty: it must not count.
      end <= statement.start &&
      /^\s*(\/\/[^\n]*\n\s*)*$/.test(source.text.slice(end, statement.start)),
  );
}
