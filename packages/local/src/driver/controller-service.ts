/**
 * The controller service of the reference driver: CSI's words on one side, the disk cloud's on the
 * other. It keeps nothing between calls, so it may crash anywhere and run more than once.
 */
import {
  type CreateVolumeRequest,
  type CsiServices,
  CsiStatusError,
  ControllerServiceCapability_RPC_Type as Rpc,
  type TopologyRequirement,
} from "@longshore/csi";
import type { Disk, DiskCloud, Instance } from "@longshore/volumes";
import { checkCapability, unsupportedReason } from "./capabilities.ts";
import type { DriverKind } from "./driver-kinds.ts";
import { answering, required } from "./statuses.ts";

const gibibyte = 1024n ** 3n;
/** The driver of EBS makes gp3 volumes unless it is told otherwise. */
const defaultType = "gp3";
/** What a zone that exists seems to have room for. */
const capacityBytes = 2n ** 50n;

const capabilities = [
  Rpc.CREATE_DELETE_VOLUME,
  Rpc.PUBLISH_UNPUBLISH_VOLUME,
  Rpc.LIST_VOLUMES,
  Rpc.LIST_VOLUMES_PUBLISHED_NODES,
  Rpc.GET_CAPACITY,
  Rpc.EXPAND_VOLUME,
];

/** What the service needs. */
export interface ControllerServiceOptions {
  readonly cloud: DiskCloud;
  readonly kind: DriverKind;
  /** Where a volume is made when the caller does not care; default the zones of the instances, in turn. */
  readonly zone: string | undefined;
}

