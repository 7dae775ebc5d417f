/** Where the objects of a resource are served (Kubernetes API concepts, "Resource URIs"). */
import type { ListOptions, WatchOptions } from "../kube-client.ts";
import type { KubeObject, ObjectRef } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";

/** `/api/v1` or `/apis/GROUP/VERSION`. */
export function groupVersionPath(group: string, version: string): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** The collection, of one namespace or of all. */
export function collectionPath(
  resource: Resource<KubeObject>,
  version: string,
  namespace: string | undefined,
): string {
  const root = groupVersionPath(resource.group, version);
  const within =
    resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${within}/${resource.plural}`;
}

/**
 * One object, or a sub-resource of it.
 * @throws TypeError for a namespaced kind without a namespace, or without a name
 */
export function objectPath(
  resource: Resource<KubeObject>,
  version: string,
  ref: ObjectRef,
  subresource?: string,
): string {
  if (ref.name === "") throw new TypeError(`${resource.kind}: metadata.name is empty`);
  requireNamespace(resource, ref.namespace);
  const path = `${collectionPath(resource, version, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** @throws TypeError for a namespaced kind without a namespace */
export function requireNamespace(resource: Resource<KubeObject>, namespace: string | undefined): void {
  if (resource.namespaced && (namespace === undefined || namespace === "")) {
    throw new TypeError(`${resource.kind}: metadata.namespace is missing, and the kind is namespaced`);
  }
}

/** The query of a list, with its question mark; empty when there is none. */
export function listQuery(options: Omit<ListOptions, "signal">): string {
  return query({
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit?.toString(),
    continue: options.continue,
    resourceVersion: options.resourceVersion,
  });
}

/** The query of a watch; bookmarks are always requested. */
export function watchQuery(options: Omit<WatchOptions, "signal">): string {
  return query({
    watch: "1",
    allowWatchBookmarks: "true",
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    resourceVersion: options.resourceVersion,
    sendInitialEvents: options.sendInitialEvents === true ? "true" : undefined,
    resourceVersionMatch: options.sendInitialEvents === true ? "NotOlderThan" : undefined,
    timeoutSeconds: options.timeoutSeconds?.toString(),
  });
}

/** A query with the parameters that are set. */
export function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const set: [string, string][] = [];
  for (const name in parameters) {
    const value = parameters[name];
    if (value !== undefined) set.push([name, value]);
  }
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
}
