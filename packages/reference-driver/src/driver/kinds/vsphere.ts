/** `csi.vsphere.vmware.com`. */
import { driverKindOf, renamed, shortNames } from "./driver-kind.ts";

const migration = [
  ...["datastore", "diskformat", "hostfailurestotolerate", "forceprovisioning", "cachereservation"],
  ...["diskstripes", "objectspacereservation", "iopslimit"],
].map((name) => `${name}-migrationparam`);

/** vSphere. A volume's id is the path of its disk, also of one that it made itself: docs/decisions/0012-reference-driver.md. */
export const vsphere = driverKindOf("vsphere-volume", {
  volumeIdBytesMax: 1024,
  diskNameOf: shortNames(63),
  parameters: ["storagepolicyname", "datastoreurl", "fstype", "csimigration", ...migration],
  type: { parameter: "diskformat-migrationparam", standard: "thin" },
  policyParameter: "storagepolicyname",
  tagsOf: (parameters) =>
    renamed(parameters, { "datastore-migrationparam": "datastore", csimigration: "csimigration" }),
  // What the in-tree form of a volume needs; classes that were translated ask for it.
  volumeContextOf: ({ id, tags }) => (tags.csimigration === "true" ? { initialvolumefilepath: id } : {}),
});
