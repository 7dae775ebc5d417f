/**
 * The resizer's decision for the attributes of one claim's volume (docs/behaviour/sidecars.md 4 "ModifyVolume"): the
 * steps to the goal that {@link modifyGoal} names. Pure.
 *
 *     storeIntent ─► emitModifying ─► readSecret ─► modifyVolume ─► storeClass ─► reportModified ─► emitModified
 *     no such class: reportPending ─► emitPending     nothing requested: reportCanceled ─► emitCanceled
 *     refused:       rememberRefusal ─► emitRefused ─► reportRefused ─► fail, or wait where no retry can help for long
 *     not stored:    emitNotStored ─► fail
 *
 * Invariants
 *  - Which class is under way is stored before the driver is called.
 *  - The volume's class is stored before its claim's.
 *  - A pass may stop at any step and begin again; a second pass changes nothing more.
 */
import type { PersistentVolume, SecretReference } from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { modifySecretNameAnnotation, modifySecretNamespaceAnnotation } from "@longshore/storage";
import type { ClaimPatch } from "./claim-patch.ts";
import { type ModifyGoal, modifyGoal } from "./modify-goal.ts";
import {
  modifiedPatch,
  modifyCanceledPatch,
  modifyFailedPatch,
  modifyingPatch,
  modifyPendingPatch,
} from "./modify-status.ts";
import type { ModifyRefusal, ObservedModify } from "./observed-modify.ts";
import { isFinal, isModifyInfeasible } from "./resize-errors.ts";

/** The request of ControllerModifyVolume but for the secret, which only the observation holds. */
export interface ModifyParameters {
  readonly volumeId: string;
  readonly mutableParameters: Record<string, string>;
}

/** One step over the attributes of a claim's volume. */
export type ModifyStep =
  | { readonly step: "settle" }
  /** Wait with what is impossible now, in milliseconds. */
  | { readonly step: "wait"; readonly delayMs: number }
  | { readonly step: "reportPending"; readonly patch: ClaimPatch }
  | { readonly step: "emitPending"; readonly className: string }
  | { readonly step: "reportCanceled"; readonly patch: ClaimPatch }
  | { readonly step: "emitCanceled" }
  | { readonly step: "storeIntent"; readonly patch: ClaimPatch; readonly begun: BegunClass }
  | { readonly step: "emitModifying"; readonly className: string }
  | { readonly step: "readSecret"; readonly reference: SecretReference }
  | { readonly step: "modifyVolume"; readonly parameters: ModifyParameters }
  | { readonly step: "storeClass"; readonly className: string }
  | { readonly step: "reportModified"; readonly patch: ClaimPatch }
  | { readonly step: "emitModified"; readonly className: string }
  | {
      readonly step: "rememberRefusal";
      readonly className: string;
      readonly refusal: Omit<ModifyRefusal, "time">;
    }
  | { readonly step: "emitRefused"; readonly message: string }
  | { readonly step: "reportRefused"; readonly patch: ClaimPatch }
  | { readonly step: "emitNotStored"; readonly message: string }
  | { readonly step: "fail"; readonly error: unknown };

/** A class that is under way, once that is stored. */
export type BegunClass = ModifyGoal & { readonly kind: "modify" };

/** Attributes were not applied. The text is shown to users. */
export class ModifyFailedError extends Error {
  override readonly name = "ModifyFailedError";
}

/** The next step. */
export function decideModifyStep(observed: ObservedModify): ModifyStep {
  const { begun } = observed.progress;
  return begun === undefined
    ? decideGoal(observed, modifyGoal(observed))
    : decideModification(observed, begun);
}

function decideGoal(observed: ObservedModify, goal: ModifyGoal): ModifyStep {
  const { claim, progress, time } = observed;
  switch (goal.kind) {
    case "none":
      return { step: "settle" };
    case "wait":
      return { step: "wait", delayMs: goal.delayMs };
    case "pending":
      return decidePending(observed, goal);
    case "foreign":
      return decideRefusal(observed, goal.className, progress.refusal ?? foreignClass(observed, goal));
    case "cancel":
      if (progress.isReported) return { step: "emitCanceled" };
      return { step: "reportCanceled", patch: modifyCanceledPatch(claim) };
    case "modify": {
      if (!goal.begin) return decideModification(observed, goal);
      return { step: "storeIntent", patch: modifyingPatch(claim, goal.className, time), begun: goal };
    }
    default:
      return assertNever(goal);
  }
}

