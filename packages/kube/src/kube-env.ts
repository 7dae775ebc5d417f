/** What every component that talks to Kubernetes is given. */
import type { RuntimeEnv } from "@longshore/runtime";
import type { KubeClient } from "./kube-client.ts";
import type { KubeObject, ObjectKey } from "./kube-objects.ts";
import type { Resource } from "./resources.ts";

/** The record of what a controller wrote; a work queue waits for it before each pass. */
export interface OwnWrites {
  /** Whether the caches show everything that was written: then a pass waits for nothing. */
  readonly isAllSeen: boolean;
  /**
   * Resolves once the caches show everything that was written before the call; at once when they do.
   * @throws `StaleCacheError` when they still do not after half a minute
   */
  seen(pass: { readonly signal: AbortSignal }): Promise<void>;
  /**
   * The same for the writes to these objects alone: for work that reads nothing else of what its controller writes.
   * @throws `StaleCacheError` when the caches still do not show them after half a minute
   */
  seenOf(objects: readonly WrittenObject[], pass: { readonly signal: AbortSignal }): Promise<void>;
}

/** An object that a controller may have written. */
export interface WrittenObject {
  readonly resource: Resource<KubeObject>;
  readonly key: ObjectKey;
}

/** The seams of a component that talks to Kubernetes. */
export interface KubeEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  /** What the component wrote, where that is remembered (`trackWrites`): its queues wait until their caches show it. */
  readonly ownWrites?: OwnWrites;
}
