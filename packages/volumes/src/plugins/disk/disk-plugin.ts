/**
 * The in-tree plugin of a provider of disks, made from its description: attaching and provisioning for the
 * controllers, mounting and mapping for the node.
 */
import type { Pod } from "@longshore/kube";
import { invariant } from "@longshore/runtime";
import type { DiskCloud } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type {
  AttachmentListingVolumePlugin,
  BlockVolumeMapper,
  BlockVolumePlugin,
  BlockVolumeUnmapper,
  DeletableVolumePlugin,
  Detacher,
  DeviceMounter,
  ExpandableVolumePlugin,
  GlobalMountsVolumePlugin,
  InTreeAttachableVolumePlugin,
  InTreeAttacher,
  NodeExpandableVolumePlugin,
  ProvisionableVolumePlugin,
  VolumePluginWithAttachLimits,
} from "../../framework/volume-plugin.ts";
import { isBlockSpec, type VolumeSpec } from "../../framework/volume-spec.ts";
import { growInTree } from "../grow-in-tree.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import {
  attachDisk,
  type ControllerDisks,
  detachDisk,
  disksAreAttached,
  listDiskAttachments,
} from "./attach-disk.ts";
import { type AttachingNode, attachOnNode, detachFromNode, detachingOnFailure } from "./attach-on-node.ts";
import { blockVolume, blockVolumeOf, constructBlockVolumeSpec } from "./block-volumes.ts";
import { type DiskDescription, diskSourceOf } from "./disk-description.ts";
import {
  constructVolumeSpec,
  type DiskNode,
  deviceMounter,
  kubeletOf,
  listGlobalMounts,
  podMounter,
  podUnmounter,
  unmountDevice,
  waitForDevice,
} from "./disk-node-half.ts";
import { globalMapPath, globalMountPath, volumeNameOfGlobalMap } from "./global-directories.ts";
import { deleteDisk, diskProvisioner, growDisk } from "./provision-disk.ts";
import { hasSource } from "./volume-source.ts";

/** What an in-tree plugin is made from. */
export interface InTreePluginOptions {
  /**
   * The provider's disk API, bound to its caller (component and path). Left out where there is no
   * cloud provider; then every operation that needs one fails as Kubernetes' does.
   */
  readonly cloud?: DiskCloud;
}

/** Everything that a plugin of disks can do. */
export type DiskPlugin = InTreeAttachableVolumePlugin &
  NodeExpandableVolumePlugin &
  ProvisionableVolumePlugin &
  DeletableVolumePlugin &
  AttachmentListingVolumePlugin &
  GlobalMountsVolumePlugin &
  BlockVolumePlugin &
  Partial<ExpandableVolumePlugin & VolumePluginWithAttachLimits>;

/** The plugin, to be given to `createVolumePluginManager`. */
export function diskPlugin(disks: DiskDescription, options: InTreePluginOptions = {}): DiskPlugin {
  let initialised: VolumeHost | undefined;
  const cloud = (): DiskCloud => {
    if (options.cloud !== undefined) return options.cloud;
    throw new InTreeVolumeError(disks.withoutCloud);
  };
  const node = (): DiskNode => {
    invariant(initialised !== undefined, "a volume plugin is initialised before it is used");
    return { disks, host: initialised, cloud };
  };
  return {
    pluginName: disks.pluginName,
    async init(given) {
      initialised = given;
    },
    getVolumeName: (spec) => diskSourceOf(disks, spec).volumeName,
    canSupport: (spec) => hasSource(spec, disks.sourceField),
    supportsMountOption: () => true,
    canDeviceMount: async () => true,
    canAttach: async () => true,
    newMounter: async (spec, pod) => podMounter(node(), spec, pod),
    newUnmounter: async (volumeName, podUID) => podUnmounter(node(), volumeName, podUID),
    constructVolumeSpec: (volumeName, mountPath) => constructVolumeSpec(node(), volumeName, mountPath),
    listGlobalMounts: () => listGlobalMounts(node()),
    nodeExpand: (expand) => growInTree(kubeletOf(node()).host, expand, (spec) => diskSourceOf(disks, spec)),
    newProvisioner: (volumeOptions) =>
      diskProvisioner(disks.provisioning, cloud, () => node().host, volumeOptions),
    newDeleter: (spec) => ({ delete: async (signal) => deleteDisk(disks, cloud(), spec, signal) }),
    ...attachingPart(disks, options, node, () => initialised),
    ...(disks.expansion !== undefined && expanding(disks, cloud)),
    ...(disks.limits !== undefined && limiting(disks.limits)),
  };
}

/** What differs by who attaches. */
type AttachingPart = Pick<
  DiskPlugin,
  | "newAttacher"
  | "newDetacher"
  | "newDeviceMounter"
  | "newDeviceUnmounter"
  | "listAttachments"
  | "newBlockVolumeMapper"
  | "newBlockVolumeUnmapper"
  | "constructBlockVolumeSpec"
>;

function attachingPart(
  disks: DiskDescription,
  options: InTreePluginOptions,
  node: () => DiskNode,
  host: () => VolumeHost | undefined,
): AttachingPart {
  const { attached } = disks;
  return attached.by === "controller"
    ? attachingInController({ ...disks, attached }, options, node, host)
    : attachingOnNode(() => ({ ...node(), attached }));
}

