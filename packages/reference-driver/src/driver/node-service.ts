/**
 * The node service of the reference driver: stages a disk's file system and binds it to pods.
 *
 * Invariants
 *  - What is mounted decides: after a crash at any `await` the same call brings things to their end.
 *  - The device is the one that the cloud has attached here now. A path in a publish context may be old,
 *    and a device name is used again for another disk.
 *  - A device that holds a file system is never formatted; a directory with data is never removed.
 */
import {
  type CsiServices,
  CsiStatusError,
  NodeExpandVolumeRequestSchema,
  NodeGetVolumeStatsRequestSchema,
  NodePublishVolumeRequestSchema,
  NodeStageVolumeRequestSchema,
  NodeUnpublishVolumeRequestSchema,
  NodeUnstageVolumeRequestSchema,
  NodeServiceCapability_RPC_Type as Rpc,
} from "@longshore/csi";
import type { Host } from "@longshore/runtime";
import type { CloudCredentials, Instance } from "@longshore/volumes";
import type { ProviderCloud, ProviderDisk } from "../disk-cloud/index.ts";
import { isReaderMode } from "./check-capability.ts";
import { isEphemeral } from "./ephemeral-volume.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";
import type { NodeAttachment, NodeMachine, StageRequest } from "./node-machine.ts";
import { publishVolume, unpublishVolume } from "./node-publish.ts";
import { nodeRecords } from "./node-records.ts";
import { stageVolume, unstageVolume } from "./node-stage.ts";
import { expandVolume, volumeStats } from "./node-stats.ts";
import { PendingCalls } from "./pending-calls.ts";
import { publishEphemeral } from "./publish-ephemeral.ts";
import { requestChecks } from "./request-checks.ts";
import { answering } from "./statuses.ts";
import { topologyOfZone } from "./topology-of-zone.ts";
import { volumeIndex } from "./volume-index.ts";

const capabilities = [
  Rpc.STAGE_UNSTAGE_VOLUME,
  Rpc.GET_VOLUME_STATS,
  Rpc.EXPAND_VOLUME,
  Rpc.VOLUME_CONDITION,
  Rpc.SINGLE_NODE_MULTI_WRITER,
  Rpc.VOLUME_MOUNT_GROUP,
];

/** What the service needs. */
export interface NodeServiceOptions {
  readonly host: Host;
  readonly cloud: ProviderCloud;
  readonly kind: DriverKind;
  readonly nodeName: string;
  /** Where it keeps how volumes were staged and published; undefined: in memory. */
  readonly recordsFile: string | undefined;
  /** The file system of a blank volume for which none is asked. */
  readonly defaultFsType: string;
  /** Where ephemeral volumes are made; undefined: the driver makes none. */
  readonly ephemeralDir: string | undefined;
}