/** Builds the service. */
export function controllerService(options: ControllerServiceOptions): NonNullable<CsiServices["controller"]> {
  const { cloud, kind } = options;

  async function findDisk(volumeId: string, signal: AbortSignal): Promise<Disk | undefined> {
    if (kind.usesCloudIds) return cloud.describeDisk(volumeId, signal);
    return (await cloud.listDisks(signal)).find((disk) => kind.isVolumeId(volumeId, disk));
  }

  async function existingDisk(volumeId: string, signal: AbortSignal): Promise<Disk> {
    const disk = await findDisk(volumeId, signal);
    if (disk === undefined) throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} does not exist`);
    return disk;
  }

  async function existingInstance(nodeId: string, signal: AbortSignal): Promise<Instance> {
    const instance = (await cloud.listInstances(signal)).find((i) => kind.nodeIdOf(i) === nodeId);
    if (instance === undefined) throw new CsiStatusError("NOT_FOUND", `node ${nodeId} does not exist`);
    return instance;
  }

  async function nodeIdsOf(disk: Disk, signal: AbortSignal): Promise<string[]> {
    if (disk.attachments.length === 0) return [];
    const attached = new Set(disk.attachments.map(({ instanceId }) => instanceId));
    if (kind.usesCloudIds) return [...attached];
    return (await cloud.listInstances(signal)).filter((i) => attached.has(i.instanceId)).map(kind.nodeIdOf);
  }

  const volumeOf = (disk: Disk) => ({
    volumeId: kind.volumeIdOf(disk),
    capacityBytes: disk.sizeBytes,
    accessibleTopology:
      kind.topologyKey === undefined ? [] : [{ segments: { [kind.topologyKey]: disk.zone } }],
  });

  return {
    controllerGetCapabilities: async () => ({
      capabilities: capabilities.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    }),

    createVolume: (request, signal) =>
      answering(async () => {
        required({ name: request.name, volume_capabilities: request.volumeCapabilities });
        for (const capability of request.volumeCapabilities) checkCapability(capability);
        if (request.volumeContentSource !== undefined) {
          throw new CsiStatusError("INVALID_ARGUMENT", "volume_content_source is not supported");
        }
        const sizeBytes = sizeOf(request.capacityRange);
        const present = (await cloud.listDisks(signal)).find((disk) => disk.name === request.name);
        const allowed = allowedZones(request.accessibilityRequirements, kind.topologyKey);
        // A repeated request may prefer another zone, but the volume is where it is.
        const zone =
          present !== undefined && (allowed === undefined || allowed.includes(present.zone))
            ? present.zone
            : (allowed?.[0] ?? (await anyZone(options, request.name, signal)));
        const disk = await cloud.createDisk(
          { name: request.name, zone, sizeBytes, type: typeOf(request), tags: tagsOf(request) },
          signal,
        );
        return { volume: volumeOf(disk) };
      }),

    deleteVolume: (request, signal) =>
      answering(async () => {
        required({ volume_id: request.volumeId });
        const disk = kind.usesCloudIds ? { id: request.volumeId } : await findDisk(request.volumeId, signal);
        if (disk !== undefined) await cloud.deleteDisk(disk.id, signal);
        return {};
      }),

    controllerPublishVolume: (request, signal) =>
      answering(async () => {
        required({ volume_id: request.volumeId, node_id: request.nodeId });
        checkCapability(request.volumeCapability);
        if (request.readonly) {
          throw new CsiStatusError(
            "INVALID_ARGUMENT",
            "readonly is not supported: PUBLISH_READONLY is not offered",
          );
        }
        const diskId = kind.usesCloudIds
          ? request.volumeId
          : (await existingDisk(request.volumeId, signal)).id;
        const instanceId = kind.usesCloudIds
          ? request.nodeId
          : (await existingInstance(request.nodeId, signal)).instanceId;
        const { devicePath } = await cloud.attachDisk(diskId, instanceId, signal);
        return { publishContext: { devicePath } };
      }),

    controllerUnpublishVolume: (request, signal) =>
      answering(async () => {
        required({ volume_id: request.volumeId });
        if (kind.usesCloudIds && request.nodeId !== "") {
          await cloud.detachDisk(request.volumeId, request.nodeId, signal);
          return {};
        }
        const disk = await findDisk(request.volumeId, signal);
        if (disk === undefined) return {};
        const instances = await cloud.listInstances(signal);
        for (const { instanceId } of disk.attachments) {
          const instance = instances.find((i) => i.instanceId === instanceId);
          const isMeant =
            request.nodeId === "" || (instance !== undefined && kind.nodeIdOf(instance) === request.nodeId);
          if (isMeant) await cloud.detachDisk(disk.id, instanceId, signal);
        }
        return {};
      }),

    validateVolumeCapabilities: (request, signal) =>
      answering(async () => {
        required({ volume_id: request.volumeId, volume_capabilities: request.volumeCapabilities });
        await existingDisk(request.volumeId, signal);
        const reason = request.volumeCapabilities.map(unsupportedReason).find((r) => r !== undefined);
        if (reason !== undefined) return { message: reason };
        const { volumeContext, volumeCapabilities, parameters } = request;
        return { confirmed: { volumeContext, volumeCapabilities, parameters } };
      }),

    listVolumes: (request, signal) =>
      answering(async () => {
        if (request.maxEntries < 0) throw new CsiStatusError("INVALID_ARGUMENT", "max_entries is negative");
        const disks = [...(await cloud.listDisks(signal))].sort((a, b) => (a.id < b.id ? -1 : 1));
        const { startingToken } = request;
        // A token is the last id given, so that it holds while volumes come and go.
        if (startingToken !== "" && !/^vol-[0-9a-f]+$/.test(startingToken)) {
          throw new CsiStatusError(
            "ABORTED",
            `starting_token ${startingToken} is not one of this driver's: begin anew`,
          );
        }
        const rest = disks.filter((disk) => disk.id > startingToken);
        const page = request.maxEntries === 0 ? rest : rest.slice(0, request.maxEntries);
        const entries = [];
        for (const disk of page) {
          entries.push({
            volume: volumeOf(disk),
            status: { publishedNodeIds: await nodeIdsOf(disk, signal) },
          });
        }
        return { entries, nextToken: page.length < rest.length ? (page.at(-1)?.id ?? "") : "" };
      }),

    getCapacity: (request, signal) =>
      answering(async () => {
        const isImpossible = request.volumeCapabilities.some((c) => unsupportedReason(c) !== undefined);
        const zone = kind.topologyKey && request.accessibleTopology?.segments[kind.topologyKey];
        const zones = (await cloud.listInstances(signal)).map((instance) => instance.zone);
        const isElsewhere = zone !== undefined && !zones.includes(zone);
        return { availableCapacity: isImpossible || isElsewhere ? 0n : capacityBytes };
      }),

    controllerExpandVolume: (request, signal) =>
      answering(async () => {
        required({ volume_id: request.volumeId, capacity_range: request.capacityRange });
        const disk = await existingDisk(request.volumeId, signal);
        const grownBytes = await cloud.resizeDisk(disk.id, sizeOf(request.capacityRange), signal);
        const isBlock = request.volumeCapability?.accessType.case === "block";
        return { capacityBytes: grownBytes, nodeExpansionRequired: !isBlock };
      }),
  };
}

