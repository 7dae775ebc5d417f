/**
 * Brings one VolumeGroupSnapshot together with its VolumeGroupSnapshotContent, and makes the objects of its members.
 *
 *     selector ─► finalizer ─► content ─► bound ─► (the driver's snapshotter) ─► members ─► ready
 *     deleted ─► content marked ─► content deleted, or kept ─► members deleted ─► finalizer off ─► gone
 *
 * The invariants are those of `snapshot-reconciler.ts`.
 */
import {
  isAlreadyExists,
  isDeleting,
  isNotFound,
  type KubeEnv,
  keyOf,
  labelSelectorMatches,
  type PersistentVolumeClaim,
  type ReconcileResult,
  refOf,
  type Stored,
  settled,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import {
  defaultGroupSnapshotClassAnnotation,
  groupBeingDeletedAnnotation,
  groupSnapshotFinalizer,
  snapshotResources,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
} from "@longshore/storage";
import { contentOfGroup } from "./content-of-group.ts";
import { defaultClassOf } from "./default-class.ts";
import { contentNameOfGroup } from "./group-binding.ts";
import type { MemberWrite } from "./group-members.ts";
import { decideGroupStep, type GroupStep, type ObservedGroup } from "./group-step.ts";
import type { MeasuredState, SnapshotMetrics } from "./snapshot-metrics.ts";
import { SnapshotSourceError, type SourceVolume, sourceVolumeOf } from "./snapshot-source.ts";
import { again, type FailedStep, SnapshotFailedError, type SubjectWrites } from "./subject-writes.ts";

/** What the reconciler works with. */
export interface GroupContext {
  readonly env: KubeEnv;
  readonly writes: SubjectWrites<VolumeGroupSnapshot>;
  readonly metrics: SnapshotMetrics;
  /** Everything known of the group snapshot of this key; undefined: there is none. */
  readonly observe: (key: string) => ObservedGroup | undefined;
  readonly claims: () => readonly Stored<PersistentVolumeClaim>[];
  readonly classes: () => readonly Stored<VolumeGroupSnapshotClass>[];
  /** What waits for something else is looked at again after this time, in milliseconds, if no event comes first. */
  readonly lookAgainMs: number;
}

type Group = Stored<VolumeGroupSnapshot>;
type StepOf<K extends GroupStep["kind"]> = Extract<GroupStep, { readonly kind: K }>;

const { volumeGroupSnapshotContents, volumeSnapshots, volumeSnapshotContents } = snapshotResources;

const failedSteps = {
  chooseClass: {
    reason: "SetDefaultGroupSnapshotClassFailed",
    what: "Failed to set default group snapshot class with error",
    notReady: false,
  },
  protect: {
    reason: "GroupSnapshotFinalizerError",
    what: "Failed to check and update group snapshot:",
    notReady: false,
  },
  createContent: {
    reason: "GroupSnapshotContentCreationFailed",
    what: "failed to create group snapshot content with error",
    notReady: true,
  },
  bindContent: {
    reason: "GroupSnapshotBindFailed",
    what: "GroupSnapshot failed to bind VolumeGroupSnapshotContent,",
    notReady: true,
  },
  writeMembers: {
    reason: "GroupSnapshotMembersFailed",
    what: "Failed to create the snapshots of the group:",
    notReady: false,
  },
  tell: {
    reason: "GroupSnapshotStatusUpdateFailed",
    what: "GroupSnapshot status update failed,",
    notReady: false,
  },
} as const satisfies Partial<Record<GroupStep["kind"], FailedStep>>;

/** One pass over the group snapshot of this key. */
export async function reconcileGroup(
  context: GroupContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const observed = context.observe(key);
  if (observed === undefined) return settled;
  const { group } = observed;
  const { writes } = context;
  context.metrics.look(measured(observed));
  const step = decideGroupStep(observed);
  switch (step.kind) {
    case "none":
      return settled;
    case "wait":
      if (step.reason !== undefined) writes.event(group, "Warning", step.reason, step.message);
      return { requeueAfterMs: context.lookAgainMs };
    case "fail":
      return fail(context, group, step, signal);
    case "chooseClass":
      return writes.reporting(group, failedSteps.chooseClass, signal, () =>
        chooseClass(context, group, signal),
      );
    case "protect":
      return writes.reporting(group, failedSteps.protect, signal, () =>
        writes.hold(group, [groupSnapshotFinalizer], signal),
      );
    case "createContent":
      return writes.reporting(group, failedSteps.createContent, signal, () =>
        createContent(context, observed, signal),
      );
    case "bindContent":
      return writes.reporting(group, failedSteps.bindContent, signal, () =>
        patchContent(context, contentOf(observed), bindingPatch(step), signal),
      );
    case "writeMembers":
      return writes.reporting(group, failedSteps.writeMembers, signal, async () => {
        for (const write of step.writes) await writeMember(context, write, signal);
      });
    case "tell":
      return writes.reporting(group, failedSteps.tell, signal, () =>
        tellStatus(context, group, step.status, signal),
      );
    case "announceDeletion": {
      const metadata = { annotations: { [groupBeingDeletedAnnotation]: "yes" } };
      await patchContent(context, contentOf(observed), { metadata }, signal);
      return again;
    }
    case "deleteContent":
      await deleteContent(context, observed, signal);
      return again;
    case "deleteMembers":
      for (const member of step.members) await deleteMember(context, group, member, signal);
      return again;
    case "letGo":
      await writes.letGo(group, [groupSnapshotFinalizer], signal);
      return settled;
    default:
      return assertNever(step);
  }
}

function measured({ group, content, groupClass, restoring }: ObservedGroup): MeasuredState {
  const { status, spec } = group;
  return {
    kind: "GroupSnapshot",
    uid: group.metadata.uid,
    driver: content?.spec.driver ?? groupClass?.driver,
    isPreProvisioned: spec.source.volumeGroupSnapshotContentName !== undefined,
    isCut: status?.creationTime !== undefined,
    isReady: status?.readyToUse === true,
    isGoing: isDeleting(group) && restoring === undefined,
  };
}

/** The content of a step that is about it. */
function contentOf({ content, group }: ObservedGroup): Stored<VolumeGroupSnapshotContent> {
  if (content === undefined) throw new SnapshotFailedError(`${group.metadata.name} has no content`);
  return content;
}

async function fail(
  context: GroupContext,
  group: Group,
  step: StepOf<"fail">,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  if (step.reason === "GroupSnapshotContentMissing") {
    const ref = { name: contentNameOfGroup(group) };
    const stored = await context.env.kube.get(volumeGroupSnapshotContents, ref, { signal });
    // Only the cache is behind.
    if (stored !== undefined) return { requeueAfterMs: 1000 };
  }
  return context.writes.fail(group, step, signal);
}

async function chooseClass(context: GroupContext, group: Group, signal: AbortSignal): Promise<void> {
  const [volume] = await sourceVolumes(context, group, signal);
  if (volume === undefined) throw new SnapshotSourceError("the selector chooses no claim");
  const chosen = defaultClassOf(context.classes(), defaultGroupSnapshotClassAnnotation, volume.driver);
  const spec = { volumeGroupSnapshotClassName: chosen.metadata.name };
  await context.writes.hold(group, [groupSnapshotFinalizer], signal, { spec });
}

async function createContent(
  context: GroupContext,
  { group, groupClass }: ObservedGroup,
  signal: AbortSignal,
): Promise<void> {
  if (groupClass === undefined) throw new SnapshotSourceError("its class is gone");
  const volumes = await sourceVolumes(context, group, signal);
  const content = contentOfGroup(group, groupClass, volumes);
  try {
    await context.env.kube.create(volumeGroupSnapshotContents, content, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const message = `Waiting for a group snapshot ${keyOf(group)} to be created by the CSI driver.`;
  context.writes.event(group, "Normal", "CreatingGroupSnapshot", message);
}

/** The volumes of the claims that the group chooses, in the order of the claims' names. */
async function sourceVolumes(
  context: GroupContext,
  group: Group,
  signal: AbortSignal,
): Promise<readonly SourceVolume[]> {
  const { selector = {} } = group.spec.source;
  const chosen = context
    .claims()
    .filter(({ metadata }) => metadata.namespace === group.metadata.namespace)
    .filter(({ metadata }) => labelSelectorMatches(selector, metadata.labels ?? {}))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  if (chosen.length === 0) throw new SnapshotSourceError("the selector chooses no claim");
  const volumes: SourceVolume[] = [];
  for (const claim of chosen) volumes.push(await sourceVolumeOf(context.env.kube, claim, { signal }));
  return volumes;
}

function bindingPatch({ uid, className }: StepOf<"bindContent">): object {
  const volumeGroupSnapshotRef = { uid };
  const named = className === undefined ? {} : { volumeGroupSnapshotClassName: className };
  return { spec: { volumeGroupSnapshotRef, ...named } };
}

async function writeMember({ env }: GroupContext, write: MemberWrite, signal: AbortSignal): Promise<void> {
  switch (write.kind) {
    case "createSnapshot":
      return unlessThere(env.kube.create(volumeSnapshots, write.snapshot, { signal }));
    case "createContent":
      return unlessThere(env.kube.create(volumeSnapshotContents, write.content, { signal }));
    case "tellContent": {
      const patch = { type: "merge", body: { status: write.status } } as const;
      const ref = refOf(write.content);
      await env.kube.patch(volumeSnapshotContents, ref, patch, { signal, subresource: "status" });
      return;
    }
    case "bindSnapshot": {
      const status = { boundVolumeSnapshotContentName: write.contentName };
      const patch = { type: "merge", body: { status } } as const;
      await env.kube.patch(volumeSnapshots, refOf(write.snapshot), patch, { signal, subresource: "status" });
      return;
    }
    default:
      assertNever(write);
  }
}

async function unlessThere(creation: Promise<unknown>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

async function tellStatus(
  { writes }: GroupContext,
  group: Group,
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  await writes.tell(group, status, signal);
  const key = keyOf(group);
  if (status.creationTime !== undefined) {
    const message = `GroupSnapshot ${key} was successfully created by the CSI driver.`;
    writes.event(group, "Normal", "GroupSnapshotCreated", message);
  }
  if (status.readyToUse === true) {
    writes.event(group, "Normal", "GroupSnapshotReady", `GroupSnapshot ${key} is ready to use.`);
  }
}

async function deleteContent(
  { env, writes }: GroupContext,
  observed: ObservedGroup,
  signal: AbortSignal,
): Promise<void> {
  const { uid, name } = contentOf(observed).metadata;
  try {
    await env.kube.delete(volumeGroupSnapshotContents, { name }, { signal, uid });
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `Failed to delete group snapshot content API object: ${errorChain(error)}`;
    writes.event(observed.group, "Warning", "GroupSnapshotContentObjectDeleteError", message);
    throw error;
  }
}

async function deleteMember(
  { env, writes }: GroupContext,
  group: Group,
  member: Stored<VolumeSnapshot>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await env.kube.delete(volumeSnapshots, refOf(member), { signal, uid: member.metadata.uid });
  } catch (error) {
    if (signal.aborted || isNotFound(error)) throw error;
    const message = `failed to delete snapshot API object ${keyOf(member)} part of group snapshot ${keyOf(group)}: ${errorChain(error)}`;
    writes.event(group, "Warning", "SnapshotDeleteError", message);
    throw error;
  }
}

/** Writes a content, unless another client has changed it. */
async function patchContent(
  { env }: GroupContext,
  content: Stored<VolumeGroupSnapshotContent>,
  change: { readonly metadata?: object },
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = content.metadata;
  const body = { ...change, metadata: { resourceVersion, ...change.metadata } };
  await env.kube.patch(volumeGroupSnapshotContents, { name }, { type: "merge", body }, { signal });
}
