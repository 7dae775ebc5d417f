/** When pods were seen to go: the next pod of a StatefulSet has the name of the evicted one. */
import { type Informer, isDeleting, keyOf, type ObjectKey, type Pod } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { evictionSeenWithinMs } from "./pending-evictions.ts";

/** Follows the cache of pods, and remembers for as long as an eviction may wait to be seen. */
export class GonePods {
  readonly #clock: Clock;
  /** In milliseconds since 1970, the earliest first. */
  readonly #goneMs = new Map<ObjectKey, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns a function that ends it */
  follow(pods: Informer<Pod>): () => void {
    return pods.onChange({
      updated: (_before, pod) => {
        if (isDeleting(pod)) this.#note(keyOf(pod));
      },
      deleted: (pod) => this.#note(keyOf(pod)),
    });
  }

  /** When a pod of the key was last seen being deleted, or gone, in milliseconds since 1970. */
  lastGoneMs(key: ObjectKey): number | undefined {
    return this.#goneMs.get(key);
  }

  #note(key: ObjectKey): void {
    const nowMs = this.#clock.now().getTime();
    this.#goneMs.delete(key);
    this.#goneMs.set(key, nowMs);
    for (const [first, ms] of this.#goneMs) {
      if (nowMs - ms < evictionSeenWithinMs) return;
      this.#goneMs.delete(first);
    }
  }
}
