/**
 * A member that can be called is called somewhere: methods, accessors and functions of interfaces and classes whose name no file
 * reads. knip sees exports, and the compiler what is private; neither sees these.
 *
 * Only the name is compared, so what is found is dead, while a dead member whose name another one has is not found. Members
 * that hold data are left out: what is written only to be serialized is read by the readers of the text.
 */
import { type Finding, isNode, lineAt, type Node, type Source, walk } from "./source.ts";

/** Called by the language, by Node's streams and by undici, wherever an object has them. */
const calledByOthers = [
  ..."constructor toString toJSON valueOf then next return throw".split(" "),
  ..."_read _write _final _destroy _transform _flush".split(" "),
  ..."onRequestStart onResponseStart onResponseData onResponseEnd onResponseError".split(" "),
];

/** A member that a file declares. */
interface Member {
  readonly name: string;
  readonly source: Source;
  readonly node: Node;
}

/** The callable members that `sources` declare and none of `readers` reads; the former are to be among the latter. */
export function deadMembers(sources: readonly Source[], readers: readonly Source[]): Finding[] {
  const read = new Set(calledByOthers);
  for (const reader of readers) for (const name of namesRead(reader)) read.add(name);
  return sources.flatMap((source) =>
    callableMembers(source)
      .filter(({ name }) => !read.has(name))
      .map(({ name, node }) => ({
        path: source.path,
        line: lineAt(source, node.start),
        message: `${name} is a member that nothing calls: remove it`,
      })),
  );
}

function callableMembers(source: Source): readonly Member[] {
  const members: Member[] = [];
  walk(source.program, (node, parent) => {
    const isMember = /^(TSMethodSignature|MethodDefinition|TSAbstractMethodDefinition)$/.test(node.type);
    if (!isMember && !isFunctionProperty(node)) return;
    // A type without a name describes what belongs to something else.
    if (parent?.type === "TSTypeLiteral" || node.computed === true || !isNode(node.key)) return;
    if (node.key.type === "Identifier") members.push({ name: String(node.key.name), source, node });
  });
  return members;
}

function isFunctionProperty(node: Node): boolean {
  if (node.type !== "TSPropertySignature" || !isNode(node.typeAnnotation)) return false;
  return (
    isNode(node.typeAnnotation.typeAnnotation) && node.typeAnnotation.typeAnnotation.type === "TSFunctionType"
  );
}

/** The names of members that a file reads: by a dot, by taking an object apart, by a text. */
function namesRead(source: Source): ReadonlySet<string> {
  const names = new Set<string>();
  walk(source.program, (node, parent, key) => {
    if (node.type === "Literal" && typeof node.value === "string") names.add(node.value);
    if (node.type !== "Identifier") return;
    if (parent?.type === "MemberExpression" && key === "property") names.add(String(node.name));
    if (parent?.type === "Property" && key === "key" && parent.isPattern === true)
      names.add(String(node.name));
  });
  walk(source.program, (node) => {
    if (node.type !== "ObjectPattern") return;
    for (const property of (node.properties ?? []) as Node[]) {
      if (isNode(property.key) && property.key.type === "Identifier") names.add(String(property.key.name));
    }
  });
  return names;
}
