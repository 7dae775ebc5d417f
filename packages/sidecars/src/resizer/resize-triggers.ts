/** Which changes of a claim its size is looked at for. Pure. Source: docs/behaviour/sidecars.md 4. */
import type { PersistentVolumeClaim } from "@longshore/kube";
import { storageResizerAnnotation } from "@longshore/storage";
import { requestOf, stateOf, wantsMore } from "./resize-goal.ts";

/**
 * Whether the change asks for a look. What the resizer itself writes while it works or fails does not: that would
 * get around the back-off.
 */
export function shouldLook(before: PersistentVolumeClaim, after: PersistentVolumeClaim): boolean {
  if (!wantsMore(after)) return false;
  if (requestOf(before) !== requestOf(after)) return true;
  if (resizerOf(before) !== resizerOf(after)) return true;
  if (before.status?.phase !== after.status?.phase || before.spec?.volumeName !== after.spec?.volumeName)
    return true;
  // A kubelet has finished, or given up, and there is still more to do.
  if (before.status?.capacity?.storage !== after.status?.capacity?.storage) return true;
  return stateOf(before) !== stateOf(after) && stateOf(after) === "NodeResizeInfeasible";
}

function resizerOf(claim: PersistentVolumeClaim): string | undefined {
  return claim.metadata?.annotations?.[storageResizerAnnotation];
}
