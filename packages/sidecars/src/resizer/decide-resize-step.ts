/**
 * The resizer's decision for the size of one claim (docs/behaviour/sidecars.md 4): the steps to the goal that
 * {@link resizeGoal} names. Pure.
 *
 *     storeIntent ─► emitResizing ─► readSecret ─► expandVolume ─► storeCapacity ─► reportNodePending, or reportFinished
 *     refused:   rememberRefusal ─► emitRefused ─► reportRefused ─► fail, or wait where no retry can help for long
 *     not stored: emitNotStored ─► fail
 *
 * Invariants
 *  - Which size is under way is stored before the driver is called, so that after a crash the same size is requested.
 *  - The volume's capacity is stored before its claim's: a claim never has what its volume has not.
 *  - A pass may stop at any step and begin again; a second pass changes nothing more. Three writes at most.
 */
import { parseQuantity, type SecretReference } from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import { begunPatch, type ClaimPatch, finishedPatch, nodePendingPatch, refusedPatch } from "./claim-patch.ts";
import type { VolumeChange } from "./claim-writes.ts";
import { holds } from "./merged-conditions.ts";
import type { ObservedResize, Refusal, ResizeProgress } from "./observed-resize.ts";
import { isFinal, isResizeInfeasible } from "./resize-errors.ts";
import { type ResizeGoal, resizeGoal } from "./resize-goal.ts";
import { type ExpandParameters, expandParameters, type Grown } from "./volume-growth.ts";
import { csiSpecOf } from "./volume-to-resize.ts";

/** One step over the size of a claim. */
export type ResizeStep =
  | { readonly step: "settle" }
  /** Wait with what is impossible now, in milliseconds. */
  | { readonly step: "wait"; readonly delayMs: number }
  /** A driver refused a volume in use: learn which claims pods use. */
  | { readonly step: "followPods" }
  | { readonly step: "emitInUse" }
  /** The file system has grown: remove the note of the size before. */
  | { readonly step: "removeOldSize" }
  | { readonly step: "storeIntent"; readonly size: string; readonly patch: ClaimPatch }
  | { readonly step: "emitResizing" }
  | { readonly step: "readSecret"; readonly reference: SecretReference }
  | { readonly step: "expandVolume"; readonly parameters: ExpandParameters; readonly migrated: boolean }
  /** The driver expands on nodes only. */
  | { readonly step: "leaveToNode"; readonly size: string }
  | { readonly step: "storeCapacity"; readonly change: VolumeChange }
  | { readonly step: "reportNodePending"; readonly patch: ClaimPatch }
  | { readonly step: "emitNodePending" }
  | { readonly step: "reportFinished"; readonly patch: ClaimPatch }
  | { readonly step: "emitFinished" }
  | { readonly step: "rememberRefusal"; readonly size: string; readonly error: unknown }
  | { readonly step: "emitRefused"; readonly message: string }
  | { readonly step: "reportRefused"; readonly patch: ClaimPatch }
  | { readonly step: "emitNotStored"; readonly message: string }
  | { readonly step: "fail"; readonly error: unknown };

/** A volume did not grow. The text is shown to users. */
export class ResizeFailedError extends Error {
  override readonly name = "ResizeFailedError";
}

/** The next step. */
export function decideResizeStep(observed: ObservedResize): ResizeStep {
  const { attempt, rules, progress } = observed;
  if (attempt.inUse && rules.followsPods && !progress.arePodsFollowed) return { step: "followPods" };
  const { begunSize } = progress;
  return begunSize === undefined
    ? decideGoal(observed, resizeGoal(observed))
    : decideExpansion(observed, begunSize);
}

function decideGoal(observed: ObservedResize, goal: ResizeGoal): ResizeStep {
  const { claim, rules, progress, time } = observed;
  switch (goal.kind) {
    case "none":
      return { step: "settle" };
    case "wait":
      return { step: "wait", delayMs: goal.delayMs };
    case "inUse":
      // The end of the last pod wakes the claim; the wait covers a missed event.
      if (progress.isInUseEmitted) return { step: "wait", delayMs: rules.infeasibleRetryMs };
      return { step: "emitInUse" };
    case "forgetOldSize":
      return { step: rules.notesOldSize ? "removeOldSize" : "settle" };
    case "expand": {
      const { size } = goal;
      if (!mustStoreIntent(observed, goal)) return decideExpansion(observed, size);
      return { step: "storeIntent", size, patch: begunPatch(claim, size, time) };
    }
    default:
      return assertNever(goal);
  }
}

