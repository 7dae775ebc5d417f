/** Waits for the volumes of pods, which end early when a pod is not wanted any more. */
import type { Pod, Stored } from "@longshore/kube";
import { StoppedError, withAnyOf } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";

const mountWaitMs = 20_000;

/** The waits under way, by UID of the pod. */
export class VolumeWaits {
  readonly #volumes: Pick<NodeVolumes, "waitForAttachAndMount">;
  readonly #waits = new Map<string, AbortController>();

  constructor(volumes: Pick<NodeVolumes, "waitForAttachAndMount">) {
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
   * @throws what the volume manager reports; after 20 seconds which volumes are still missing
   */
  async mounted(pod: Stored<Pod>, signal: AbortSignal): Promise<boolean> {
    const wait = new AbortController();
    this.#waits.set(pod.metadata.uid, wait);
    try {
      await withAnyOf([signal, wait.signal], (either) =>
        this.#volumes.waitForAttachAndMount(pod, either, mountWaitMs),
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
