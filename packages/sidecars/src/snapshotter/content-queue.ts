/** A queue over the contents of one kind: what wakes them, and how often they are looked at again. */
import {
  type Informer,
  type KubeEnv,
  type KubeObject,
  type QueueEnv,
  type Reconcile,
  startWorkQueue,
} from "@longshore/kube";
import type { BackoffPolicy } from "@longshore/runtime";
import { resync } from "../common/caches.ts";
import type { SidecarScope } from "../common/sidecar.ts";
import { shouldEnqueueContent } from "./content-triggers.ts";

/** How the queue works. */
export interface ContentQueueOptions {
  readonly name: string;
  readonly workers: number;
  readonly backoff: BackoffPolicy;
  /** Every content is looked at again after this time, in milliseconds. */
  readonly resyncMs: number;
  /** The snapshotter's own annotation on these contents; a change of it does not queue them. */
  readonly ownAnnotation: string;
  /** What is remembered of each content, by name; forgotten with it. */
  readonly polls: Map<string, number>;
  readonly reconcile: Reconcile;
}

/** Runs `reconcile` for the contents of a cache until `scope` is stopped. */
export function serveContentQueue<C extends KubeObject & { spec: object }>(
  env: KubeEnv & QueueEnv,
  contents: Informer<C>,
  options: ContentQueueOptions,
  scope: SidecarScope,
): void {
  const { name, workers, backoff, reconcile, ownAnnotation, polls } = options;
  const queue = startWorkQueue(env, { name, workers, backoff, reconcile });
  scope.own(queue);
  resync(env, scope, contents, options.resyncMs, ({ metadata }) => queue.add(metadata.name, "background"));
  scope.onStop(
    contents.onChange({
      added: ({ metadata }, { initial }) => queue.add(metadata.name, initial ? "background" : "fresh"),
      updated: (before, after) => {
        if (shouldEnqueueContent(before, after, ownAnnotation)) queue.add(after.metadata.name);
      },
      deleted: ({ metadata }) => {
        polls.delete(metadata.name);
        queue.forget(metadata.name);
      },
    }),
  );
}
