/**
 * Kubernetes objects are plain JSON, typed by the API's own schema. An object that a client or a
 * cache hands out is shared and may be frozen: readers never change it, writers copy what they change.
 */
import type { Pod } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";

/** The least that every object has. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** An object as the API server returns it: name, UID and resource version are set. */
export type Stored<T extends KubeObject = KubeObject> = T & {
  readonly metadata: ObjectMeta & {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
};

/** Names an object; `namespace` is left out for a cluster-scoped kind. */
export interface ObjectRef {
  readonly name: string;
  readonly namespace?: string;
}

/** `name` or `namespace/name`, the key of caches and queues. */
export type ObjectKey = string;

/** The key of an object. */
export function keyOf(object: KubeObject): ObjectKey {
  const { name = "", namespace } = object.metadata ?? {};
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}

/** The reference of an object. */
export function refOf(object: KubeObject): ObjectRef {
  return refOfKey(keyOf(object));
}

/** The reference that a key stands for. */
export function refOfKey(key: ObjectKey): ObjectRef {
  const slash = key.indexOf("/");
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** True while the object exists but its deletion has been requested. */
export function isDeleting(object: KubeObject): boolean {
  return object.metadata?.deletionTimestamp !== undefined;
}

/**
 * True when all containers of a pod have ended for good: its phase is Succeeded or Failed. Source: kubernetes
 * pkg/api/v1/pod/util.go IsPodTerminal.
 */
export function isPodTerminal(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}
