/** Mounts that run right now. Their wait for a device is given up when the pod goes; a mount that has begun is finished. */
import { StoppedError } from "@longshore/runtime";
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";

interface Mount {
  readonly podUID: string;
  readonly giveUp: AbortController;
}

/** At most one mount of each volume. */
export class MountsInFlight {
  readonly #mounts = new Map<UniqueVolumeName, Mount>();
  readonly #byPod = new Map<string, number>();

  /** A mount begins. @returns the signal of its being given up */
  begin(uniqueName: UniqueVolumeName, podUID: string): AbortSignal {
    this.end(uniqueName);
    const giveUp = new AbortController();
    this.#mounts.set(uniqueName, { podUID, giveUp });
    this.#count(podUID, 1);
    return giveUp.signal;
  }

  /** The mount of the volume, if there is one, has ended. */
  end(uniqueName: UniqueVolumeName): void {
    const mount = this.#mounts.get(uniqueName);
    if (mount === undefined) return;
    this.#mounts.delete(uniqueName);
    this.#count(mount.podUID, -1);
  }

  /** No pod but these wants the volume: a wait on behalf of another is given up. */
  keepOnly(uniqueName: UniqueVolumeName, pods: ReadonlyMap<string, unknown>): void {
    const mount = this.#mounts.get(uniqueName);
    if (mount !== undefined && !pods.has(mount.podUID)) mount.giveUp.abort(new StoppedError());
  }

  /** True once the mount of the volume was given up. */
  isGivenUp(uniqueName: UniqueVolumeName): boolean {
    return this.#mounts.get(uniqueName)?.giveUp.signal.aborted ?? false;
  }

  /** Whether a mount of the volume runs. */
  has(uniqueName: UniqueVolumeName): boolean {
    return this.#mounts.has(uniqueName);
  }

  /** Whether a mount runs for the pod. */
  hasPod(podUID: string): boolean {
    return this.#byPod.has(podUID);
  }

  #count(podUID: string, by: 1 | -1): void {
    const count = (this.#byPod.get(podUID) ?? 0) + by;
    if (count === 0) this.#byPod.delete(podUID);
    else this.#byPod.set(podUID, count);
  }
}