/** Not where it is stored, nor where the condition is and the server can keep no more of it. */
function mustStoreIntent(
  { claim, attempt }: ObservedResize,
  { begin }: ResizeGoal & { readonly kind: "expand" },
): boolean {
  return begin && !(attempt.classic && holds(claim.status?.conditions, "Resizing"));
}

function decideExpansion(observed: ObservedResize, size: string): ResizeStep {
  const { progress } = observed;
  if (progress.refusal !== undefined) return decideRefusal(observed, size, progress.refusal);
  if (progress.storeFailure !== undefined) {
    const { error, isEmitted } = progress.storeFailure;
    return isEmitted ? { step: "fail", error } : { step: "emitNotStored", message: errorChain(error) };
  }
  if (progress.grown !== undefined) return decideStoring(observed, progress.grown);
  if (!progress.isResizingEmitted) return { step: "emitResizing" };
  if (observed.trivial) return { step: "leaveToNode", size };
  try {
    return decideCall(observed, size);
  } catch (error) {
    // What the volume does not allow is reported as a refusal of the driver is.
    return { step: "rememberRefusal", size, error };
  }
}

function decideCall({ volume, rules, progress }: ObservedResize, size: string): ResizeStep {
  const { spec, migrated } = csiSpecOf(volume);
  const reference = spec.csi?.controllerExpandSecretRef ?? undefined;
  if (reference !== undefined && progress.secrets === undefined) return { step: "readSecret", reference };
  const parameters = expandParameters(volume, size, rules.singleNodeMultiWriter);
  return { step: "expandVolume", parameters, migrated };
}

function decideStoring(observed: ObservedResize, grown: NonNullable<ResizeProgress["grown"]>): ResizeStep {
  const { claim, progress } = observed;
  const change = progress.isCapacityStored ? undefined : changeOf(observed, grown);
  if (change !== undefined) return { step: "storeCapacity", change };
  if (progress.isEndEmitted) return { step: "settle" };
  if (grown.nodeExpansionRequired) {
    if (progress.isReported) return { step: "emitNodePending" };
    return { step: "reportNodePending", patch: nodePendingPatch(claim, grown.time) };
  }
  if (progress.isReported) return { step: "emitFinished" };
  return { step: "reportFinished", patch: finishedPatch(claim, grown.capacity) };
}

/** What the volume does not say yet; undefined: nothing. */
function changeOf({ claim, volume, rules }: ObservedResize, grown: Grown): VolumeChange | undefined {
  const { capacity, nodeExpansionRequired } = grown;
  const hasNote = volume.metadata.annotations?.[preResizeCapacityAnnotation] !== undefined;
  const before = claim.status?.capacity?.storage;
  const notes = rules.notesOldSize && nodeExpansionRequired && !hasNote && before !== undefined;
  const has = parseQuantity(volume.spec?.capacity?.storage ?? "0");
  if (has.equals(parseQuantity(capacity)) && !notes) return undefined;
  return { capacity, ...(notes ? { oldSize: before } : {}) };
}

function decideRefusal(observed: ObservedResize, size: string, refusal: Refusal): ResizeStep {
  const { claim, volume, driver, rules } = observed;
  const { error, time } = refusal;
  if (!refusal.isRemembered) return { step: "rememberRefusal", size, error };
  const text = `resize volume "${volume.metadata.name}" by resizer "${driver.name}" failed: ${errorChain(error)}`;
  if (!refusal.isEmitted) return { step: "emitRefused", message: text };
  const infeasible = isResizeInfeasible(error);
  // After an uncertain answer the driver may still succeed, so the status reports no failure.
  const mayReport = isFinal(error) && !refusal.isReported;
  const patch = mayReport ? refusedPatch(claim, { infeasible, message: errorChain(error) }, time) : undefined;
  if (patch !== undefined) return { step: "reportRefused", patch };
  if (infeasible) return { step: "wait", delayMs: rules.infeasibleRetryMs };
  return { step: "fail", error: new ResizeFailedError(text, { cause: error }) };
}
