/**
 * A client whose writes pass through one function: for those that watch over writes (what was written last,
 * whether writing is still allowed) without knowing the verbs. Reads go through untouched.
 */
import type { KubeClient } from "./kube-client.ts";
import { type KubeObject, keyOf, type ObjectKey } from "./kube-objects.ts";
import type { Resource } from "./resources.ts";

/** What is about to be written. */
export interface WriteRequest {
  readonly verb: "create" | "update" | "patch" | "delete";
  readonly resource: Resource<KubeObject>;
  /** Key of the object; undefined where the server chooses its name. */
  readonly key: ObjectKey | undefined;
  readonly subresource: string | undefined;
  /** UID that a delete insists on. */
  readonly uid: string | undefined;
}

/** Decides whether the write is sent, with `send`, and returns the answer. */
export type WriteInterceptor = <R>(
  request: WriteRequest,
  signal: AbortSignal,
  send: (signal: AbortSignal) => Promise<R>,
) => Promise<R>;

/** The client with `around` about each of its writes. */
export function interceptWrites(kube: KubeClient, around: WriteInterceptor): KubeClient {
  const write = <R>(
    verb: WriteRequest["verb"],
    resource: Resource<KubeObject>,
    object: KubeObject,
    signal: AbortSignal,
    send: (signal: AbortSignal) => Promise<R>,
    rest: { readonly subresource?: string | undefined; readonly uid?: string | undefined } = {},
  ): Promise<R> => {
    const key = (object.metadata?.name ?? "") === "" ? undefined : keyOf(object);
    const { subresource, uid } = rest;
    return around({ verb, resource, key, subresource, uid }, signal, send);
  };
  return {
    get: (resource, ref, options) => kube.get(resource, ref, options),
    list: (resource, options) => kube.list(resource, options),
    watch: (resource, options) => kube.watch(resource, options),
    servedVersion: (resource, options) => kube.servedVersion(resource, options),
    create: (resource, object, options) =>
      write("create", resource, object, options.signal, (signal) =>
        kube.create(resource, object, { ...options, signal }),
      ),
    update: (resource, object, options) =>
      write("update", resource, object, options.signal, (signal) =>
        kube.update(resource, object, { ...options, signal }),
      ),
    updateStatus: (resource, object, options) =>
      write(
        "update",
        resource,
        object,
        options.signal,
        (signal) => kube.updateStatus(resource, object, { ...options, signal }),
        { subresource: "status" },
      ),
    patch: (resource, ref, patch, options) =>
      write(
        "patch",
        resource,
        { metadata: ref },
        options.signal,
        (signal) => kube.patch(resource, ref, patch, { ...options, signal }),
        { subresource: options.subresource },
      ),
    delete: (resource, ref, options) =>
      write(
        "delete",
        resource,
        { metadata: ref },
        options.signal,
        (signal) => kube.delete(resource, ref, { ...options, signal }),
        { uid: options.uid },
      ),
    createSubresource: (resource, ref, subresource, body, options) =>
      write(
        "create",
        resource,
        { metadata: ref },
        options.signal,
        (signal) => kube.createSubresource(resource, ref, subresource, body, { ...options, signal }),
        { subresource },
      ),
  };
}
