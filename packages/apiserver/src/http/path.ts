/** What a path means: discovery, or a resource of a group and version. */

/** A resource that a path names. */
export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
  /** The path of the old watch API: `/watch/` before the resource. */
  readonly watch?: boolean;
}

/** The resource that `path` names; undefined when it is none of `/api/VERSION/…` or `/apis/GROUP/VERSION/…`. */
export function resourcePath(path: string): ResourcePath | undefined {
  const parts = path.split("/").filter((part, i, all) => !(part === "" && (i === 0 || i === all.length - 1)));
  const decoded = parts.map(decode);
  const [root, ...rest] = decoded;
  if (root === "api" && rest.length >= 2) return inVersion("", rest[0] as string, rest.slice(1));
  if (root === "apis" && rest.length >= 3)
    return inVersion(rest[0] as string, rest[1] as string, rest.slice(2));
  return undefined;
}

function decode(part: string): string {
  if (!part.includes("%")) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function inVersion(group: string, version: string, given: readonly string[]): ResourcePath {
  const watch = given[0] === "watch" && given.length > 1;
  const parts = watch ? given.slice(1) : given;
  const base = { group, version, ...(watch ? { watch } : {}) };
  // `namespaces/NAME`, its sub-resources, and everything that lives in one.
  if (parts[0] === "namespaces" && parts.length > 2 && !isNamespaceSubresource(parts[2] as string)) {
    return { ...base, namespace: parts[1] as string, ...target(parts.slice(2)) };
  }
  return { ...base, ...target(parts) };
}

function isNamespaceSubresource(part: string): boolean {
  return part === "status" || part === "finalize";
}

function target(parts: readonly string[]) {
  const [resource = "", name, ...subresource] = parts;
  return {
    resource,
    ...(name === undefined ? {} : { name }),
    ...(subresource.length === 0 ? {} : { subresource: subresource.join("/") }),
  };
}
