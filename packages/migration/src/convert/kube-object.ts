/** API objects as they come out of a parser: nothing is known of them. */

/** An object with whatever members it has. */
export interface KubeObject {
  readonly [member: string]: unknown;
}

/** True for an object that is no list and not `null`. */
export function isObject(value: unknown): value is KubeObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at the end of a path of members, or `undefined` where the path breaks off. */
export function member(value: unknown, ...path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

/** The text at the end of a path, or "" where there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const text = member(value, ...path);
  return typeof text === "string" ? text : "";
}

/** `object` with the value at the end of a path replaced; everything outside the path is shared. */
export function withMember(object: KubeObject, path: readonly string[], value: unknown): KubeObject {
  const [name, ...rest] = path;
  if (name === undefined) return object;
  const inner = object[name];
  return {
    ...object,
    [name]: rest.length === 0 ? value : withMember(isObject(inner) ? inner : {}, rest, value),
  };
}

/** Names an object in a message: kind, namespace and name. */
export function nameOf(object: KubeObject): string {
  const namespace = textAt(object, "metadata", "namespace");
  const name = textAt(object, "metadata", "name") || textAt(object, "metadata", "generateName");
  return `${textAt(object, "kind") || "object"} ${JSON.stringify(namespace === "" ? name : `${namespace}/${name}`)}`;
}

/** True for `List` and the lists of single kinds. */
export function isList(object: KubeObject): object is KubeObject & { readonly items: readonly unknown[] } {
  return (
    Array.isArray(object.items) && (object.kind === undefined || textAt(object, "kind").endsWith("List"))
  );
}