/** Builds the service. */
export function nodeService(options: NodeServiceOptions): NonNullable<CsiServices["node"]> {
  const { host, cloud, kind, nodeName, recordsFile, defaultFsType, ephemeralDir } = options;
  const rpc = requestChecks(kind);
  const pending = new PendingCalls();
  const index = volumeIndex(cloud, kind);

  async function thisInstance(signal: AbortSignal): Promise<Instance> {
    const instance = await cloud.describeInstance(nodeName, signal);
    if (instance === undefined) {
      throw new CsiStatusError(
        "UNAVAILABLE",
        `the disk cloud has no instance for node ${nodeName}: register it`,
      );
    }
    return instance;
  }

  const records = nodeRecords(host, recordsFile);

  /** A disk that is staged here is known by its own id: the handle of an image may lack its pool. */
  async function diskOf(volumeId: string, signal: AbortSignal): Promise<ProviderDisk> {
    const { stagings } = await records.of(volumeId);
    const diskId = Object.values(stagings).find((staging) => staging.diskId !== undefined)?.diskId;
    const staged = diskId === undefined ? undefined : await cloud.describeDisk(diskId, signal);
    return staged ?? index.existing(volumeId, signal);
  }

  async function attachmentOf(
    volumeId: string,
    disk: ProviderDisk,
    signal: AbortSignal,
  ): Promise<NodeAttachment> {
    if (kind.isShare) return { devicePath: "", readOnly: false, mayBeSmaller: false };
    const { instanceId } = await thisInstance(signal);
    const attachment = disk.attachments.find((a) => a.instanceId === instanceId);
    if (attachment === undefined || attachment.devicePath === "") {
      const first = kind.attachesOn === "node" ? "NodeStageVolume" : "ControllerPublishVolume";
      throw new CsiStatusError(
        "FAILED_PRECONDITION",
        `volume ${volumeId} is not attached to node ${nodeName}: ${first} comes first`,
      );
    }
    const { readOnly = false } = attachment;
    // What is mounted is listed by the device itself, not by its name.
    const devicePath = (await host.readLink(attachment.devicePath)) ?? attachment.devicePath;
    const mayBeSmaller = disk.source !== undefined || disk.sizeBytes > disk.createdBytes;
    return { devicePath, readOnly, mayBeSmaller, fsType: kind.fsTypeOf?.(disk) };
  }

  /** What proves that the node may have the volume; a share's key the node can ask for itself. */
  async function proofOf(
    { secrets }: StageRequest,
    diskId: string,
    signal: AbortSignal,
  ): Promise<CloudCredentials | undefined> {
    const given = kind.credentialsOf?.(secrets);
    return given === undefined && kind.isShare ? cloud.shareCredentials(diskId, signal) : given;
  }

  const node: NodeMachine = {
    host,
    kind,
    records,
    defaultFsType,
    existing: diskOf,
    attachment: async (volumeId, signal) => attachmentOf(volumeId, await diskOf(volumeId, signal), signal),
    async open(request, signal) {
      const { volumeId, volumeContext, capability } = request;
      const disk = await index.existing(volumeId, signal, volumeContext);
      if (kind.attachesOn === "controller") {
        return { diskId: disk.id, ...(await attachmentOf(volumeId, disk, signal)) };
      }
      const credentials = await proofOf(request, disk.id, signal);
      const { instanceId } = await thisInstance(signal);
      const { devicePath } = await cloud.attachDisk(disk.id, instanceId, signal, {
        ...(kind.attachesReaders && isReaderMode(capability) ? { readOnly: true } : {}),
        ...(credentials === undefined ? {} : { credentials }),
      });
      if (kind.isShare) return { diskId: disk.id, devicePath, readOnly: false, mayBeSmaller: false };
      const attached = (await cloud.describeDisk(disk.id, signal)) ?? disk;
      return { diskId: disk.id, ...(await attachmentOf(volumeId, attached, signal)) };
    },
    async close(volumeId, signal) {
      if (kind.attachesOn === "controller" || kind.isShare) return;
      const { stagings } = await records.of(volumeId);
      const known = Object.values(stagings).find((staging) => staging.diskId !== undefined)?.diskId;
      const diskId = known ?? (await index.find(volumeId, signal))?.id;
      if (diskId !== undefined)
        await cloud.detachDisk(diskId, (await thisInstance(signal)).instanceId, signal);
    },
  };
  const alone = <T>(volumeId: string, work: () => Promise<T>) => pending.alone(`volume ${volumeId}`, work);

  return {
    nodeGetCapabilities: async () => ({
      capabilities: capabilities.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    }),
    nodeGetInfo: (_request, signal) =>
      answering(async () => {
        const instance = await thisInstance(signal);
        const accessibleTopology = topologyOfZone(kind, instance.zone);
        return {
          nodeId: kind.nodeIdOf(instance),
          // Zero says that there is no limit.
          maxVolumesPerNode: BigInt(
            instance.attachLimit === Number.MAX_SAFE_INTEGER ? 0 : instance.attachLimit,
          ),
          ...(accessibleTopology === undefined ? {} : { accessibleTopology }),
        };
      }),
    nodeStageVolume: rpc(
      NodeStageVolumeRequestSchema,
      ["volume_id", "staging_target_path", "volume_capability"],
      (request, signal) => alone(request.volumeId, () => stageVolume(node, request, signal)),
    ),
    nodeUnstageVolume: rpc(
      NodeUnstageVolumeRequestSchema,
      ["volume_id", "staging_target_path"],
      (request, signal) => alone(request.volumeId, () => unstageVolume(node, request, signal)),
    ),
    nodePublishVolume: rpc(
      NodePublishVolumeRequestSchema,
      ["volume_id", "target_path", "volume_capability"],
      (request, signal) =>
        alone(request.volumeId, () =>
          ephemeralDir !== undefined && isEphemeral(request.volumeContext)
            ? publishEphemeral(node, ephemeralDir, request)
            : publishVolume(node, request, signal),
        ),
    ),
    nodeUnpublishVolume: rpc(NodeUnpublishVolumeRequestSchema, ["volume_id", "target_path"], (request) =>
      alone(request.volumeId, () => unpublishVolume(node, request)),
    ),
    nodeGetVolumeStats: rpc(
      NodeGetVolumeStatsRequestSchema,
      ["volume_id", "volume_path"],
      (request, signal) => volumeStats(node, request, signal),
    ),
    nodeExpandVolume: rpc(NodeExpandVolumeRequestSchema, ["volume_id", "volume_path"], (request, signal) =>
      alone(request.volumeId, () => expandVolume(node, request, signal)),
    ),
  };
}
