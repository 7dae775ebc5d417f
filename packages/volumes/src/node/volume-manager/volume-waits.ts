/** Who waits for the volumes of a pod. */

/** Wakes those who wait for a change of a pod's volumes. */
export class VolumeWaits {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Something about the pod's volumes may have changed. */
  changed(podUID: string): void {
    const waiting = this.#waiting.get(podUID);
    this.#waiting.delete(podUID);
    for (const resolve of waiting ?? []) resolve();
  }

  /** Resolves at the next change; rejects when `signal` aborts. */
  next(podUID: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const waiting = this.#waiting.get(podUID) ?? new Set();
      this.#waiting.set(podUID, waiting);
      const onAbort = () => {
        waiting.delete(onChange);
        if (waiting.size === 0 && this.#waiting.get(podUID) === waiting) this.#waiting.delete(podUID);
        reject(signal.reason);
      };
      const onChange = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      waiting.add(onChange);
    });
  }
}
