/** Volumes, snapshots and mounts for the checks. Everything created is recorded in the ledger. */
import {
  type MessageInitShape,
  VolumeCapability_AccessMode_Mode as Mode,
  type Snapshot,
  type TopologyRequirementSchema,
  type Volume,
  type VolumeCapabilitySchema,
  type VolumeContentSourceSchema,
  type VolumeGroupSnapshot,
} from "@longshore/csi";
import type { CheckContext } from "./check-context.ts";
import type { ConformanceClients } from "./conformance-clients.ts";
import { must, mustAnswer } from "./expect.ts";

/** A volume capability as it is asked for. */
export type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;
/** A request for a volume, or what a check changes of it. */
export interface VolumeFields {
  readonly name?: string;
  readonly capacityRange?: { readonly requiredBytes?: bigint; readonly limitBytes?: bigint };
  readonly volumeCapabilities?: Capability[];
  readonly parameters?: Record<string, string>;
  readonly mutableParameters?: Record<string, string>;
  readonly volumeContentSource?: MessageInitShape<typeof VolumeContentSourceSchema>;
  readonly accessibilityRequirements?: MessageInitShape<typeof TopologyRequirementSchema>;
}
/** A request for a snapshot, likewise. */
export interface SnapshotFields {
  readonly name?: string;
  readonly sourceVolumeId?: string;
  readonly parameters?: Record<string, string>;
}
/** An access mode. */
export type AccessMode = (typeof Mode)[keyof typeof Mode];

/** What volumes are asked for, unless a check says otherwise. */
export function capabilityOf(context: CheckContext, mode: AccessMode = Mode.SINGLE_NODE_WRITER): Capability {
  const { accessType, fsType = "" } = context.options;
  return {
    accessType: accessType === "block" ? { case: "block", value: {} } : { case: "mount", value: { fsType } },
    accessMode: { mode },
  };
}

/** A volume used as a device, whatever the run uses. */
export const blockCapability: Capability = {
  accessType: { case: "block", value: {} },
  accessMode: { mode: Mode.SINGLE_NODE_WRITER },
};

/** The same volume used the other way: as a device instead of mounted, or mounted. */
export function otherCapabilityOf(context: CheckContext): Capability {
  const { accessType } = context.options;
  return {
    accessType: accessType === "block" ? { case: "mount", value: {} } : { case: "block", value: {} },
    accessMode: { mode: Mode.SINGLE_NODE_WRITER },
  };
}

/** A request for a volume that this node can use. */
export function volumeRequest(
  context: CheckContext,
  over: VolumeFields = {},
): VolumeFields & { readonly name: string } {
  const { parameters, volumeSizeBytes } = context.options;
  return {
    name: context.name("volume"),
    capacityRange: { requiredBytes: volumeSizeBytes },
    volumeCapabilities: [capabilityOf(context)],
    parameters: { ...parameters },
    ...topologyOf(context),
    ...over,
  };
}

