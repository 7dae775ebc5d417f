/** What a pass over a PersistentVolume begins with. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { isVolumeHere } from "../node-deployment.ts";
import { decideVolumeGoal } from "../volume-goal.ts";
import type { ObservedVolume } from "./decide-volume.ts";
import type { VolumeContext } from "./volume-context.ts";
import { deletionOf } from "./volume-deletion.ts";

/** What is known of the volume, as a cache or the server shows it. */
export function observeVolume(context: VolumeContext, pv: Stored<PersistentVolume>): ObservedVolume {
  const goal = decideVolumeGoal(context.driver, pv, context.protectVolumes);
  return {
    pv,
    isLive: false,
    isHere: isVolumeHere(context.ownNode, pv),
    goal,
    deletion: goal === "delete" ? deletionNow(context, pv) : undefined,
    attachedTo: context.attachedTo(pv.metadata.name)[0],
    secrets: undefined,
    isDiskDeleted: false,
    isObjectDeleted: false,
    isFinalizerRemoved: false,
    startedMs: context.env.clock.monotonicMs(),
    failure: undefined,
  };
}

function deletionNow(context: VolumeContext, pv: PersistentVolume): ObservedVolume["deletion"] {
  try {
    return deletionOf(context, pv);
  } catch (error) {
    return { error };
  }
}
