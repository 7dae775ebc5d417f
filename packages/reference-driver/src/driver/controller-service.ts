/**
 * The controller service of the reference driver: CSI's words on one side, the disk cloud's on the
 * other. It keeps nothing but which volumes are being worked on, so it may crash anywhere and run more than once.
 */
import { createHash } from "node:crypto";
import {
  ControllerExpandVolumeRequestSchema,
  ControllerGetVolumeRequestSchema,
  ControllerModifyVolumeRequestSchema,
  type CsiServices,
  CsiStatusError,
  DeleteVolumeRequestSchema,
  GetCapacityRequestSchema,
  ListVolumesRequestSchema,
  ControllerServiceCapability_RPC_Type as Rpc,
  ValidateVolumeCapabilitiesRequestSchema,
} from "@longshore/csi";
import { checkCapability, unsupportedReason } from "./check-capability.ts";
import type { ControllerServiceOptions } from "./controller-service-options.ts";
import { createVolume } from "./create-volume.ts";
import { pageOf } from "./pages.ts";
import { PendingCalls } from "./pending-calls.ts";
import { publishHandlers } from "./publish-handlers.ts";
import { requestChecks } from "./request-checks.ts";
import { snapshotHandlers } from "./snapshot-handlers.ts";
import { volumeIndex } from "./volume-index.ts";
import {
  checkMutable,
  mutableReason,
  settingsOf,
  sizeOf,
  volumeBytesMax,
  volumeBytesMin,
} from "./volume-request.ts";

const capabilities = [
  Rpc.CREATE_DELETE_VOLUME,
  Rpc.LIST_VOLUMES,
  Rpc.GET_VOLUME,
  Rpc.VOLUME_CONDITION,
  Rpc.GET_CAPACITY,
  Rpc.EXPAND_VOLUME,
  Rpc.MODIFY_VOLUME,
  Rpc.SINGLE_NODE_MULTI_WRITER,
];
const attaching = [Rpc.PUBLISH_UNPUBLISH_VOLUME, Rpc.PUBLISH_READONLY, Rpc.LIST_VOLUMES_PUBLISHED_NODES];
const copying = [Rpc.CREATE_DELETE_SNAPSHOT, Rpc.LIST_SNAPSHOTS, Rpc.GET_SNAPSHOT, Rpc.CLONE_VOLUME];

