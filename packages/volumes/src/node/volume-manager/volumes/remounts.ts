/** Mounted volumes that are to be set up again, since what they are made from has changed. Source: docs/behaviour/pod-volumes.md 5. */
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";

const none: ReadonlySet<string> = new Set();

/** What waits for it, by volume and pod. A request that comes while the volume is being set up is kept for the next time. */
export class Remounts {
  readonly #pods = new Map<UniqueVolumeName, Set<string>>();

  /** The volume is to be set up again for the pod. */
  request(uniqueName: UniqueVolumeName, podUID: string): void {
    const pods = this.#pods.get(uniqueName) ?? new Set();
    this.#pods.set(uniqueName, pods.add(podUID));
  }

  /** It is being set up for the pod from now on. */
  begin(uniqueName: UniqueVolumeName, podUID: string): void {
    const pods = this.#pods.get(uniqueName);
    pods?.delete(podUID);
    if (pods?.size === 0) this.#pods.delete(uniqueName);
  }

  /** The pods for which it is to be set up again. */
  of(uniqueName: UniqueVolumeName): ReadonlySet<string> {
    return this.#pods.get(uniqueName) ?? none;
  }

  /** The volume is neither wanted nor here any more. */
  forget(uniqueName: UniqueVolumeName): void {
    this.#pods.delete(uniqueName);
  }
}