/** Whole GiB, at least one. @throws CsiStatusError INVALID_ARGUMENT or OUT_OF_RANGE */
export function sizeOf(
  range: { readonly requiredBytes: bigint; readonly limitBytes: bigint } | undefined,
): bigint {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {};
  if (requiredBytes < 0n || limitBytes < 0n) {
    throw new CsiStatusError("INVALID_ARGUMENT", "capacity_range is negative");
  }
  if (limitBytes !== 0n && limitBytes < requiredBytes) {
    throw new CsiStatusError("INVALID_ARGUMENT", "capacity_range.limit_bytes is below required_bytes");
  }
  const sizeBytes = ((requiredBytes + gibibyte - 1n) / gibibyte || 1n) * gibibyte;
  if (limitBytes !== 0n && sizeBytes > limitBytes) {
    throw new CsiStatusError(
      "OUT_OF_RANGE",
      `volumes have whole GiB: ${sizeBytes} bytes are needed, ${limitBytes} allowed`,
    );
  }
  return sizeBytes;
}

/** Zones that will do, best first; undefined when any will. @throws CsiStatusError RESOURCE_EXHAUSTED */
function allowedZones(
  requirement: TopologyRequirement | undefined,
  topologyKey: string | undefined,
): readonly string[] | undefined {
  if (requirement === undefined || topologyKey === undefined) return undefined;
  const terms = [...requirement.preferred, ...requirement.requisite];
  if (terms.length === 0) return undefined;
  const zones = terms.map(({ segments }) => segments[topologyKey]).filter((zone) => zone !== undefined);
  if (zones.length === 0) {
    throw new CsiStatusError(
      "RESOURCE_EXHAUSTED",
      `no topology that is asked for has the key ${topologyKey}`,
    );
  }
  return [...new Set(zones)];
}

async function anyZone(
  options: ControllerServiceOptions,
  name: string,
  signal: AbortSignal,
): Promise<string> {
  if (options.zone !== undefined) return options.zone;
  const zones = [...new Set((await options.cloud.listInstances(signal)).map((i) => i.zone))].sort();
  let sum = 0;
  for (const char of name) sum += char.codePointAt(0) ?? 0;
  const zone = zones[sum % zones.length];
  if (zone === undefined)
    throw new CsiStatusError("RESOURCE_EXHAUSTED", "the disk cloud has no instance, so no zone");
  return zone;
}

/** Keys of class parameters may come in any case. */
function typeOf(request: CreateVolumeRequest): string {
  return Object.entries(request.parameters).find(([key]) => key.toLowerCase() === "type")?.[1] || defaultType;
}

function tagsOf(request: CreateVolumeRequest): Record<string, string> {
  const metadata = "csi.storage.k8s.io/";
  const given = Object.entries(request.parameters).filter(([key]) => key.startsWith(metadata));
  return { CSIVolumeName: request.name, ...Object.fromEntries(given) };
}
