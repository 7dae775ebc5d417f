/** What is stored about the modification of a claim's volume: bodies of merge patches of its status, pure. */
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition, Stored } from "@longshore/kube";
import type { ClaimPatch } from "./claim-patch.ts";
import { condition, mergedConditions, modifyConditions } from "./merged-conditions.ts";
import { progressOf } from "./modify-goal.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** The class is going to be applied. */
export function modifyingPatch(claim: Claim, className: string, nowText: string): ClaimPatch {
  const modifying = condition("ModifyingVolume", nowText, "ModifyVolume operation in progress.");
  return patchOf(claim, progress(className, "InProgress"), [modifying]);
}

/** There is no such class; conditions stay as they are. */
export function modifyPendingPatch(claim: Claim, className: string): ClaimPatch {
  const { resourceVersion } = claim.metadata;
  return { metadata: { resourceVersion }, status: progress(className, "Pending") };
}

/** The driver refused, for now or permanently; undefined when the claim says so already. */
export function modifyFailedPatch(
  claim: Claim,
  failure: { readonly className: string; readonly infeasible: boolean; readonly message: string },
  nowText: string,
): ClaimPatch | undefined {
  const text = `ModifyVolume failed with error: ${failure.message}. Waiting for retry.`;
  const state = failure.infeasible ? "Infeasible" : "InProgress";
  const before = progressOf(claim);
  const isSaid = (claim.status?.conditions ?? []).some(
    ({ type, message }) => type === "ModifyVolumeError" && message === text,
  );
  if (isSaid && before.state === state && before.target === failure.className) return undefined;
  const failed = condition("ModifyVolumeError", nowText, text);
  return patchOf(claim, progress(failure.className, state), [failed], true);
}

/** The class is in force. */
export function modifiedPatch(claim: Claim, className: string): ClaimPatch {
  return patchOf(claim, { currentVolumeAttributesClassName: className, modifyVolumeStatus: null }, []);
}

/** Nothing is requested any more. How the last modification ended stays on record. */
export function modifyCanceledPatch(claim: Claim): ClaimPatch {
  return patchOf(claim, {}, []);
}

function progress(className: string, state: string): Readonly<Record<string, unknown>> {
  return { modifyVolumeStatus: { targetVolumeAttributesClassName: className, status: state } };
}

function patchOf(
  claim: Claim,
  status: Readonly<Record<string, unknown>>,
  wanted: readonly PersistentVolumeClaimCondition[],
  keep = false,
): ClaimPatch {
  const conditions = mergedConditions(claim.status?.conditions, wanted, modifyConditions, keep);
  const { resourceVersion } = claim.metadata;
  return { metadata: { resourceVersion }, status: { ...status, conditions } };
}
