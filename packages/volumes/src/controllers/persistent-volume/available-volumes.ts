/**
 * The volumes that no claim has, in the order in which claims want them: by class, those with the fewest access modes
 * first, then the smallest. Source: docs/behaviour/controllers.md B3.
 *
 * Invariants
 *  - It holds exactly the volumes of the cache that are Available, have no claimRef and are not being deleted.
 *  - A claim finds its candidates by binary search; a change of a volume moves that volume alone.
 */
import {
  type Informer,
  isDeleting,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Quantity,
  type Stored,
} from "@longshore/kube";
import { classOfClaim, classOfVolume } from "./annotations.ts";
import { capacityOf, requestOf } from "./match-volume.ts";

interface Entry {
  readonly className: string;
  readonly modes: number;
  readonly capacity: Quantity;
  /** Equal volumes are taken in the order in which they came. */
  readonly arrival: number;
  volume: Stored<PersistentVolume>;
}

/** An index over the cache of volumes that is ordered, which an informer's own are not. */
export class AvailableVolumes {
  readonly #byName = new Map<string, Entry>();
  /** Ordered by access modes, capacity, arrival. */
  readonly #byClass = new Map<string, Entry[]>();
  #arrivals = 0;

  /**
   * Follows the cache. To be called before any subscription that reads the index.
   * @returns a function that unsubscribes
   */
  follow(volumes: Pick<Informer<PersistentVolume>, "onChange">): () => void {
    return volumes.onChange({
      added: (volume) => this.set(volume),
      updated: (_before, volume) => this.set(volume),
      deleted: (volume) => this.delete(volume.metadata.name),
    });
  }

  /** Enters the volume in the place that it has now, or takes it out. */
  set(volume: Stored<PersistentVolume>): void {
    const before = this.#byName.get(volume.metadata.name);
    if (!isAvailable(volume)) {
      this.delete(volume.metadata.name);
      return;
    }
    const entry = this.#entryOf(volume);
    if (before !== undefined && isSamePlace(before, entry)) {
      before.volume = volume;
      return;
    }
    this.delete(volume.metadata.name);
    this.#byName.set(volume.metadata.name, entry);
    const entries = this.#byClass.get(entry.className) ?? [];
    this.#byClass.set(entry.className, entries);
    entries.splice(firstNotBefore(entries, entry), 0, entry);
  }

  /** Takes the volume out. */
  delete(name: string): void {
    const entry = this.#byName.get(name);
    if (entry === undefined) return;
    this.#byName.delete(name);
    const entries = this.#byClass.get(entry.className) ?? [];
    entries.splice(firstNotBefore(entries, entry), 1);
    if (entries.length === 0) this.#byClass.delete(entry.className);
  }

  /** Volumes of the claim's class that are large enough, the best first. To be read before anything changes. */
  *largeEnoughFor(claim: PersistentVolumeClaim): Generator<Stored<PersistentVolume>> {
    const entries = this.#byClass.get(classOfClaim(claim)) ?? [];
    const capacity = requestOf(claim);
    for (let at = 0; at < entries.length; ) {
      const { modes } = entries[at] as Entry;
      // Before every arrival, so that the first volume of exactly this capacity is found.
      at = firstNotBefore(entries, { modes, capacity, arrival: -1 });
      for (; entries[at]?.modes === modes; at++) yield (entries[at] as Entry).volume;
    }
  }

  #entryOf(volume: Stored<PersistentVolume>): Entry {
    return {
      className: classOfVolume(volume),
      modes: (volume.spec?.accessModes ?? []).length,
      capacity: capacityOf(volume),
      arrival: this.#arrivals++,
      volume,
    };
  }
}

function isAvailable(volume: Stored<PersistentVolume>): boolean {
  return volume.spec?.claimRef == null && volume.status?.phase === "Available" && !isDeleting(volume);
}

function isSamePlace(a: Entry, b: Entry): boolean {
  return a.className === b.className && a.modes === b.modes && a.capacity.compare(b.capacity) === 0;
}

type Place = Pick<Entry, "modes" | "capacity" | "arrival">;

/** Index of the first entry that is not before `place`. */
function firstNotBefore(entries: readonly Entry[], place: Place): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(entries[middle] as Entry, place) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function order(a: Place, b: Place): number {
  return a.modes - b.modes || a.capacity.compare(b.capacity) || a.arrival - b.arrival;
}
