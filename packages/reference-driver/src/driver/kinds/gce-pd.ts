/** `pd.csi.storage.gke.io`. */
import { type DriverKind, driverKindOf, manyReaders, type NamedDisk, shortNames } from "./driver-kind.ts";

const project = "projects/UNSPECIFIED";

/** Google Compute Engine persistent disks, in one zone or in two (`replication-type: regional-pd`). */
export const gcePd: DriverKind = driverKindOf("gce-pd", {
  topologyKey: "topology.gke.io/zone",
  regionOfZone: (zone) => (zone.split("-").length === 3 ? regionOf(zone) : undefined),
  usesDiskIds: false,
  volumeIdOf: (disk) => `${project}/${placeOf(disk)}/disks/${disk.name}`,
  diskIdsOf: (volumeId) => [volumeId.split("/")[5] ?? ""],
  isMeant: isGceVolumeId,
  nodeIdOf: ({ zone, nodeName }) => `projects/longshore/zones/${zone}/instances/${nodeName}`,
  nodeNameOf: (nodeId) => nodeId.split("/")[5] ?? "",
  sharedModes: manyReaders,
  attachesReaders: true,
  diskNameOf: shortNames(63),
  parameters: [
    ...["type", "replication-type", "disk-encryption-kms-key", "labels", "fstype"],
    ...["provisioned-iops-on-create", "provisioned-throughput-on-create", "resource-tags"],
  ],
  type: { parameter: "type", standard: "pd-standard" },
  zonesOf: (parameters) => (parameters["replication-type"] === "regional-pd" ? 2 : 1),
});

function placeOf({ zone, replicaZones = [] }: NamedDisk): string {
  return replicaZones.length > 0 ? `regions/${regionOf(zone)}` : `zones/${zone}`;
}

/** A zone is named after its region. */
function regionOf(zone: string): string {
  return zone.split("-").slice(0, 2).join("-");
}

/** The project is not compared: migrated handles have none, repaired ones have the node's. */
function isGceVolumeId(volumeId: string, disk: NamedDisk): boolean {
  const [projects, , kind, place, disks, name, ...rest] = volumeId.split("/");
  const [ownKind, own] = placeOf(disk).split("/");
  return (
    projects === "projects" &&
    disks === "disks" &&
    rest.length === 0 &&
    name === disk.name &&
    (place === "UNSPECIFIED" ? kind === "zones" || kind === "regions" : kind === ownKind && place === own)
  );
}
