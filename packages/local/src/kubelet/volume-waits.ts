/** Waits for the volumes of pods, which end early when a pod is not wanted any more. */
import type { Pod, Stored } from "@longshore/kube";
import { type Clock, StoppedError, withAnyOf, withDeadline } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";

const mountWaitMs = 20_000;

/** The waits under way, by UID of the pod. */
export class VolumeWaits {
  readonly #clock: Clock;
  readonly #volumes: Pick<NodeVolumes, "waitForAttachAndMount">;
  readonly #waits = new Map<string, AbortController>();

  constructor(clock: Clock, volumes: Pick<NodeVolumes, "waitForAttachAndMount">) {
    this.#clock = clock;
    this.#volumes = volumes;
  }

  /** Ends the wait for the pod's volumes, if there is one. */
  interrupt(podUID: string): void {
    this.#waits.get(podUID)?.abort(new StoppedError());
  }

  /**
   * Waits until the pod's volumes are mounted.
   *
   * @returns false when it was interrupted
   * @throws what the volume manager reports; DeadlineError after 20 seconds
   */
  async mounted(pod: Stored<Pod>, signal: AbortSignal): Promise<boolean> {
    const wait = new AbortController();
    this.#waits.set(pod.metadata.uid, wait);
    try {
      await withAnyOf([signal, wait.signal], (either) =>
        withDeadline(this.#clock, mountWaitMs, either, (within) =>
          this.#volumes.waitForAttachAndMount(pod, within),
        ),
      );
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (wait.signal.aborted) return false;
      throw error;
    } finally {
      this.#waits.delete(pod.metadata.uid);
    }
  }
}