/** Builds the service. */
export function controllerService(options: ControllerServiceOptions): NonNullable<CsiServices["controller"]> {
  const { cloud, kind } = options;
  const rpc = requestChecks(kind);
  const index = volumeIndex(cloud, kind);
  const pending = new PendingCalls();
  const isAttaching = kind.attachesOn === "controller";
  const declared = [...capabilities, ...(isAttaching ? attaching : []), ...(kind.isShare ? [] : copying)];

  return {
    controllerGetCapabilities: async () => ({
      capabilities: declared.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    }),

    createVolume: createVolume({ ...options, rpc, index, pending }),

    deleteVolume: rpc(DeleteVolumeRequestSchema, ["volume_id"], ({ volumeId }, signal) =>
      pending.alone(`volume ${volumeId}`, async () => {
        const disk = kind.usesDiskIds ? { id: volumeId } : await index.find(volumeId, signal);
        if (disk !== undefined) await cloud.deleteDisk(disk.id, signal);
        return {};
      }),
    ),

    validateVolumeCapabilities: rpc(
      ValidateVolumeCapabilitiesRequestSchema,
      ["volume_id", "volume_capabilities"],
      async (request, signal) => {
        await index.existing(request.volumeId, signal);
        const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request;
        const reason =
          volumeCapabilities.map((c) => unsupportedReason(c, kind)).find((r) => r !== undefined) ??
          mutableReason(mutableParameters);
        if (reason !== undefined) return { message: reason };
        return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } };
      },
    ),

    listVolumes: rpc(ListVolumesRequestSchema, [], async (request, signal) => {
      const disks = (await cloud.listDisks(signal)).filter(({ isCreating }) => !isCreating);
      const paged = disks.map((disk) => ({ id: tokenOf(disk.id), disk }));
      const page = pageOf(paged, request, /^vol-[0-9a-f]+$/);
      const conditions = await cloud.diskConditions(
        page.entries.map(({ disk }) => disk.id),
        signal,
      );
      const entries = [];
      for (const { disk } of page.entries) {
        const publishedNodeIds = isAttaching ? await index.nodeIds(disk, signal) : [];
        const volumeCondition = conditions[disk.id];
        const status = { publishedNodeIds, ...(volumeCondition && { volumeCondition }) };
        entries.push({ volume: index.shown(disk, disks), status });
      }
      return { entries, nextToken: page.nextToken };
    }),

    controllerGetVolume: rpc(ControllerGetVolumeRequestSchema, ["volume_id"], async (request, signal) => {
      const disk = await index.existing(request.volumeId, signal);
      const volumeCondition = (await cloud.diskConditions([disk.id], signal))[disk.id];
      const status = {
        publishedNodeIds: isAttaching ? await index.nodeIds(disk, signal) : [],
        ...(volumeCondition && { volumeCondition }),
      };
      return { volume: index.shown(disk), status };
    }),

    getCapacity: rpc(GetCapacityRequestSchema, [], async (request, signal) => {
      const isImpossible = request.volumeCapabilities.some((c) => unsupportedReason(c, kind) !== undefined);
      const segments = request.accessibleTopology?.segments;
      const zone = kind.topologyKey && segments?.[kind.topologyKey];
      // A place that is named without our key is not ours.
      const isElsewhere = kind.topologyKey !== undefined && segments !== undefined && zone === undefined;
      const instances = await cloud.listInstances(signal);
      const ofCloud = await cloud.listZones(signal);
      const used = [...new Set(instances.map((instance) => instance.zone))];
      // Without zones the room is everywhere.
      const zones = ofCloud.includes("") ? ofCloud : used;
      let [availableCapacity, largest] = [0n, 0n];
      for (const own of isImpossible || isElsewhere ? [] : zones) {
        if (zone !== undefined && zone !== own) continue;
        const room = await cloud.zoneCapacity(own, signal);
        // A volume lies in one zone: room that is split over zones is of no use to it.
        if (room.availableBytes > availableCapacity) availableCapacity = room.availableBytes;
        if (room.largestBytes > largest) largest = room.largestBytes;
      }
      const maximumVolumeSize = largest < volumeBytesMax ? largest : volumeBytesMax;
      return { availableCapacity, maximumVolumeSize, minimumVolumeSize: volumeBytesMin };
    }),

    controllerExpandVolume: rpc(
      ControllerExpandVolumeRequestSchema,
      ["volume_id", "capacity_range"],
      (request, signal) =>
        pending.alone(`volume ${request.volumeId}`, async () => {
          const { volumeCapability, capacityRange } = request;
          if (volumeCapability !== undefined) checkCapability(volumeCapability, kind);
          if (capacityRange?.requiredBytes === 0n && capacityRange.limitBytes === 0n) {
            throw new CsiStatusError("INVALID_ARGUMENT", "capacity_range is empty");
          }
          const sizeBytes = sizeOf(capacityRange);
          const disk = await index.existing(request.volumeId, signal);
          const grownBytes = await cloud.resizeDisk(disk.id, sizeBytes, signal);
          const isBlock = volumeCapability?.accessType.case === "block";
          return { capacityBytes: grownBytes, nodeExpansionRequired: !isBlock && !kind.isShare };
        }),
    ),

    controllerModifyVolume: rpc(
      ControllerModifyVolumeRequestSchema,
      ["volume_id", "mutable_parameters"],
      ({ volumeId, mutableParameters }, signal) =>
        pending.alone(`volume ${volumeId}`, async () => {
          const disk = await index.existing(volumeId, signal);
          checkMutable(mutableParameters);
          const { type } = mutableParameters;
          const change = { settings: settingsOf(mutableParameters), ...(type === undefined ? {} : { type }) };
          await cloud.modifyDisk(disk.id, change, signal);
          return {};
        }),
    ),

    ...(isAttaching ? publishHandlers({ cloud, kind, rpc, index, pending }) : {}),
    ...(kind.isShare ? {} : snapshotHandlers({ cloud, kind, rpc, index, pending })),
  };
}

/** A disk's id as the token of a page: ids that are not the cloud's own may be long, and names that a caller could make up. */
function tokenOf(diskId: string): string {
  return /^vol-[0-9a-f]+$/.test(diskId) ? diskId : `vol-${createHash("sha256").update(diskId).digest("hex")}`;
}
