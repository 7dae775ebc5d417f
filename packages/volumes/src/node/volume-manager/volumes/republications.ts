/**
 * Which mounted volumes are to be set up again, and when: those of drivers that renew what is in them.
 * Source: docs/behaviour/csi-plugin.md 9.5.
 */
import type { Random } from "@longshore/runtime";
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";

/** At most one time for each pod of a volume. */
export class Republications {
  readonly #dueMs = new Map<UniqueVolumeName, ReadonlyMap<string, number>>();
  readonly #random: Pick<Random, "below">;

  constructor(random: Pick<Random, "below">) {
    this.#random = random;
  }

  /** Monotonic times in milliseconds, by pod UID. */
  of(uniqueName: UniqueVolumeName): ReadonlyMap<string, number> {
    return this.#dueMs.get(uniqueName) ?? new Map();
  }

  /**
   * The volume was set up for the pod at `nowMs`, monotonic milliseconds; the next time is after `afterMs`, or up to a
   * tenth of it later, so that pods that began together do not go on together. Undefined: never.
   */
  setUp(uniqueName: UniqueVolumeName, podUID: string, nowMs: number, afterMs: number | undefined): void {
    const due = new Map(this.of(uniqueName));
    if (afterMs === undefined) due.delete(podUID);
    else due.set(podUID, nowMs + afterMs + this.#random.below(Math.ceil(afterMs / 10), "publish again"));
    if (due.size === 0) this.#dueMs.delete(uniqueName);
    else this.#dueMs.set(uniqueName, due);
  }

  /** It is not mounted for the pod any more. */
  forget(uniqueName: UniqueVolumeName, podUID: string): void {
    this.setUp(uniqueName, podUID, 0, undefined);
  }
}
