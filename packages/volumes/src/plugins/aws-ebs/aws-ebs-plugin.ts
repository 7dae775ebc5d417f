/** The in-tree volume plugin `kubernetes.io/aws-ebs`. */
import type { DiskDescription } from "../disk/disk-description.ts";
import { type DiskPlugin, diskPlugin, type InTreePluginOptions } from "../disk/disk-plugin.ts";
import { ebsProvisioning } from "./ebs-provisioning.ts";
import { ebsNames } from "./ebs-volume-id.ts";

const pluginName = "kubernetes.io/aws-ebs";

/** Disks of an instance, one of 40 being its own. Source: upstream volume/util/attach_limit.go. */
const limit = 39;
/** Instances of the Nitro system share fewer among disks and network interfaces. */
const nitroLimit = 25;
const nitroTypes = /^[cmr]5.*|t3|z1d/;

/** AWS Elastic Block Store. */
export const awsEbs: DiskDescription<"awsElasticBlockStore"> = {
  pluginName,
  provider: "aws-ebs",
  sourceField: "awsElasticBlockStore",
  label: "EBS",
  withoutCloud: "Failed to get AWS Cloud Provider. GetCloudProvider returned <nil> instead",
  readSource: ({ volumeID, fsType = "", partition = 0 }) => ({ volumeName: volumeID, fsType, partition }),
  sourceNamed: (volumeID) => ({ awsElasticBlockStore: { volumeID } }),
  names: ebsNames,
  attached: { by: "controller" },
  provisioning: ebsProvisioning(pluginName),
  expansion: "online",
  limits: {
    key: "attachable-volumes-aws-ebs",
    ofInstanceType: (type) => (nitroTypes.test(type) ? nitroLimit : limit),
  },
};

/** The plugin, to be given to `createVolumePluginManager`. */
export function awsEbsPlugin(options: InTreePluginOptions = {}): DiskPlugin {
  return diskPlugin(awsEbs, options);
}
