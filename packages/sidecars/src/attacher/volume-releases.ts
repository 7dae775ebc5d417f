/**
 * Which volumes the attacher is taking its finalizer off. An attachment and its volume are keys of two queues: without
 * this memory an attachment that arrives while the removal is under way would find the finalizer in the cache, and be
 * published on a volume that nothing holds any more.
 */
import type { PersistentVolume, Stored } from "@longshore/kube";

type Volume = Stored<PersistentVolume>;

/** Removals by volume, with the version that each was decided on. Bounded by the volumes there are. */
export class VolumeReleases {
  readonly #versions = new Map<string, string>();

  /** The removal is about to be sent. */
  begin({ metadata: { name, resourceVersion } }: Volume): void {
    this.#versions.set(name, resourceVersion);
  }

  /** The removal has failed, or the volume is gone. Own-writes tracking resolves a result that is uncertain. */
  forget(name: string): void {
    this.#versions.delete(name);
  }

  /** Whether what the cache shows is the volume from before its removal. */
  isReleased({ metadata: { name, resourceVersion } }: Volume): boolean {
    return this.#versions.has(name) && this.#versions.get(name) === resourceVersion;
  }
}
