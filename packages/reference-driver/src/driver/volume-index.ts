/** Volumes and nodes as the driver names them, found in the cloud under the cloud's names. */
import { CsiStatusError, type MessageInitShape, type VolumeSchema } from "@longshore/csi";
import type { Instance } from "@longshore/volumes";
import type { ProviderCloud, ProviderDisk } from "../disk-cloud/index.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";
import { topologyOfZone } from "./topology-of-zone.ts";

type Texts = Readonly<Record<string, string>>;

/** Finds and shows volumes. */
export interface VolumeIndex {
  /** @param context the volume's, where the call has it */
  find(volumeId: string, signal: AbortSignal, context?: Texts): Promise<ProviderDisk | undefined>;
  /** As `find`. @throws CsiStatusError NOT_FOUND */
  existing(volumeId: string, signal: AbortSignal, context?: Texts): Promise<ProviderDisk>;
  /** @throws CsiStatusError NOT_FOUND */
  instance(nodeId: string, signal: AbortSignal): Promise<Instance>;
  /** The nodes that the disk is attached to. */
  nodeIds(disk: ProviderDisk, signal: AbortSignal): Promise<string[]>;
  /** The volume as answers have it. @param others disks among which its source may be */
  shown(disk: ProviderDisk, others?: readonly ProviderDisk[]): MessageInitShape<typeof VolumeSchema>;
}

/** The index of one cloud. */
export function volumeIndex(cloud: ProviderCloud, kind: DriverKind): VolumeIndex {
  const isMeant = (volumeId: string, disk: ProviderDisk) => kind.isMeant?.(volumeId, disk) ?? true;

  async function find(volumeId: string, signal: AbortSignal, context?: Texts) {
    const ids = kind.diskIdsOf(volumeId, context);
    for (const id of ids) {
      const disk = await cloud.describeDisk(id, signal);
      if (disk !== undefined && isMeant(volumeId, disk)) return disk;
    }
    if (ids.length > 0 || kind.isShare) return undefined;
    return (await cloud.listDisks(signal)).find((disk) => isMeant(volumeId, disk));
  }

  function contentSource(disk: ProviderDisk, others: readonly ProviderDisk[]) {
    const { source } = disk;
    if (source === undefined) return undefined;
    if (source.kind === "snapshot") {
      return { type: { case: "snapshot" as const, value: { snapshotId: source.id } } };
    }
    const original = others.find(({ id }) => id === source.id);
    const volumeId = kind.usesDiskIds ? source.id : original && kind.volumeIdOf(original);
    return volumeId === undefined ? undefined : { type: { case: "volume" as const, value: { volumeId } } };
  }

  const zonesOf = ({ zone, replicaZones = [] }: ProviderDisk) => [zone, ...replicaZones];

  return {
    find,
    async existing(volumeId, signal, context) {
      const disk = await find(volumeId, signal, context);
      if (disk === undefined) throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} does not exist`);
      return disk;
    },
    async instance(nodeId, signal) {
      const nodeName = kind.nodeNameOf?.(nodeId);
      const instance =
        nodeName === undefined
          ? (await cloud.listInstances(signal)).find(({ instanceId }) => instanceId === nodeId)
          : await cloud.describeInstance(nodeName, signal);
      if (instance === undefined || kind.nodeIdOf(instance) !== nodeId)
        throw new CsiStatusError("NOT_FOUND", `node ${nodeId} does not exist`);
      return instance;
    },
    async nodeIds(disk, signal) {
      if (disk.attachments.length === 0) return [];
      const attached = new Set(disk.attachments.map(({ instanceId }) => instanceId));
      if (kind.nodeNameOf === undefined) return [...attached];
      const instances = await cloud.listInstances(signal);
      return instances.filter((i) => attached.has(i.instanceId)).map(kind.nodeIdOf);
    },
    shown(disk, others = []) {
      const source = contentSource(disk, others);
      return {
        volumeId: kind.volumeIdOf(disk),
        capacityBytes: disk.sizeBytes,
        volumeContext: kind.volumeContextOf?.(disk) ?? {},
        accessibleTopology: zonesOf(disk).flatMap((zone) => topologyOfZone(kind, zone) ?? []),
        ...(source === undefined ? {} : { contentSource: source }),
      };
    },
  };
}
