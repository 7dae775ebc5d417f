/**
 * The eight drivers that in-tree plugins migrate to, as far as the reference driver stands in for
 * them: form of their volume and node ids, and their topology key. A volume id has the form that translating
 * an in-tree volume produces, so that it names the very disk that the in-tree plugin made.
 * Source: docs/behaviour/volume-plugins.md 8.2 and 8.3.
 */
import type { Disk, Instance } from "@longshore/volumes";

/** How a driver names things. */
export interface DriverKind {
  /** Undefined: the driver has no topology. */
  readonly topologyKey: string | undefined;
  volumeIdOf(disk: Pick<Disk, "id" | "name" | "zone">): string;
  /** Whether a volume id means this disk; accepts more forms than `volumeIdOf` returns. */
  isVolumeId(volumeId: string, disk: Pick<Disk, "id" | "name" | "zone">): boolean;
  nodeIdOf(instance: Pick<Instance, "instanceId" | "nodeName" | "zone">): string;
  /** True when volume and node ids are the cloud's own: no list is needed to find one. */
  readonly usesCloudIds: boolean;
  /** Bytes that a volume id may have; default 128. Real handles of some drivers exceed the limit of the spec. */
  readonly volumeIdBytesMax?: number;
}

type Names = Pick<Disk, "id" | "name" | "zone">;

/** A driver whose volume ids are made from the disk by one function. */
function kind(
  volumeIdOf: (disk: Names) => string,
  rest: Partial<Omit<DriverKind, "volumeIdOf">> = {},
): DriverKind {
  return {
    topologyKey: undefined,
    volumeIdOf,
    isVolumeId: (volumeId, disk) => volumeId === volumeIdOf(disk),
    nodeIdOf: (instance) => instance.nodeName,
    usesCloudIds: false,
    ...rest,
  };
}

const ebs = kind((disk) => disk.id, {
  topologyKey: "topology.ebs.csi.aws.com/zone",
  nodeIdOf: (instance) => instance.instanceId,
  usesCloudIds: true,
});

const azureDisks = "/subscriptions/longshore/resourceGroups/longshore/providers/Microsoft.Compute/disks";

/** The kinds by driver name. */
export const driverKinds: Readonly<Record<string, DriverKind>> = {
  "ebs.csi.aws.com": ebs,
  "pd.csi.storage.gke.io": kind((disk) => `projects/UNSPECIFIED/zones/${disk.zone}/disks/${disk.name}`, {
    topologyKey: "topology.gke.io/zone",
    isVolumeId: isGceVolumeId,
    nodeIdOf: ({ zone, nodeName }) => `projects/longshore/zones/${zone}/instances/${nodeName}`,
  }),
  "cinder.csi.openstack.org": kind((disk) => uuidOf(disk.id), {
    topologyKey: "topology.cinder.csi.openstack.org/zone",
    nodeIdOf: (instance) => instance.instanceId,
  }),
  "disk.csi.azure.com": kind((disk) => `${azureDisks}/${disk.name}`, {
    volumeIdBytesMax: 1024,
    topologyKey: "topology.disk.csi.azure.com/zone",
    isVolumeId: (volumeId, disk) => volumeId.toLowerCase() === `${azureDisks}/${disk.name}`.toLowerCase(),
  }),
  "file.csi.azure.com": kind((disk) => `longshore#longshore#${disk.name}#`, {
    volumeIdBytesMax: 1024,
    // Later fields (disk name, secret namespace) do not distinguish one share from another.
    isVolumeId: (volumeId, disk) =>
      volumeId.split("#").slice(0, 3).join("#") === `longshore#longshore#${disk.name}`,
  }),
  "csi.vsphere.vmware.com": kind((disk) => `[longshore] kubevols/${disk.name}.vmdk`, {
    topologyKey: "topology.csi.vmware.com/zone",
    volumeIdBytesMax: 1024,
  }),
  "pxd.portworx.com": kind((disk) => disk.name),
  "rbd.csi.ceph.com": kind((disk) => `0001-0009-longshore-0000000000000001-${uuidOf(disk.id)}`),
};

/** The kind of a driver; one of its own name and topology key for a driver that is not of the eight. */
export function driverKind(driverName: string): DriverKind {
  const known = Object.hasOwn(driverKinds, driverName) ? driverKinds[driverName] : undefined;
  return known ?? { ...ebs, topologyKey: `topology.${driverName}/zone` };
}

/** The project is not compared: migrated handles have none, repaired ones have the node's. */
function isGceVolumeId(volumeId: string, disk: Names): boolean {
  const [projects, , zones, zone, disks, name, ...rest] = volumeId.split("/");
  return (
    projects === "projects" &&
    zones === "zones" &&
    disks === "disks" &&
    rest.length === 0 &&
    name === disk.name &&
    (zone === disk.zone || zone === "UNSPECIFIED")
  );
}

/** The hexadecimal part of a disk's id in the form of a UUID. */
function uuidOf(diskId: string): string {
  const hex = diskId.replace(/^vol-/, "").padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
