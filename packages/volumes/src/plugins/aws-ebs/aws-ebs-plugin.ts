/**
 * The in-tree volume plugin `kubernetes.io/aws-ebs`, assembled from its halves: attaching and
 * provisioning for the controllers, mounting (aws-ebs-node-half.ts) for the node.
 */
import { invariant } from "@longshore/runtime";
import type { DiskCloud } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type {
  AttachmentListingVolumePlugin,
  DeletableVolumePlugin,
  Detacher,
  ExpandableVolumePlugin,
  InTreeAttachableVolumePlugin,
  InTreeAttacher,
  NodeExpandableVolumePlugin,
  ProvisionableVolumePlugin,
} from "../../framework/volume-plugin.ts";
import { attachEbs, detachEbs, ebsVolumesAreAttached, listEbsAttachments } from "./attach-ebs.ts";
import { createAwsEbsNodeHalf } from "./aws-ebs-node-half.ts";
import { awsEbsPluginName, diskIdOf, EbsVolumeError, ebsSourceOf } from "./ebs-volume-id.ts";
import { deleteEbs, provisionEbs } from "./provision-ebs.ts";

/** What the EBS plugin is made from. */
export interface AwsEbsPluginOptions {
  /**
   * The provider's disk API, bound to its caller (component and path). Left out where there is no
   * cloud provider; then every operation that needs one fails as Kubernetes' does.
   */
  readonly cloud?: DiskCloud;
}

/** Everything that the EBS plugin can do. */
export type AwsEbsPlugin = InTreeAttachableVolumePlugin &
  NodeExpandableVolumePlugin &
  ProvisionableVolumePlugin &
  DeletableVolumePlugin &
  ExpandableVolumePlugin &
  AttachmentListingVolumePlugin;

/** The plugin, to be given to `createVolumePluginManager`. */
export function awsEbsPlugin(options: AwsEbsPluginOptions = {}): AwsEbsPlugin {
  let initialised: VolumeHost | undefined;
  const host = (): VolumeHost => {
    invariant(initialised !== undefined, "a volume plugin is initialised before it is used");
    return initialised;
  };
  const cloud = (): DiskCloud => {
    if (options.cloud !== undefined) return options.cloud;
    throw new EbsVolumeError("Failed to get AWS Cloud Provider. GetCloudProvider returned <nil> instead");
  };
  /** A node waits for devices without asking the cloud; a controller cannot do without it. */
  const requireCloudInController = (): void => {
    if (initialised?.kubelet === undefined) cloud();
  };
  const nodeHalf = createAwsEbsNodeHalf({ host });

  return {
    pluginName: awsEbsPluginName,
    async init(given) {
      initialised = given;
    },
    getVolumeName: (spec) => ebsSourceOf(spec).volumeID,
    canSupport: (spec) =>
      spec.persistentVolume?.spec?.awsElasticBlockStore != null || spec.volume?.awsElasticBlockStore != null,
    supportsMountOption: () => true,
    newMounter: (spec, pod) => nodeHalf.newMounter(spec, pod),
    newUnmounter: (volumeName, podUID) => nodeHalf.newUnmounter(volumeName, podUID),
    constructVolumeSpec: (volumeName, mountPath) => nodeHalf.constructVolumeSpec(volumeName, mountPath),
    newDeviceMounter: () => nodeHalf.newDeviceMounter(),
    newDeviceUnmounter: () => nodeHalf.newDeviceUnmounter(),
    nodeExpand: (expand, signal) => nodeHalf.nodeExpand(expand, signal),
    canDeviceMount: async () => true,
    canAttach: async () => true,
    newAttacher(): InTreeAttacher {
      requireCloudInController();
      return {
        getDeviceMountPath: (spec) => nodeHalf.newDeviceMounter().getDeviceMountPath(spec),
        mountDevice: (spec, devicePath, path, signal) =>
          nodeHalf.newDeviceMounter().mountDevice(spec, devicePath, path, signal),
        attach: async (spec, nodeName, signal) => attachEbs(cloud(), spec, nodeName, signal),
        volumesAreAttached: async (specs, nodeName, signal) =>
          ebsVolumesAreAttached(cloud(), specs, nodeName, signal),
        waitForAttach: (spec, devicePath, signal) => nodeHalf.waitForAttach(spec, devicePath, signal),
      };
    },
    newDetacher(): Detacher {
      requireCloudInController();
      return {
        unmountDevice: (path, signal) => nodeHalf.newDeviceUnmounter().unmountDevice(path, signal),
        detach: async (volumeName, nodeName, signal) => detachEbs(cloud(), volumeName, nodeName, signal),
      };
    },
    listAttachments: async (signal) =>
      options.cloud === undefined ? [] : listEbsAttachments(options.cloud, signal),
    newProvisioner: (volumeOptions) => ({
      provision: async (selectedNode, allowedTopologies, signal) =>
        provisionEbs(cloud(), volumeOptions, selectedNode, allowedTopologies, signal),
    }),
    newDeleter: (spec) => ({
      delete: async (signal) => deleteEbs(cloud(), ebsSourceOf(spec).volumeID, signal),
    }),
    expandVolumeDevice: async (spec, newSizeBytes, _oldSizeBytes, signal) =>
      cloud().resizeDisk(diskIdOf(ebsSourceOf(spec).volumeID), newSizeBytes, signal),
    requiresFSResize: () => true,
  };
}
