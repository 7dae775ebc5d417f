/**
 * Sets the attributes of one claim's volume to those of the class that the claim names.
 *
 * Invariants
 *  - Which class is under way is stored before the driver is called.
 *  - The volume's class is stored before its claim's.
 *  - A pass may stop at any `await` and begin again; a second pass changes nothing more.
 */
import {
  type EventRecorder,
  type Informer,
  involvedObject,
  isConflict,
  isNotFound,
  type KubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type ReconcileResult,
  refOf,
  resources,
  type SecretReference,
  type Stored,
  settled,
  type VolumeAttributesClass,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { modifySecretNameAnnotation, modifySecretNamespaceAnnotation } from "@longshore/storage";
import { apiTime, type Driver, type SidecarEnv } from "../common/env.ts";
import { secretValues } from "../common/secret-values.ts";
import type { ClaimMemory } from "./claim-memory.ts";
import type { ClaimPatch } from "./claim-status.ts";
import {
  modifiedPatch,
  modifyCanceledPatch,
  modifyFailedPatch,
  modifyingPatch,
  modifyPendingPatch,
} from "./modify-status.ts";
import { decideModifyStep, type ModifyStep } from "./modify-step.ts";
import { isFinal, isModifyInfeasible } from "./resize-errors.ts";

/** What the reconciler works with. */
export interface ModifyContext {
  readonly env: SidecarEnv;
  readonly kube: KubeClient;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly classes: Pick<Informer<VolumeAttributesClass>, "get">;
  readonly memory: ClaimMemory;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** What is impossible is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
  /** The driver receives the names of claim and volume. */
  readonly extraMetadata: boolean;
}

/** Attributes were not applied. The text is shown to users. */
class ModifyFailedError extends Error {
  override readonly name = "ModifyFailedError";
}

type Claim = Stored<PersistentVolumeClaim>;
type Volume = Stored<PersistentVolume>;

/** One pass over the claim of this key. */
export async function reconcileAttributes(
  context: ModifyContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = context.claims.get(key);
  const volume = context.volumes.get(claim?.spec?.volumeName ?? "");
  if (claim === undefined || volume === undefined) return settled;
  const step = decideModifyStep({
    driver: context.driver,
    claim,
    volume,
    attempt: context.memory.of(claim.metadata.uid),
    classNamed: (name) => context.classes.get(name),
    nowMs: context.env.clock.monotonicMs(),
  });
  switch (step.kind) {
    case "none":
      return settled;
    case "wait":
      return { requeueAfterMs: step.delayMs };
    case "pending":
      if (!step.isSaid) await patchClaim(context, claim, modifyPendingPatch(claim, step.className), signal);
      tell(context, claim, "Warning", "VolumeModifyFailed", `VAC "${step.className}" does not exist.`);
      return settled; // Its class will wake it.
    case "foreign": {
      const message = `VolumeAttributesClass "${step.className}" is of driver ${step.driverName}, the volume of driver ${context.driver.name}`;
      return failed(context, claim, step.className, { message, infeasible: true, final: true }, signal);
    }
    case "cancel":
      await patchClaim(context, claim, modifyCanceledPatch(claim), signal);
      tell(context, claim, "Normal", "VolumeModifyCanceled", "Cancelled modify.");
      return settled;
    case "modify":
      return modify(context, claim, volume, step, signal);
    default:
      return assertNever(step);
  }
}

async function modify(
  context: ModifyContext,
  seen: Claim,
  volume: Volume,
  step: ModifyStep & { readonly kind: "modify" },
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { className } = step;
  const nowText = apiTime(context.env.clock);
  const claim = step.begin
    ? await patchClaim(context, seen, modifyingPatch(seen, className, nowText), signal)
    : seen;
  const of = `volume ${claim.metadata.name} with vac ${className}`;
  if (step.begin) tell(context, claim, "Normal", "VolumeModify", `external resizer is modifying ${of}`);
  try {
    await callDriver(context, claim, volume, step.parameters, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const failure = {
      message: errorChain(error),
      infeasible: isModifyInfeasible(error),
      final: isFinal(error),
    };
    return failed(context, claim, className, failure, signal, error);
  }
  context.memory.forget(claim.metadata.uid);
  try {
    await storeClass(context, volume, className, signal);
    await patchClaim(context, claim, modifiedPatch(claim, className), signal);
  } catch (error) {
    // Conflict: not a failure; retry with the current state.
    if (!signal.aborted && !isConflict(error) && !isNotFound(error)) {
      tell(context, claim, "Warning", "VolumeModifyFailed", errorChain(error));
    }
    throw error;
  }
  tell(context, claim, "Normal", "VolumeModifySuccessful", `external resizer modified ${of} successfully`);
  return settled;
}

async function callDriver(
  { kube, driver, timeoutMs, extraMetadata }: ModifyContext,
  claim: Claim,
  volume: Volume,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const names = {
    "csi.storage.k8s.io/pvc/name": claim.metadata.name,
    "csi.storage.k8s.io/pvc/namespace": claim.metadata.namespace ?? "",
    "csi.storage.k8s.io/pv/name": volume.metadata.name,
  };
  const request = {
    volumeId: volume.spec?.csi?.volumeHandle ?? "",
    secrets: await secretValues(kube, secretOf(volume), signal),
    mutableParameters: { ...parameters, ...(extraMetadata ? names : {}) },
  };
  await driver.csi.controller.controllerModifyVolume(request, { signal, timeoutMs, migrated: false });
}

function secretOf(volume: Volume): SecretReference | undefined {
  const { [modifySecretNameAnnotation]: name, [modifySecretNamespaceAnnotation]: namespace } =
    volume.metadata.annotations ?? {};
  return name && namespace ? { name, namespace } : undefined;
}

async function storeClass(
  { kube }: ModifyContext,
  volume: Volume,
  className: string,
  signal: AbortSignal,
): Promise<void> {
  if (volume.spec?.volumeAttributesClassName === className) return;
  const { uid } = volume.metadata;
  const body = { metadata: { uid }, spec: { volumeAttributesClassName: className } };
  await kube.patch(resources.persistentVolumes, refOf(volume), { type: "merge", body }, { signal });
}

/**
 * Remembers and reports how the attempt failed. Throws so that the queue backs off, unless no retry can help for a long
 * time.
 */
async function failed(
  context: ModifyContext,
  claim: Claim,
  className: string,
  failure: { readonly message: string; readonly infeasible: boolean; readonly final: boolean },
  signal: AbortSignal,
  cause?: unknown,
): Promise<ReconcileResult> {
  const { memory, env, infeasibleRetryMs } = context;
  const { message, infeasible, final } = failure;
  const untilMs = env.clock.monotonicMs() + infeasibleRetryMs;
  memory.remember(claim.metadata.uid, {
    refused: final,
    ...(infeasible ? { infeasible: { wish: className, untilMs } } : {}),
  });
  const text = final ? message : `${message}. Still modifying to VAC ${className}`;
  tell(context, claim, "Warning", "VolumeModifyFailed", text);
  const patch = modifyFailedPatch(claim, { className, infeasible, message }, apiTime(env.clock));
  try {
    if (patch !== undefined) await patchClaim(context, claim, patch, signal);
  } catch (statusError) {
    if (signal.aborted) throw statusError;
    // It is remembered; the next attempt will say it again.
    env.logger.warn("cannot report a failed modification", { error: statusError });
  }
  if (infeasible) return { requeueAfterMs: infeasibleRetryMs };
  throw new ModifyFailedError(`volume of claim ${claim.metadata.name} was not modified`, { cause });
}

function tell(
  context: ModifyContext,
  claim: Claim,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  context.events.event(involvedObject(resources.persistentVolumeClaims, claim), type, reason, message);
}

function patchClaim(
  { kube }: ModifyContext,
  claim: Claim,
  body: ClaimPatch,
  signal: AbortSignal,
): Promise<Claim> {
  return kube.patch(
    resources.persistentVolumeClaims,
    refOf(claim),
    { type: "merge", body },
    { signal, subresource: "status" },
  );
}
