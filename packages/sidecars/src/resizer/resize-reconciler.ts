/**
 * Brings the volume of one claim to the size that the claim asks for.
 *
 *     asked for more ─► "in progress" stored ─► ControllerExpandVolume ─► volume's capacity ─► finished, or the kubelet's
 *
 * Invariants
 *  - Which size is under way is stored before the driver is called, so that after a crash the same size is asked for.
 *  - The volume's capacity is stored before its claim's: a claim never has what its volume has not.
 *  - A pass may stop at any `await` and begin again; a second pass changes nothing more. Three writes at most.
 */
import {
  type EventRecorder,
  type Informer,
  involvedObject,
  isConflict,
  isNotFound,
  type PersistentVolume,
  type PersistentVolumeClaim,
  parseQuantity,
  type ReconcileResult,
  refOf,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import { apiTime, type SidecarEnv } from "../common/env.ts";
import { holds } from "./claim-conditions.ts";
import type { ClaimMemory } from "./claim-memory.ts";
import {
  begunPatch,
  type ClaimPatch,
  finishedPatch,
  keepsProgress,
  nodePendingPatch,
  refusedPatch,
} from "./claim-status.ts";
import { type GrowContext, type Grown, growVolume } from "./grow-volume.ts";
import type { PodUse } from "./pod-use.ts";
import { isFinal, isInUse, isResizeInfeasible } from "./resize-errors.ts";
import { decideResizeStep } from "./resize-step.ts";

/** What the reconciler works with. */
export interface ResizeContext extends GrowContext {
  readonly env: SidecarEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly memory: ClaimMemory;
  /** Which pods use a claim; undefined: a driver that refuses volumes in use is simply asked again. */
  readonly podUse: PodUse | undefined;
  /** What is impossible is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
  /** Volumes whose file system has yet to grow carry a note of their size before. */
  readonly notesOldSize: boolean;
}

/** A volume did not grow. The text is shown to users. */
class ResizeFailedError extends Error {
  override readonly name = "ResizeFailedError";
}

type Claim = Stored<PersistentVolumeClaim>;
type Volume = Stored<PersistentVolume>;

/** One pass over the claim of this key. */
export async function reconcileResize(
  context: ResizeContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = context.claims.get(key);
  const volume = context.volumes.get(claim?.spec?.volumeName ?? "");
  if (claim === undefined || volume === undefined) return settled;
  const attempt = context.memory.of(claim.metadata.uid);
  if (attempt.inUse) await context.podUse?.follow(signal);
  const step = decideResizeStep({
    driver: context.driver,
    claim,
    volume,
    attempt,
    trivial: context.trivial,
    isInUse: () => context.podUse?.isUsed(key) ?? false,
    nowMs: context.env.clock.monotonicMs(),
  });
  switch (step.kind) {
    case "none":
      return settled;
    case "wait":
      return { requeueAfterMs: step.delayMs };
    case "inUse":
      tellInUse(context, claim);
      // The end of the last pod queues the claim; this covers a missed event.
      return { requeueAfterMs: context.infeasibleRetryMs };
    case "expand":
      return expand(context, claim, volume, step, signal);
    case "forgetOldSize":
      if (context.notesOldSize) await patchVolume(context, volume, { oldSize: null }, signal);
      return settled;
    default:
      return assertNever(step);
  }
}

async function expand(
  context: ResizeContext,
  seen: Claim,
  volume: Volume,
  step: { readonly size: string; readonly begin: boolean },
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = step.begin ? await begin(context, seen, step.size, signal) : seen;
  tell(context, claim, "Normal", "Resizing", `External resizer is resizing volume ${volume.metadata.name}`);
  let grown: Grown;
  try {
    grown = await growVolume(context, volume, step.size, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return refused(context, claim, volume, step.size, error, signal);
  }
  context.memory.forget(claim.metadata.uid);
  try {
    await storeCapacity(context, claim, volume, grown, signal);
    await settle(context, claim, grown, signal);
  } catch (error) {
    // Conflict: not a failure; retry with the current state.
    if (!signal.aborted && !isConflict(error) && !isNotFound(error)) {
      tell(context, claim, "Warning", "VolumeResizeFailed", errorChain(error));
    }
    throw error;
  }
  return settled;
}

/** Stores that this size is under way; without a write where that is known, and the server can keep no more of it. */
async function begin(
  context: ResizeContext,
  claim: Claim,
  size: string,
  signal: AbortSignal,
): Promise<Claim> {
  const isSaid = holds(claim.status?.conditions, "Resizing");
  if (isSaid && context.memory.of(claim.metadata.uid).classic) return claim;
  const begun = await patchClaim(context, claim, begunPatch(claim, size, apiTime(context.env.clock)), signal);
  const attempt = context.memory.of(claim.metadata.uid);
  context.memory.remember(claim.metadata.uid, { ...attempt, classic: !keepsProgress(begun) });
  return begun;
}

async function storeCapacity(
  context: ResizeContext,
  claim: Claim,
  volume: Volume,
  { capacity, nodeExpansionRequired }: Grown,
  signal: AbortSignal,
): Promise<void> {
  const hasNote = volume.metadata.annotations?.[preResizeCapacityAnnotation] !== undefined;
  const before = claim.status?.capacity?.storage;
  const notes = context.notesOldSize && nodeExpansionRequired && !hasNote && before !== undefined;
  const has = parseQuantity(volume.spec?.capacity?.storage ?? "0");
  if (has.equals(parseQuantity(capacity)) && !notes) return;
  await patchVolume(context, volume, { capacity, ...(notes ? { oldSize: before } : {}) }, signal);
}

async function settle(
  context: ResizeContext,
  claim: Claim,
  { capacity, nodeExpansionRequired }: Grown,
  signal: AbortSignal,
): Promise<void> {
  if (nodeExpansionRequired) {
    await patchClaim(context, claim, nodePendingPatch(claim, apiTime(context.env.clock)), signal);
    const message = "Require file system resize of volume on node";
    tell(context, claim, "Normal", "FileSystemResizeRequired", message);
  } else {
    await patchClaim(context, claim, finishedPatch(claim, capacity), signal);
    tell(context, claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded");
  }
}

/**
 * Remembers and reports how the attempt failed. Throws so that the queue backs off, unless no retry can help for a long
 * time.
 */
async function refused(
  context: ResizeContext,
  claim: Claim,
  volume: Volume,
  size: string,
  error: unknown,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { memory, env, infeasibleRetryMs } = context;
  const { uid } = claim.metadata;
  const infeasible = isResizeInfeasible(error);
  const { classic = false } = memory.of(uid);
  const untilMs = env.clock.monotonicMs() + infeasibleRetryMs;
  memory.remember(uid, {
    classic,
    refused: isFinal(error),
    inUse: isInUse(error) && context.podUse !== undefined,
    ...(infeasible ? { infeasible: { wish: size, untilMs } } : {}),
  });
  const text = `resize volume "${volume.metadata.name}" by resizer "${context.driver.name}" failed: ${errorChain(error)}`;
  tell(context, claim, "Warning", "VolumeResizeFailed", text);
  const refusal = { infeasible, message: errorChain(error) };
  const patch = isFinal(error) ? refusedPatch(claim, refusal, apiTime(env.clock)) : undefined;
  if (patch !== undefined) {
    try {
      await patchClaim(context, claim, patch, signal);
    } catch (statusError) {
      if (signal.aborted) throw statusError;
      // It is remembered; the next attempt will say it again.
      env.logger.warn("cannot report a failed expansion", { error: statusError });
    }
  }
  if (!infeasible) throw new ResizeFailedError(text, { cause: error });
  env.logger.warn("a volume cannot be expanded as asked", { claim: claim.metadata.name, error });
  return { requeueAfterMs: infeasibleRetryMs };
}

function tellInUse(context: ResizeContext, claim: Claim): void {
  const { namespace = "", name } = claim.metadata;
  const message = `Unable to expand ${namespace}/${name} because CSI driver ${context.driver.name} only supports offline expansion and volume is currently in-use`;
  tell(context, claim, "Warning", "VolumeResizeFailed", message);
}

function tell(
  context: ResizeContext,
  claim: Claim,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  context.events.event(involvedObject(resources.persistentVolumeClaims, claim), type, reason, message);
}

function patchClaim(
  { kube }: ResizeContext,
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

async function patchVolume(
  { kube }: ResizeContext,
  volume: Volume,
  { capacity, oldSize }: { readonly capacity?: string; readonly oldSize?: string | null },
  signal: AbortSignal,
): Promise<void> {
  const annotations = { [preResizeCapacityAnnotation]: oldSize };
  const body = {
    // With it the patch fails on another volume of the same name.
    metadata: { uid: volume.metadata.uid, ...(oldSize === undefined ? {} : { annotations }) },
    ...(capacity === undefined ? {} : { spec: { capacity: { storage: capacity } } }),
  };
  await kube.patch(resources.persistentVolumes, refOf(volume), { type: "merge", body }, { signal });
}
