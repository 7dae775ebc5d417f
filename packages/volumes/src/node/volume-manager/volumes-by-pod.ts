/** Which volumes each pod has an entry in, so that no question about one pod reads all volumes. */
import type { UniqueVolumeName } from "../../framework/unique-volume-name.ts";

/** An index from pod UIDs to unique volume names. */
export class VolumesByPod {
  readonly #names = new Map<string, Set<UniqueVolumeName>>();

  /** Adds the pair; one that is there already stays. */
  add(podUID: string, uniqueName: UniqueVolumeName): void {
    const names = this.#names.get(podUID);
    if (names === undefined) this.#names.set(podUID, new Set([uniqueName]));
    else names.add(uniqueName);
  }

  /** Removes the pair, and the pod with its last volume. */
  delete(podUID: string, uniqueName: UniqueVolumeName): void {
    const names = this.#names.get(podUID);
    names?.delete(uniqueName);
    if (names?.size === 0) this.#names.delete(podUID);
  }

  /** True when the pod has at least one volume. */
  has(podUID: string): boolean {
    return this.#names.has(podUID);
  }

  /** The volumes of the pod. */
  namesOf(podUID: string): readonly UniqueVolumeName[] {
    return [...(this.#names.get(podUID) ?? [])];
  }

  /** Every pod that has a volume. */
  podUIDs(): readonly string[] {
    return [...this.#names.keys()];
  }
}
