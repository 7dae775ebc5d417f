/**
 * Brings one VolumeSnapshot together with its VolumeSnapshotContent.
 *
 *     claim ─► finalizers ─► claim held ─► content ─► bound ─► (the driver's snapshotter) ─► ready
 *     content that exists ─► finalizers ─► bound both ways ─► ready
 *     deleted ─► content marked ─► content deleted, or kept ─► finalizers off ─► gone
 *
 * Invariants
 *  - A pass does one step, on caches that show every earlier one; the next pass takes the next.
 *  - Names follow from uids, so a content made by a pass that died is found, never made twice.
 *  - The snapshot has its finalizer before its content is made, so that the content cannot outlive it unnoticed.
 *  - A snapshot that was taken once is never taken again under the same name.
 */
import {
  isAlreadyExists,
  isConflict,
  isDeleting,
  type KubeEnv,
  keyOf,
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
import { contentNameOf, groupOf, isPreProvisioned } from "./binding.ts";
import { type ContentSettings, contentOfSnapshot } from "./content-of-snapshot.ts";
import { defaultClassOf } from "./default-class.ts";
import type { MeasuredState, SnapshotMetrics } from "./snapshot-metrics.ts";
import { SnapshotSourceError, type SourceVolume, sourceVolumeOf } from "./snapshot-source.ts";
import {
  decideSnapshotStep,
  finalizersFor,
  type ObservedSnapshot,
  type SnapshotStep,
} from "./snapshot-step.ts";
import { withFinalizers } from "./source-claims.ts";
import { again, type FailedStep, SnapshotFailedError, type SubjectWrites } from "./subject-writes.ts";

/** What the reconciler works with. */
export interface SnapshotContext {
  readonly env: KubeEnv;
  readonly writes: SubjectWrites<VolumeSnapshot>;
  readonly metrics: SnapshotMetrics;
  /** Everything known of the snapshot of this key; undefined: there is none. */
  readonly observe: (key: string) => ObservedSnapshot | undefined;
  readonly claim: (key: string) => Stored<PersistentVolumeClaim> | undefined;
  readonly classes: () => readonly Stored<VolumeSnapshotClass>[];
  /** The node that looks after snapshots of the volume; undefined: one snapshotter looks after all. */
  readonly managedBy: (volume: SourceVolume) => string | undefined;
  readonly settings: ContentSettings;
  /** What waits for something else is looked at again after this time, in milliseconds, if no event comes first. */
  readonly lookAgainMs: number;
}

type Snapshot = Stored<VolumeSnapshot>;
type StepOf<K extends SnapshotStep["kind"]> = Extract<SnapshotStep, { readonly kind: K }>;

const { volumeSnapshotContents, volumeGroupSnapshots } = snapshotResources;

const failedSteps = {
  chooseClass: {
    reason: "SetDefaultSnapshotClassFailed",
    what: "Failed to set default snapshot class with error",
    notReady: false,
  },
  protect: {
    reason: "SnapshotFinalizerError",
    what: "Failed to check and update snapshot:",
    notReady: false,
  },
  createContent: {
    reason: "SnapshotContentCreationFailed",
    what: "Failed to create snapshot content with error",
    notReady: true,
  },
  bindContent: {
    reason: "SnapshotBindFailed",
    what: "Snapshot failed to bind VolumeSnapshotContent,",
    notReady: true,
  },
  tell: {
    reason: "SnapshotStatusUpdateFailed",
    what: "Snapshot status update failed,",
    notReady: false,
  },
} as const satisfies Partial<Record<SnapshotStep["kind"], FailedStep>>;

/** One pass over the snapshot of this key. */
export async function reconcileSnapshot(
  context: SnapshotContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const observed = context.observe(key);
  if (observed === undefined) return settled;
  const { snapshot } = observed;
  const { writes } = context;
  context.metrics.look(measured(observed));
  const step = decideSnapshotStep(observed);
  switch (step.kind) {
    case "none":
      return settled;
    case "wait":
      if (step.reason !== undefined) writes.event(snapshot, "Warning", step.reason, step.message);
      return { requeueAfterMs: context.lookAgainMs };
    case "fail":
      return fail(context, snapshot, step, signal);
    case "chooseClass":
      return writes.reporting(snapshot, failedSteps.chooseClass, signal, () =>
        chooseClass(context, snapshot, signal),
      );
    case "protect":
      return writes.reporting(snapshot, failedSteps.protect, signal, () =>
        writes.hold(snapshot, step.finalizers, signal),
      );
    case "createContent":
      return writes.reporting(snapshot, failedSteps.createContent, signal, () =>
        createContent(context, observed, signal),
      );
    case "holdClaim":
      await holdClaim(context, sourceClaim(context, snapshot), signal);
      return again;
    case "bindContent":
      return writes.reporting(snapshot, failedSteps.bindContent, signal, () =>
        patchContent(context, contentOf(observed), bindingPatch(step), signal),
      );
    case "tell":
      return writes.reporting(snapshot, failedSteps.tell, signal, () =>
        tellStatus(context, observed, step.status, signal),
      );
    case "joinGroup":
      await joinGroup(context, snapshot, step, signal);
      return again;
    case "announceDeletion": {
      const metadata = { annotations: { [beingDeletedAnnotation]: "yes" } };
      await patchContent(context, contentOf(observed), { metadata }, signal);
      return again;
    }
    case "deleteContent":
      await deleteContent(context, observed, signal);
      return again;
    case "letGo":
      if (await isGroupStillThere(context, snapshot, signal)) return { requeueAfterMs: 30_000 };
      await writes.letGo(snapshot, step.finalizers, signal);
      return settled;
    default:
      return assertNever(step);
  }
}

function measured({ snapshot, content, snapshotClass, isRestoring }: ObservedSnapshot): MeasuredState {
  const { status } = snapshot;
  return {
    kind: "Snapshot",
    uid: snapshot.metadata.uid,
    driver: content?.spec.driver ?? snapshotClass?.driver,
    isPreProvisioned: isPreProvisioned(snapshot),
    isCut: status?.creationTime !== undefined,
    isReady: status?.readyToUse === true,
    isGoing: isDeleting(snapshot) && !isRestoring,
  };
}

/** The content of a step that is about it. */
function contentOf({ content, snapshot }: ObservedSnapshot): Stored<VolumeSnapshotContent> {
  if (content === undefined) throw new SnapshotFailedError(`${snapshot.metadata.name} has no content`);
  return content;
}

async function fail(
  context: SnapshotContext,
  snapshot: Snapshot,
  step: StepOf<"fail">,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const contentName = contentNameOf(snapshot);
  if (step.reason === "SnapshotContentMissing" && contentName !== undefined) {
    const stored = await context.env.kube.get(volumeSnapshotContents, { name: contentName }, { signal });
    // The cache is behind, no more than that.
    if (stored !== undefined) return { requeueAfterMs: 1000 };
  }
  return context.writes.fail(snapshot, step, signal);
}

async function chooseClass(context: SnapshotContext, snapshot: Snapshot, signal: AbortSignal): Promise<void> {
  const { driver } = await sourceVolumeOf(context.env.kube, sourceClaim(context, snapshot), { signal });
  const chosen = defaultClassOf(context.classes(), defaultSnapshotClassAnnotation, driver);
  const spec = { volumeSnapshotClassName: chosen.metadata.name };
  await context.writes.hold(snapshot, finalizersFor(chosen.deletionPolicy), signal, { spec });
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
  const message = `Waiting for a snapshot ${keyOf(snapshot)} to be created by the CSI driver.`;
  context.writes.event(snapshot, "Normal", "CreatingSnapshot", message);
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
  const held = withFinalizers(claim, [...(finalizers ?? []), snapshotClaimFinalizer]);
  await context.env.kube.update(resources.persistentVolumeClaims, held, { signal });
}

function bindingPatch({ uid, className }: StepOf<"bindContent">): object {
  const volumeSnapshotRef = { uid };
  const named = className === undefined ? {} : { volumeSnapshotClassName: className };
  return { spec: { volumeSnapshotRef, ...named } };
}

async function tellStatus(
  context: SnapshotContext,
  observed: ObservedSnapshot,
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  const { snapshot } = observed;
  const { writes } = context;
  await writes.tell(snapshot, status, signal);
  const key = keyOf(snapshot);
  if (status.creationTime !== undefined) {
    const message = `Snapshot ${key} was successfully created by the CSI driver.`;
    writes.event(snapshot, "Normal", "SnapshotCreated", message);
  }
  if (status.readyToUse === true) {
    writes.event(snapshot, "Normal", "SnapshotReady", `Snapshot ${key} is ready to use.`);
  }
}

async function joinGroup(
  context: SnapshotContext,
  snapshot: Snapshot,
  { group }: StepOf<"joinGroup">,
  signal: AbortSignal,
): Promise<void> {
  const { apiVersion = "groupsnapshot.storage.k8s.io/v1", metadata } = group;
  const owner = { apiVersion, kind: "VolumeGroupSnapshot", name: metadata.name, uid: metadata.uid };
  const ownerReferences = [...(snapshot.metadata.ownerReferences ?? []), owner];
  await context.writes.change(snapshot, { ownerReferences }, signal);
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
    if (signal.aborted || isConflict(error)) throw error;
    const message = `Failed to delete snapshot content API object: ${errorChain(error)}`;
    context.writes.event(observed.snapshot, "Warning", "SnapshotContentObjectDeleteError", message);
    throw error;
  }
}

/** The cache may not show a group yet; what is in one goes only with it. */
async function isGroupStillThere(
  { env }: SnapshotContext,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<boolean> {
  const group = groupOf(snapshot);
  if (group === undefined) return false;
  if ((await env.kube.servedVersion(volumeGroupSnapshots, { signal })) === undefined) return false;
  const { namespace = "" } = snapshot.metadata;
  const found = await env.kube.get(volumeGroupSnapshots, { namespace, name: group.name }, { signal });
  return found !== undefined && (group.uid === undefined || found.metadata.uid === group.uid);
}

/** Writes a content, unless another client has changed it. */
async function patchContent(
  { env }: SnapshotContext,
  content: Stored<VolumeSnapshotContent>,
  change: { readonly metadata?: object },
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = content.metadata;
  const body = { ...change, metadata: { resourceVersion, ...change.metadata } };
  await env.kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
}