/** Its class wakes the claim when it is made. */
function decidePending(
  { claim, progress }: ObservedModify,
  { className, isSaid }: ModifyGoal & { readonly kind: "pending" },
): ModifyStep {
  if (isSaid || progress.isReported) return { step: "emitPending", className };
  return { step: "reportPending", patch: modifyPendingPatch(claim, className) };
}

function foreignClass(
  { driver }: ObservedModify,
  { className, driverName }: ModifyGoal & { readonly kind: "foreign" },
): ModifyRefusal {
  const message = `VolumeAttributesClass "${className}" is of driver ${driverName}, the volume of driver ${driver.name}`;
  return { message, isInfeasible: true, isFinal: true, time: "" };
}

/** What the failure of a call means for the class that it was to apply. */
export function refusalOf(error: unknown): Omit<ModifyRefusal, "time"> {
  return {
    message: errorChain(error),
    isInfeasible: isModifyInfeasible(error),
    isFinal: isFinal(error),
    cause: error,
  };
}

function decideModification(observed: ObservedModify, modification: BegunClass): ModifyStep {
  const { claim, volume, progress } = observed;
  const { className } = modification;
  if (progress.refusal !== undefined) return decideRefusal(observed, className, progress.refusal);
  if (progress.storeFailure !== undefined) {
    const { error, isEmitted } = progress.storeFailure;
    return isEmitted ? { step: "fail", error } : { step: "emitNotStored", message: errorChain(error) };
  }
  if (!progress.isModified) return decideCall(observed, modification);
  if (progress.isReported) return { step: "emitModified", className };
  const isStored = volume.spec?.volumeAttributesClassName === className || progress.isClassStored;
  if (!isStored) return { step: "storeClass", className };
  return { step: "reportModified", patch: modifiedPatch(claim, className) };
}

function decideCall(
  { claim, volume, progress, rules }: ObservedModify,
  { className, parameters, begin }: BegunClass,
): ModifyStep {
  if (begin && !progress.isModifyingEmitted) return { step: "emitModifying", className };
  const reference = secretOf(volume);
  if (reference !== undefined && progress.secrets === undefined) return { step: "readSecret", reference };
  const names = {
    "csi.storage.k8s.io/pvc/name": claim.metadata.name,
    "csi.storage.k8s.io/pvc/namespace": claim.metadata.namespace ?? "",
    "csi.storage.k8s.io/pv/name": volume.metadata.name,
  };
  return {
    step: "modifyVolume",
    parameters: {
      volumeId: volume.spec?.csi?.volumeHandle ?? "",
      mutableParameters: { ...parameters, ...(rules.extraMetadata ? names : {}) },
    },
  };
}

function secretOf(volume: PersistentVolume): SecretReference | undefined {
  const { [modifySecretNameAnnotation]: name, [modifySecretNamespaceAnnotation]: namespace } =
    volume.metadata?.annotations ?? {};
  return name && namespace ? { name, namespace } : undefined;
}

function decideRefusal(observed: ObservedModify, className: string, refusal: ModifyRefusal): ModifyStep {
  const { claim, rules } = observed;
  const { message, isInfeasible: infeasible, time } = refusal;
  if (!refusal.isRemembered) return { step: "rememberRefusal", className, refusal };
  if (!refusal.isEmitted) {
    const text = refusal.isFinal ? message : `${message}. Still modifying to VAC ${className}`;
    return { step: "emitRefused", message: text };
  }
  const patch = refusal.isReported
    ? undefined
    : modifyFailedPatch(claim, { className, infeasible, message }, time);
  if (patch !== undefined) return { step: "reportRefused", patch };
  if (infeasible) return { step: "wait", delayMs: rules.infeasibleRetryMs };
  const text = `volume of claim ${claim.metadata.name} was not modified`;
  return { step: "fail", error: new ModifyFailedError(text, { cause: refusal.cause }) };
}