function attachingInController(
  disks: ControllerDisks,
  { cloud }: InTreePluginOptions,
  node: () => DiskNode,
  host: () => VolumeHost | undefined,
): AttachingPart {
  const required = (): DiskCloud => {
    if (cloud !== undefined) return cloud;
    throw new InTreeVolumeError(disks.withoutCloud);
  };
  /** A node waits for devices without asking the cloud; a controller cannot do without it. */
  const requireCloudInController = (): void => {
    if (host()?.kubelet === undefined) required();
  };
  const newDeviceUnmounter = () => ({
    unmountDevice: (path: string) => unmountDevice(node(), path, async () => {}),
  });
  return {
    newDeviceMounter: () => deviceMounter(node()),
    newAttacher(): InTreeAttacher {
      requireCloudInController();
      return {
        ...mountingOf(node),
        attach: async (spec, nodeName, signal) => attachDisk(disks, required(), spec, nodeName, signal),
        volumesAreAttached: async (specs, nodeName, signal) =>
          disksAreAttached(disks, required(), specs, nodeName, signal),
        waitForAttach: async (spec, devicePath, signal) =>
          waitForDevice(node(), disks.attached, spec, devicePath, signal),
      };
    },
    newDetacher(): Detacher {
      requireCloudInController();
      return {
        ...newDeviceUnmounter(),
        detach: async (volumeName, nodeName, signal) =>
          detachDisk(disks, required(), volumeName, nodeName, signal),
      };
    },
    newDeviceUnmounter,
    listAttachments: async (signal) => (cloud === undefined ? [] : listDiskAttachments(disks, cloud, signal)),
    newBlockVolumeMapper: async (spec, pod): Promise<BlockVolumeMapper> => mapperOf(node(), spec, pod),
    newBlockVolumeUnmapper: async (volumeName, podUID) => blockVolume(node(), volumeName, podUID),
    constructBlockVolumeSpec: (podUID, volumeName, mapPath) =>
      constructBlockVolumeSpec(node(), podUID, volumeName, mapPath),
  };
}

function attachingOnNode(node: () => AttachingNode): AttachingPart {
  const rootOf = () => kubeletOf(node()).rootDir;
  const mountPathOf = (spec: VolumeSpec) => mounting.getDeviceMountPath(spec);
  const mapPathOf = (spec: VolumeSpec) =>
    globalMapPath(rootOf(), node().disks, diskSourceOf(node().disks, spec).volumeName);
  const mounting: DeviceMounter = {
    ...mountingOf(node),
    mountDevice: async (spec, devicePath, path, signal) =>
      detachingOnFailure(node(), spec, signal, () =>
        deviceMounter(node()).mountDevice(spec, devicePath, path, signal),
      ),
  };
  const newDeviceUnmounter = () => ({
    unmountDevice: (path: string, signal: AbortSignal) =>
      unmountDevice(node(), path, (volumeName) => detachFromNode(node(), volumeName, signal)),
  });
  return {
    newDeviceMounter: () => mounting,
    newAttacher: () => ({
      ...mounting,
      attachesOnNode: true,
      attach: async () => "",
      volumesAreAttached: async (specs) => new Map(specs.map((spec) => [spec, true])),
      waitForAttach: async (spec, _devicePath, signal, pod) =>
        attachOnNode(node(), isBlockSpec(spec) ? mapPathOf(spec) : mountPathOf(spec), spec, pod, signal),
    }),
    newDetacher: () => ({ ...newDeviceUnmounter(), detach: async () => {} }),
    newDeviceUnmounter,
    listAttachments: async () => [],
    newBlockVolumeMapper: async (spec, pod): Promise<BlockVolumeMapper> => mapperOf(node(), spec, pod),
    async newBlockVolumeUnmapper(name, podUID): Promise<BlockVolumeUnmapper> {
      return {
        ...blockVolume(node(), name, podUID),
        async tearDownDevice(mapPath, _devicePath, signal) {
          const volumeName = volumeNameOfGlobalMap(rootOf(), node().disks, mapPath);
          if (volumeName !== undefined) await detachFromNode(node(), volumeName, signal);
        },
      };
    },
    constructBlockVolumeSpec: (podUID, volumeName, mapPath) =>
      constructBlockVolumeSpec(node(), podUID, volumeName, mapPath),
  };
}

function mountingOf(node: () => DiskNode): DeviceMounter {
  return {
    getDeviceMountPath: (spec) =>
      globalMountPath(kubeletOf(node()).rootDir, node().disks, diskSourceOf(node().disks, spec).volumeName),
    mountDevice: async (spec, devicePath, path, signal) =>
      deviceMounter(node()).mountDevice(spec, devicePath, path, signal),
  };
}

function mapperOf(node: DiskNode, spec: VolumeSpec, pod: Pod): BlockVolumeMapper {
  return { ...blockVolumeOf(node, spec, pod), readOnly: diskSourceOf(node.disks, spec).readOnly };
}

function expanding(
  disks: DiskDescription,
  cloud: () => DiskCloud,
): Pick<ExpandableVolumePlugin, "expandVolumeDevice" | "requiresFSResize"> {
  return {
    expandVolumeDevice: async (spec, newSizeBytes, _oldSizeBytes, signal) =>
      growDisk(disks, cloud(), spec, newSizeBytes, signal),
    requiresFSResize: () => true,
  };
}

function limiting(
  limits: NonNullable<DiskDescription["limits"]>,
): Pick<VolumePluginWithAttachLimits, "getVolumeLimits" | "volumeLimitKey"> {
  return {
    getVolumeLimits: ({ instanceType }) => ({ [limits.key]: limits.ofInstanceType(instanceType) }),
    volumeLimitKey: () => limits.key,
  };
}
