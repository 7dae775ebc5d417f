/**
 * Brings one VolumeSnapshot together with its VolumeSnapshotContent.
 *
 *     claim ─► finalizers ─► claim held ─► content ─► bound ─► (the driver's snapshotter) ─► ready
 *     content that exists ─► finalizers ─► bound both ways ─► ready
 *     deleted ─► content told ─► content deleted, or kept ─► finalizers off ─► gone
 *
 * Invariants
 *  - A pass does one step, on caches that show every earlier one; the next pass takes the next.
 *  - Names follow from uids, so a content made by a pass that died is found, never made twice.
 *  - The snapshot has its finalizer before its content is made, so that the content cannot outlive it unnoticed.
 *  - A snapshot that was cut once is never cut anew under the same name.
 */
import {
  type EventRecorder,
  involvedObject,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeEnv,
  type Patch,
  type PersistentVolumeClaim,
  type ReconcileResult,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import {
  beingDeletedAnnotation,
  defaultSnapshotClassAnnotation,
  snapshotClaimFinalizer,
  snapshotResources,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { apiTime } from "../common/env.ts";
import { addFinalizerPatch } from "../common/finalizers.ts";
import { contentNameOf, groupOf } from "./binding.ts";
import { type ContentSettings, contentOfSnapshot } from "./content-of-snapshot.ts";
import { defaultClassOf } from "./default-class.ts";
import type { SnapshotMetrics } from "./snapshot-metrics.ts";
import { SnapshotSourceError, type SourceVolume, sourceVolumeOf } from "./snapshot-source.ts";
import {
  decideSnapshotStep,
  finalizersFor,
  type ObservedSnapshot,
  type SnapshotStep,
} from "./snapshot-step.ts";

/** What the reconciler works with. */
export interface SnapshotContext {
  readonly env: KubeEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly metrics: SnapshotMetrics;
  /** Everything known of the snapshot of this key; undefined: there is none. */
  readonly observe: (key: string) => ObservedSnapshot | undefined;
  readonly claim: (key: string) => Stored<PersistentVolumeClaim> | undefined;
  readonly classes: () => readonly Stored<VolumeSnapshotClass>[];
  /** The node that looks after snapshots of the volume; undefined: one snapshotter looks after all. */
  readonly managedBy: (volume: SourceVolume) => string | undefined;
  readonly settings: ContentSettings;
  /** What waits for something else is looked at again after this time, in milliseconds, should nothing wake it. */
  readonly lookAgainMs: number;
}

/** A snapshot that is not as it is to be. The text is shown to users. */
export class SnapshotFailedError extends Error {
  override readonly name = "SnapshotFailedError";
}

type Snapshot = Stored<VolumeSnapshot>;
type Failure = Extract<SnapshotStep, { readonly kind: "fail" }>;

const { volumeSnapshots, volumeSnapshotContents } = snapshotResources;
/** Look at once: there may be more to do, and the caches show by then what was done. */
const again: ReconcileResult = { requeueAfterMs: 0 };

/** One pass over the snapshot of this key. */
export async function reconcileSnapshot(
  context: SnapshotContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const observed = context.observe(key);
  if (observed === undefined) return settled;
  const { snapshot } = observed;
  context.metrics.observed(observed);
  const step = decideSnapshotStep(observed);
  switch (step.kind) {
    case "none":
      return settled;
    case "wait":
      if (step.reason !== undefined) tellEvent(context, snapshot, "Warning", step.reason, step.message);
      return { requeueAfterMs: context.lookAgainMs };
    case "fail":
      return fail(context, snapshot, step, signal);
    case "chooseClass":
      return reporting(context, snapshot, classFailure, signal, () => chooseClass(context, snapshot, signal));
    case "protect":
      return reporting(context, snapshot, finalizerFailure, signal, () =>
        patchSnapshot(context, snapshot, withFinalizers(snapshot, step.finalizers), signal),
      );
    case "createContent":
      return reporting(context, snapshot, creationFailure, signal, () =>
        createContent(context, observed, signal),
      );
    case "bindContent":
      return reporting(context, snapshot, bindFailure, signal, () =>
        patchContent(context, contentOf(observed), bindingPatch(step), signal),
      );
    case "tell":
      await tellStatus(context, observed, step.status, signal);
      return again;
    case "joinGroup": {
      const { metadata, apiVersion = "" } = step.group;
      const owner = { apiVersion, kind: "VolumeGroupSnapshot", name: metadata.name, uid: metadata.uid };
      const ownerReferences = [...(snapshot.metadata.ownerReferences ?? []), owner];
      await patchSnapshot(context, snapshot, { ownerReferences }, signal);
      return again;
    }
    case "announceDeletion": {
      const metadata = { annotations: { [beingDeletedAnnotation]: "yes" } };
      await patchContent(context, contentOf(observed), { metadata }, signal);
      return again;
    }
    case "deleteContent":
      await deleteContent(context, observed, signal);
      return again;
    case "letGo":
      return letGo(context, snapshot, step.finalizers, signal);
    default:
      return assertNever(step);
  }
}

/** The content of a step that is about it. */
function contentOf({ content, snapshot }: ObservedSnapshot): Stored<VolumeSnapshotContent> {
  if (content === undefined) throw new SnapshotFailedError(`${snapshot.metadata.name} has no content`);
  return content;
}

async function chooseClass(context: SnapshotContext, snapshot: Snapshot, signal: AbortSignal): Promise<void> {
  const { driver } = await sourceVolumeOf(context.env.kube, sourceClaim(context, snapshot), { signal });
  const chosen = defaultClassOf(context.classes(), defaultSnapshotClassAnnotation, driver);
  const { resourceVersion } = snapshot.metadata;
  const { finalizers } = withFinalizers(snapshot, finalizersFor(chosen.deletionPolicy));
  const body = {
    metadata: { resourceVersion, finalizers },
    spec: { volumeSnapshotClassName: chosen.metadata.name },
  };
  await context.env.kube.patch(volumeSnapshots, refOf(snapshot), { type: "merge", body }, { signal });
}

function withFinalizers(
  snapshot: Snapshot,
  wanted: readonly string[],
): { readonly finalizers: readonly string[] } {
  return { finalizers: [...new Set([...(snapshot.metadata.finalizers ?? []), ...wanted])] };
}

async function createContent(
  context: SnapshotContext,
  { snapshot, snapshotClass }: ObservedSnapshot,
  signal: AbortSignal,
): Promise<void> {
  if (snapshotClass === undefined) throw new SnapshotSourceError("its class is gone");
  const claim = sourceClaim(context, snapshot);
  const volume = await sourceVolumeOf(context.env.kube, claim, { signal });
  const managedBy = context.managedBy(volume);
  const content = contentOfSnapshot(snapshot, snapshotClass, volume, context.settings, managedBy);
  await holdClaim(context, claim, signal);
  try {
    await context.env.kube.create(volumeSnapshotContents, content, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const message = `Waiting for a snapshot ${keyOfSnapshot(snapshot)} to be created by the CSI driver.`;
  tellEvent(context, snapshot, "Normal", "CreatingSnapshot", message);
}

function sourceClaim(context: SnapshotContext, snapshot: Snapshot): Stored<PersistentVolumeClaim> {
  const { namespace = "" } = snapshot.metadata;
  const key = `${namespace}/${snapshot.spec.source.persistentVolumeClaimName ?? ""}`;
  const claim = context.claim(key);
  if (claim === undefined) throw new SnapshotSourceError(`claim "${key}" not found`);
  return claim;
}

/** Keeps the claim while the snapshot is being made; `source-claims.ts` lets it go again. */
async function holdClaim(
  context: SnapshotContext,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<void> {
  const { finalizers, namespace = "", name, deletionTimestamp } = claim.metadata;
  if (finalizers?.includes(snapshotClaimFinalizer)) return;
  if (deletionTimestamp !== undefined) {
    throw new SnapshotSourceError(`claim "${namespace}/${name}" is being deleted`);
  }
  const body = addFinalizerPatch(finalizers, snapshotClaimFinalizer);
  const ref = { name, namespace };
  await context.env.kube.patch(resources.persistentVolumeClaims, ref, { type: "json", body }, { signal });
}

function bindingPatch(step: Extract<SnapshotStep, { readonly kind: "bindContent" }>): object {
  const { uid, className } = step;
  return {
    spec: {
      volumeSnapshotRef: { uid },
      ...(className === undefined ? {} : { volumeSnapshotClassName: className }),
    },
  };
}

async function tellStatus(
  context: SnapshotContext,
  observed: ObservedSnapshot,
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  const { snapshot } = observed;
  await patchStatus(context, snapshot, status, signal);
  const key = keyOfSnapshot(snapshot);
  if (status.creationTime !== undefined) {
    context.metrics.created(observed);
    const message = `Snapshot ${key} was successfully created by the CSI driver.`;
    tellEvent(context, snapshot, "Normal", "SnapshotCreated", message);
  }
  if (status.readyToUse === true) {
    context.metrics.ready(observed);
    tellEvent(context, snapshot, "Normal", "SnapshotReady", `Snapshot ${key} is ready to use.`);
  }
}

async function deleteContent(
  context: SnapshotContext,
  observed: ObservedSnapshot,
  signal: AbortSignal,
): Promise<void> {
  const { uid, name } = contentOf(observed).metadata;
  try {
    await context.env.kube.delete(volumeSnapshotContents, { name }, { signal, uid });
  } catch (error) {
    if (isConflict(error)) throw error;
    const message = `Failed to delete snapshot content API object: ${errorChain(error)}`;
    tellEvent(context, observed.snapshot, "Warning", "SnapshotContentObjectDeleteError", message);
    throw error;
  }
}

async function letGo(
  context: SnapshotContext,
  snapshot: Snapshot,
  ours: readonly string[],
  signal: AbortSignal,
): Promise<ReconcileResult> {
  if (await groupStillThere(context, snapshot, signal)) return { requeueAfterMs: 1000 };
  const finalizers = (snapshot.metadata.finalizers ?? []).filter((finalizer) => !ours.includes(finalizer));
  try {
    await patchSnapshot(
      context,
      snapshot,
      { finalizers: finalizers.length === 0 ? null : finalizers },
      signal,
    );
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return settled;
}

/** The cache may not show a group yet; what is in one goes only with it. */
async function groupStillThere(
  context: SnapshotContext,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<boolean> {
  const group = groupOf(snapshot);
  if (group === undefined) return false;
  const { namespace = "" } = snapshot.metadata;
  const { volumeGroupSnapshots } = snapshotResources;
  if ((await context.env.kube.servedVersion(volumeGroupSnapshots, { signal })) === undefined) return false;
  const found = await context.env.kube.get(volumeGroupSnapshots, { namespace, name: group.name }, { signal });
  return found !== undefined && (group.uid === undefined || found.metadata.uid === group.uid);
}

/** What a failure is told as. */
interface Reported {
  readonly reason: string;
  readonly what: string;
  readonly notReady: boolean;
}

const classFailure: Reported = {
  reason: "SetDefaultSnapshotClassFailed",
  what: "Failed to set default snapshot class with error",
  notReady: false,
};
const finalizerFailure: Reported = {
  reason: "SnapshotFinalizerError",
  what: "Failed to check and update snapshot:",
  notReady: false,
};
const creationFailure: Reported = {
  reason: "SnapshotContentCreationFailed",
  what: "Failed to create snapshot content with error",
  notReady: true,
};
const bindFailure: Reported = {
  reason: "SnapshotBindFailed",
  what: "Snapshot failed to bind VolumeSnapshotContent,",
  notReady: true,
};

/** Runs `work`; a failure is told in the status and in an event, then thrown again for the queue to back off. */
async function reporting(
  context: SnapshotContext,
  snapshot: Snapshot,
  { reason, what, notReady }: Reported,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<ReconcileResult> {
  try {
    await work();
    return again;
  } catch (error) {
    // Somebody else was faster: nothing failed, the next pass looks anew.
    if (signal.aborted || isConflict(error) || isNotFound(error)) throw error;
    const message = `${what} ${errorChain(error)}`;
    await tellFailure(context, snapshot, { kind: "fail", reason, message, notReady }, signal);
    throw error;
  }
}

async function fail(
  context: SnapshotContext,
  snapshot: Snapshot,
  failure: Failure,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const contentName = contentNameOf(snapshot);
  if (failure.reason === "SnapshotContentMissing" && contentName !== undefined) {
    const stored = await context.env.kube.get(volumeSnapshotContents, { name: contentName }, { signal });
    // The cache is behind, no more than that.
    if (stored !== undefined) return { requeueAfterMs: 1000 };
  }
  await tellFailure(context, snapshot, failure, signal);
  throw new SnapshotFailedError(`VolumeSnapshot "${keyOfSnapshot(snapshot)}": ${failure.message}`);
}

async function tellFailure(
  context: SnapshotContext,
  snapshot: Snapshot,
  { reason, message, notReady }: Failure,
  signal: AbortSignal,
): Promise<void> {
  if (snapshot.status?.error?.message === message) return;
  tellEvent(context, snapshot, "Warning", reason, message);
  const error = { message, time: apiTime(context.env.clock) };
  try {
    await patchStatus(context, snapshot, notReady ? { error, readyToUse: false } : { error }, signal);
  } catch (statusError) {
    if (!isNotFound(statusError))
      context.env.logger.warn("cannot report a failed snapshot", { error: statusError });
  }
}

function tellEvent(
  context: SnapshotContext,
  snapshot: Snapshot,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  context.events.event(involvedObject(volumeSnapshots, snapshot), type, reason, message);
}

/** Writes metadata, unless somebody else has changed the snapshot. */
async function patchSnapshot(
  context: SnapshotContext,
  snapshot: Snapshot,
  change: object,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { resourceVersion: snapshot.metadata.resourceVersion, ...change } };
  await context.env.kube.patch(volumeSnapshots, refOf(snapshot), { type: "merge", body }, { signal });
}

async function patchStatus(
  context: SnapshotContext,
  snapshot: Snapshot,
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  const patch: Patch = { type: "merge", body: { status } };
  await context.env.kube.patch(volumeSnapshots, refOf(snapshot), patch, { signal, subresource: "status" });
}

/** Writes a content, unless somebody else has changed it. */
async function patchContent(
  context: SnapshotContext,
  content: Stored<VolumeSnapshotContent>,
  change: { readonly metadata?: object },
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = content.metadata;
  const body = { ...change, metadata: { resourceVersion, ...change.metadata } };
  await context.env.kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
}

function refOf(snapshot: Snapshot): { readonly name: string; readonly namespace: string } {
  return { name: snapshot.metadata.name, namespace: snapshot.metadata.namespace ?? "" };
}

function keyOfSnapshot(snapshot: Snapshot): string {
  return `${snapshot.metadata.namespace ?? ""}/${snapshot.metadata.name}`;
}
