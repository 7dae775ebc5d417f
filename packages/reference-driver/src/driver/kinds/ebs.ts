/** `ebs.csi.aws.com`. */
import { driverKindOf, instanceIds } from "./driver-kind.ts";

/** Amazon EBS. */
export const ebs = driverKindOf("aws-ebs", {
  topologyKey: "topology.ebs.csi.aws.com/zone",
  regionOfZone: (zone) => /^([a-z]+-){2,3}\d[a-z]$/.exec(zone)?.[0].slice(0, -1),
  ...instanceIds,
  parameters: [
    ...["type", "iops", "iopspergb", "allowautoiopspergbincrease", "throughput", "encrypted", "kmskeyid"],
    ...["fstype", "blocksize", "inodesize", "bytesperinode", "numberofinodes", "blockexpress"],
    ...["ext4bigalloc", "ext4clustersize"],
  ],
  type: { parameter: "type", standard: "gp3" },
});
