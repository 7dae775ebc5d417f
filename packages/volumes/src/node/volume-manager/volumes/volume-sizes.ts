/**
 * When the claim of a mounted volume is read to see whether the volume has grown, and what was seen. The node may read
 * a claim but not watch it, so each mounted volume has a time of its own. Source: docs/behaviour/node-agent.md 7.6.
 *
 * Invariants
 *  - A volume has an entry only while it is mounted for a pod; nothing else is read for it.
 *  - What was refused because the volume is in use is not tried before the volume is mounted again.
 */
import type { Random } from "@longshore/runtime";
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";

/** A claim is read after this time, and at most half of it later, in milliseconds; as often as a kubelet syncs a pod. */
export const sizeLookMs = 60_000;

/** The same for a claim that asks for more than it has: the rest of its resize is under way. */
export const resizingLookMs = 5_000;

/** What is known of the size of a mounted volume. */
export interface VolumeSize {
  /** Monotonic time in milliseconds at which the claim is read. */
  readonly lookAtMs: number;
  /** The size that the claim waits for, as the PersistentVolume's capacity; undefined: none, as of the last look. */
  readonly pending: string | undefined;
  /** It cannot grow as it is used now. */
  readonly isRefused: boolean;
}

/** The sizes of all mounted volumes. */
export class VolumeSizes {
  readonly #sizes = new Map<UniqueVolumeName, VolumeSize>();
  readonly #random: Pick<Random, "below">;

  constructor(random: Pick<Random, "below">) {
    this.#random = random;
  }

  get(uniqueName: UniqueVolumeName): VolumeSize | undefined {
    return this.#sizes.get(uniqueName);
  }

  /** The claim is to be read `afterMs` to one and a half times that after `nowMs`, in monotonic milliseconds. */
  lookLater(uniqueName: UniqueVolumeName, nowMs: number, afterMs = sizeLookMs): void {
    const lookAtMs = nowMs + afterMs + this.#random.below(afterMs / 2, "look at a claim");
    this.#sizes.set(uniqueName, { lookAtMs, pending: undefined, isRefused: this.#isRefused(uniqueName) });
  }

  /** The claim waits for this size. */
  found(uniqueName: UniqueVolumeName, pending: string, nowMs: number): void {
    this.#sizes.set(uniqueName, { lookAtMs: nowMs, pending, isRefused: this.#isRefused(uniqueName) });
  }

  /** The volume cannot grow as it is used now. */
  refused(uniqueName: UniqueVolumeName): void {
    this.#sizes.set(uniqueName, { lookAtMs: 0, pending: undefined, isRefused: true });
  }

  /** The volume is mounted for no pod any more. */
  forget(uniqueName: UniqueVolumeName): void {
    this.#sizes.delete(uniqueName);
  }

  #isRefused(uniqueName: UniqueVolumeName): boolean {
    return this.#sizes.get(uniqueName)?.isRefused ?? false;
  }
}
