/** How often the containers of a node's pods were restarted, and how long each pauses before the next start. */
import type { Pod, Stored } from "@longshore/kube";
import { backoffMs, type Clock } from "@longshore/runtime";

const restartBackoff = { initialMs: 1000, maximumMs: 60_000 };

interface Restarts {
  readonly count: number;
  /** Monotonic time before which the container is not started again, in milliseconds. */
  readonly notBeforeMs: number;
}

/** Counts restarts by UID of the pod. An agent that was itself restarted goes on counting from the pod's status. */
export class ContainerRestarts {
  readonly #clock: Clock;
  readonly #byPod = new Map<string, Restarts>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The restarts so far. */
  count(pod: Stored<Pod>): number {
    const counted = this.#byPod.get(pod.metadata.uid)?.count;
    return counted ?? pod.status?.containerStatuses?.[0]?.restartCount ?? 0;
  }

  /** Whether this agent has restarted the container. */
  has(podUID: string): boolean {
    return this.#byPod.has(podUID);
  }

  /** Time until the container may be started, in milliseconds; not positive: now. */
  pauseMs(podUID: string): number {
    return (this.#byPod.get(podUID)?.notBeforeMs ?? 0) - this.#clock.monotonicMs();
  }

  /** The container has ended and is to be started again: counts it, and begins the pause. */
  add(pod: Stored<Pod>): void {
    const count = this.count(pod) + 1;
    const notBeforeMs = this.#clock.monotonicMs() + backoffMs(restartBackoff, count);
    this.#byPod.set(pod.metadata.uid, { count, notBeforeMs });
  }

  forget(podUID: string): void {
    this.#byPod.delete(podUID);
  }
}