/** Where the volume must be usable: on this node. */
function topologyOf(context: CheckContext): VolumeFields {
  const { plugin, nodeInfo } = context.target;
  const topology = nodeInfo?.accessibleTopology;
  if (!plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS") || topology === undefined) return {};
  return { accessibilityRequirements: { requisite: [topology], preferred: [topology] } };
}

/** Makes a volume. */
export async function makeVolume(
  context: CheckContext,
  over: VolumeFields = {},
  what = "CreateVolume",
): Promise<Volume> {
  return volumeOf(await mustAnswer(what, context.controller.createVolume(volumeRequest(context, over))));
}

/** The volume of an answer. @throws CheckFailure when there is none, or none with an id */
export function volumeOf(answer: { readonly volume?: Volume | undefined }): Volume {
  const { volume } = answer;
  must(volume !== undefined, "CreateVolume was answered without a volume; volume is REQUIRED");
  must(volume.volumeId !== "", "CreateVolume was answered without a volume_id; it is REQUIRED");
  return volume;
}

/** A volume that this node may use. */
export interface UsableVolume {
  readonly volumeId: string;
  readonly volumeContext: Record<string, string>;
  readonly publishContext: Record<string, string>;
  readonly capability: Capability;
}

/** Makes a volume and, where the driver has that, publishes it to this node. */
export async function makeUsableVolume(
  context: CheckContext,
  capability: Capability = capabilityOf(context),
): Promise<UsableVolume> {
  const volume = await makeVolume(context, { volumeCapabilities: [capability] });
  return makeUsable(context, volume, capability);
}

/** Publishes a volume to this node, where the driver has that. */
export async function makeUsable(
  context: CheckContext,
  volume: Volume,
  capability: Capability = capabilityOf(context),
): Promise<UsableVolume> {
  const usable = { volumeId: volume.volumeId, volumeContext: volume.volumeContext, capability };
  if (!context.target.controller.has("PUBLISH_UNPUBLISH_VOLUME")) return { ...usable, publishContext: {} };
  const { publishContext } = await mustAnswer(
    "ControllerPublishVolume",
    context.controller.controllerPublishVolume(publishRequest(context, volume, { capability })),
  );
  return { ...usable, publishContext };
}

/** A request to publish the volume to this node. */
export function publishRequest(
  context: CheckContext,
  volume: Pick<Volume, "volumeId" | "volumeContext">,
  over: { readonly nodeId?: string; readonly readonly?: boolean; readonly capability?: Capability } = {},
) {
  return {
    volumeId: volume.volumeId,
    volumeContext: volume.volumeContext,
    nodeId: over.nodeId ?? context.target.nodeInfo?.nodeId ?? "",
    volumeCapability: over.capability ?? capabilityOf(context),
    readonly: over.readonly ?? false,
  };
}

/** A usable volume with the path that it is staged at; "" for a driver that does not stage. */
export interface StagedVolume extends UsableVolume {
  readonly stagingTargetPath: string;
}

/** Makes a volume that is ready to be published on this node. */
export async function makeStagedVolume(
  context: CheckContext,
  capability: Capability = capabilityOf(context),
): Promise<StagedVolume> {
  return stage(context, await makeUsableVolume(context, capability));
}

/** Stages a volume, where the driver has that. */
export async function stage(context: CheckContext, volume: UsableVolume): Promise<StagedVolume> {
  if (!context.target.node.has("STAGE_UNSTAGE_VOLUME")) return { ...volume, stagingTargetPath: "" };
  const staged = { ...volume, stagingTargetPath: await context.stagingPath() };
  await mustAnswer("NodeStageVolume", context.node.nodeStageVolume(stageRequest(staged)));
  return staged;
}

/** The request that stages the volume. */
export function stageRequest(volume: StagedVolume) {
  const { volumeId, volumeContext, publishContext, stagingTargetPath, capability } = volume;
  return { volumeId, volumeContext, publishContext, stagingTargetPath, volumeCapability: capability };
}

/** A volume with the path that it is published at. */
export interface PublishedVolume extends StagedVolume {
  readonly targetPath: string;
}

/** Makes a volume that is published on this node. */
export async function makePublishedVolume(
  context: CheckContext,
  capability: Capability = capabilityOf(context),
): Promise<PublishedVolume> {
  return publish(context, await makeStagedVolume(context, capability));
}

/** Publishes a staged volume at a path of its own. */
export async function publish(
  context: CheckContext,
  volume: StagedVolume,
  over: { readonly readonly?: boolean; readonly targetPath?: string } = {},
): Promise<PublishedVolume> {
  const targetPath = over.targetPath ?? (await context.targetPath());
  const published = { ...volume, targetPath };
  await mustAnswer(
    "NodePublishVolume",
    context.node.nodePublishVolume(nodePublishRequest(published, over.readonly)),
  );
  return published;
}

/** The request that publishes the volume on this node. */
export function nodePublishRequest(volume: PublishedVolume, readonly = false) {
  return { ...stageRequest(volume), targetPath: volume.targetPath, readonly };
}

/** Takes a volume off this node: unpublish, unstage, and from the node at the controller. */
export async function takeOff(context: CheckContext, volume: PublishedVolume): Promise<void> {
  const { volumeId, targetPath } = volume;
  await mustAnswer("NodeUnpublishVolume", context.node.nodeUnpublishVolume({ volumeId, targetPath }));
  await unstage(context, volume);
  if (!context.target.controller.has("PUBLISH_UNPUBLISH_VOLUME")) return;
  const nodeId = context.target.nodeInfo?.nodeId ?? "";
  await mustAnswer(
    "ControllerUnpublishVolume",
    context.controller.controllerUnpublishVolume({ volumeId, nodeId }),
  );
}

/** Unstages a volume, where the driver stages. */
export async function unstage(context: CheckContext, volume: StagedVolume): Promise<void> {
  const { volumeId, stagingTargetPath } = volume;
  if (stagingTargetPath === "") return;
  await mustAnswer("NodeUnstageVolume", context.node.nodeUnstageVolume({ volumeId, stagingTargetPath }));
}

/** A request for a snapshot. */
export function snapshotRequest(context: CheckContext, sourceVolumeId: string, over: SnapshotFields = {}) {
  const parameters = { ...context.options.snapshotParameters };
  return { name: context.name("snapshot"), sourceVolumeId, parameters, ...over };
}

/** Makes a snapshot of the volume. It may not be ready yet. */
export async function makeSnapshot(
  context: CheckContext,
  sourceVolumeId: string,
  over: SnapshotFields = {},
): Promise<Snapshot> {
  const request = snapshotRequest(context, sourceVolumeId, over);
  return snapshotOf(await mustAnswer("CreateSnapshot", context.controller.createSnapshot(request)));
}

/** The snapshot of an answer. @throws CheckFailure when there is none, or none with an id */
export function snapshotOf(answer: { readonly snapshot?: Snapshot | undefined }): Snapshot {
  const { snapshot } = answer;
  must(snapshot !== undefined, "CreateSnapshot was answered without a snapshot; snapshot is REQUIRED");
  must(snapshot.snapshotId !== "", "CreateSnapshot was answered without a snapshot_id; it is REQUIRED");
  return snapshot;
}

/** Makes a snapshot and waits until it can be used. */
export async function makeReadySnapshot(context: CheckContext, sourceVolumeId: string): Promise<Snapshot> {
  // One request for all looks: CSI reports readiness to a CreateSnapshot that is repeated.
  const request = snapshotRequest(context, sourceVolumeId);
  return context.eventually("the snapshot was ready to use", async () => {
    const snapshot = snapshotOf(
      await mustAnswer("CreateSnapshot", context.controller.createSnapshot(request)),
    );
    return snapshot.readyToUse ? snapshot : undefined;
  });
}

/** Makes a group snapshot of new volumes. */
export async function makeGroup(
  context: CheckContext,
  sources = 2,
): Promise<{
  readonly group: VolumeGroupSnapshot;
  readonly request: { name: string; sourceVolumeIds: string[] };
}> {
  const sourceVolumeIds: string[] = [];
  for (let i = 0; i < sources; i++) sourceVolumeIds.push((await makeVolume(context)).volumeId);
  const request = { name: context.name("group"), sourceVolumeIds };
  return {
    group: groupSnapshotOf(
      await mustAnswer(
        "CreateVolumeGroupSnapshot",
        context.groupController.createVolumeGroupSnapshot(request),
      ),
    ),
    request,
  };
}

/** The group snapshot of an answer. @throws CheckFailure when there is none, or none with an id */
export function groupSnapshotOf(answer: {
  readonly groupSnapshot?: VolumeGroupSnapshot | undefined;
}): VolumeGroupSnapshot {
  const { groupSnapshot } = answer;
  must(groupSnapshot !== undefined, "the answer has no group_snapshot; it is REQUIRED");
  must(groupSnapshot.groupSnapshotId !== "", "the group snapshot has no group_snapshot_id; it is REQUIRED");
  return groupSnapshot;
}

/** Whether the volume is known to the controller, by the means that the driver has. */
export async function isKnown(
  context: CheckContext,
  volumeId: string,
  clients: Pick<ConformanceClients, "controller"> = context,
): Promise<boolean> {
  // Every controller has this call, with NOT_FOUND for an unknown id; those that list or get volumes are optional.
  const call = clients.controller.validateVolumeCapabilities({
    volumeId,
    volumeCapabilities: [capabilityOf(context)],
  });
  return call.then(
    () => true,
    (error: { readonly code?: string }) => {
      if (error.code === "NOT_FOUND") return false;
      throw error;
    },
  );
}
