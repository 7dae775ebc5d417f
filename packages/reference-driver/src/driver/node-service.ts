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
import type { Instance } from "@longshore/volumes";
import type { ProviderCloud } from "../disk-cloud/index.ts";
import type { DriverKind } from "./driver-kinds.ts";
import type { NodeMachine } from "./node-machine.ts";
import { publishVolume, unpublishVolume } from "./node-publish.ts";
import { nodeRecords } from "./node-records.ts";
import { stageVolume, unstageVolume } from "./node-stage.ts";
import { expandVolume, volumeStats } from "./node-stats.ts";
import { PendingCalls } from "./pending-calls.ts";
import { requestChecks } from "./request-checks.ts";
import { answering } from "./statuses.ts";
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
}

/** Builds the service. */
export function nodeService(options: NodeServiceOptions): NonNullable<CsiServices["node"]> {
  const { host, cloud, kind, nodeName, recordsFile, defaultFsType } = options;
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

  const node: NodeMachine = {
    host,
    records: nodeRecords(host, recordsFile),
    defaultFsType,
    existing: index.existing,
    async attachment(volumeId, signal) {
      const disk = await index.existing(volumeId, signal);
      const { instanceId } = await thisInstance(signal);
      const attachment = disk.attachments.find((a) => a.instanceId === instanceId);
      if (attachment === undefined || attachment.devicePath === "") {
        throw new CsiStatusError(
          "FAILED_PRECONDITION",
          `volume ${volumeId} is not attached to node ${nodeName}: ControllerPublishVolume comes first`,
        );
      }
      const { readOnly = false } = attachment;
      // What is mounted is listed by the device itself, not by its name.
      const devicePath = (await host.readLink(attachment.devicePath)) ?? attachment.devicePath;
      const mayBeSmaller = disk.source !== undefined || disk.sizeBytes > disk.createdBytes;
      return { devicePath, readOnly, mayBeSmaller };
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
        return {
          nodeId: kind.nodeIdOf(instance),
          maxVolumesPerNode: BigInt(instance.attachLimit),
          ...(kind.topologyKey === undefined
            ? {}
            : { accessibleTopology: { segments: { [kind.topologyKey]: instance.zone } } }),
        };
      }),
    nodeStageVolume: rpc(
      NodeStageVolumeRequestSchema,
      ["volume_id", "staging_target_path", "volume_capability"],
      (request, signal) => alone(request.volumeId, () => stageVolume(node, request, signal)),
    ),
    nodeUnstageVolume: rpc(NodeUnstageVolumeRequestSchema, ["volume_id", "staging_target_path"], (request) =>
      alone(request.volumeId, () => unstageVolume(node, request)),
    ),
    nodePublishVolume: rpc(
      NodePublishVolumeRequestSchema,
      ["volume_id", "target_path", "volume_capability"],
      (request, signal) => alone(request.volumeId, () => publishVolume(node, request, signal)),
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
