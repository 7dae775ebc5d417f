/** Volumes and nodes as the driver names them, found in the cloud under the cloud's names. */
import { CsiStatusError, type MessageInitShape, type VolumeSchema } from "@longshore/csi";
import type { Instance } from "@longshore/volumes";
import type { ProviderCloud, ProviderDisk } from "../disk-cloud/index.ts";
import type { DriverKind } from "./driver-kinds.ts";

/** Finds and shows volumes. */
export interface VolumeIndex {
  find(volumeId: string, signal: AbortSignal): Promise<ProviderDisk | undefined>;
  /** @throws CsiStatusError NOT_FOUND */
  existing(volumeId: string, signal: AbortSignal): Promise<ProviderDisk>;
  /** @throws CsiStatusError NOT_FOUND */
  instance(nodeId: string, signal: AbortSignal): Promise<Instance>;
  /** The nodes that the disk is attached to. */
  nodeIds(disk: ProviderDisk, signal: AbortSignal): Promise<string[]>;
  /** The volume as answers have it. @param others disks among which its source may be */
  shown(disk: ProviderDisk, others?: readonly ProviderDisk[]): MessageInitShape<typeof VolumeSchema>;
}

/** The index of one cloud. */
export function volumeIndex(cloud: ProviderCloud, kind: DriverKind): VolumeIndex {
  const find = async (volumeId: string, signal: AbortSignal) => {
    if (kind.usesCloudIds) return cloud.describeDisk(volumeId, signal);
    return (await cloud.listDisks(signal)).find((disk) => kind.isVolumeId(volumeId, disk));
  };

  function contentSource(disk: ProviderDisk, others: readonly ProviderDisk[]) {
    const { source } = disk;
    if (source === undefined) return undefined;
    if (source.kind === "snapshot") {
      return { type: { case: "snapshot" as const, value: { snapshotId: source.id } } };
    }
    const original = others.find(({ id }) => id === source.id);
    const volumeId = kind.usesCloudIds ? source.id : original && kind.volumeIdOf(original);
    return volumeId === undefined ? undefined : { type: { case: "volume" as const, value: { volumeId } } };
  }

  return {
    find,
    async existing(volumeId, signal) {
      const disk = await find(volumeId, signal);
      if (disk === undefined) throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} does not exist`);
      return disk;
    },
    async instance(nodeId, signal) {
      const instance = (await cloud.listInstances(signal)).find((i) => kind.nodeIdOf(i) === nodeId);
      if (instance === undefined) throw new CsiStatusError("NOT_FOUND", `node ${nodeId} does not exist`);
      return instance;
    },
    async nodeIds(disk, signal) {
      if (disk.attachments.length === 0) return [];
      const attached = new Set(disk.attachments.map(({ instanceId }) => instanceId));
      if (kind.usesCloudIds) return [...attached];
      const instances = await cloud.listInstances(signal);
      return instances.filter((i) => attached.has(i.instanceId)).map(kind.nodeIdOf);
    },
    shown(disk, others = []) {
      const source = contentSource(disk, others);
      return {
        volumeId: kind.volumeIdOf(disk),
        capacityBytes: disk.sizeBytes,
        accessibleTopology:
          kind.topologyKey === undefined ? [] : [{ segments: { [kind.topologyKey]: disk.zone } }],
        ...(source === undefined ? {} : { contentSource: source }),
      };
    },
  };
}
