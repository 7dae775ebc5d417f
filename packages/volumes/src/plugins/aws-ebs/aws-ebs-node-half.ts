/**
 * The node's half of the in-tree AWS EBS plugin: the device is mounted once at a global directory
 * and bound into each pod. `aws-ebs-plugin.ts` joins it with the controller's half.
 *
 * Invariants
 *  - A device that holds a file system is never formatted.
 *  - Nothing is made or removed outside the kubelet root; a directory is removed only when empty.
 *  - Each step may be repeated after a crash at any point: what is there already is left alone.
 */
import type { Pod } from "@longshore/kube";
import { backoffMs, type Host, HostError, invariant } from "@longshore/runtime";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import type { PluginNodeHalf, PluginNodeHalfOptions } from "../../framework/plugin-node-half.ts";
import { type KubeletVolumeHost, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type { DeviceMounter, DeviceUnmounter, Mounter, Unmounter } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { growInTree } from "../grow-in-tree.ts";
import { globalMountPath, volumeIDOfGlobalMount } from "./ebs-global-mount.ts";
import { awsEbsPluginName, EbsVolumeError, ebsSourceOf } from "./ebs-volume-id.ts";

const defaultFsType = "ext4";

/** What the node's half is built from. */
export type AwsEbsNodeHalfOptions = PluginNodeHalfOptions;

/** The node's half. */
export interface AwsEbsNodeHalf extends PluginNodeHalf {
  /** Waits until the device is there; returns its path. */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal): Promise<string>;
}

/** Builds the node's half. */
export function createAwsEbsNodeHalf(options: AwsEbsNodeHalfOptions): AwsEbsNodeHalf {
  const { host: volumeHost } = options;
  return {
    newMounter: async (spec, pod) => podMounter(kubeletOf(volumeHost()), spec, pod),
    newUnmounter: async (volumeName, podUID) => podUnmounter(kubeletOf(volumeHost()), volumeName, podUID),
    newDeviceMounter: () => deviceMounter(kubeletOf(volumeHost())),
    newDeviceUnmounter: () => deviceUnmounter(kubeletOf(volumeHost())),
    nodeExpand: (expand) => growInTree(kubeletOf(volumeHost()).host, expand, (spec) => ebsSourceOf(spec)),
    constructVolumeSpec: (volumeName, mountPath) =>
      constructVolumeSpec(kubeletOf(volumeHost()), volumeName, mountPath),
    waitForAttach: (spec, devicePath, signal) => waitForDevice(volumeHost(), spec, devicePath, signal),
  };
}

function kubeletOf(host: VolumeHost): KubeletVolumeHost {
  invariant(host.kubelet !== undefined, "the EBS plugin mounts only on a node's host");
  return host.kubelet;
}

/** Waits until the device (or its partition) is there. Bounded by the caller's deadline. */
async function waitForDevice(
  volumeHost: VolumeHost,
  spec: VolumeSpec,
  devicePath: string,
  signal: AbortSignal,
): Promise<string> {
  const { volumeID, partition } = ebsSourceOf(spec);
  if (devicePath === "") {
    throw new EbsVolumeError(
      `volume ${volumeID}: status.volumesAttached of the node gives no devicePath: attach it again`,
    );
  }
  const path = partition > 0 ? partitionPath(devicePath, partition) : devicePath;
  const { host } = kubeletOf(volumeHost);
  for (let attempt = 1; (await host.stat(path)) === undefined; attempt++) {
    await volumeHost.clock.sleep(backoffMs({ initialMs: 100, maximumMs: 1000 }, attempt), signal);
  }
  // A provider's name of a device is a link to it. Source: upstream findDiskPath and its EvalSymlinks.
  return (await host.readLink(path)) ?? path;
}

/** `/dev/xvdba` → `/dev/xvdba1`; a name that ends in a digit gets a `p` in between. */
function partitionPath(devicePath: string, partition: number): string {
  return `${devicePath}${/\d$/.test(devicePath) ? "p" : ""}${partition}`;
}

function deviceMounter(kubelet: KubeletVolumeHost): DeviceMounter {
  return {
    getDeviceMountPath: (spec) => globalMountPath(kubelet.rootDir, ebsSourceOf(spec).volumeID),
    async mountDevice(spec, devicePath, deviceMountPath) {
      const { host } = kubelet;
      if (await host.isMountPoint(deviceMountPath)) return;
      const source = ebsSourceOf(spec);
      const fsType = source.fsType === "" ? defaultFsType : source.fsType;
      await host.makeDirectory(deviceMountPath);
      try {
        if (!source.readOnly) await formatOrCheck(host, devicePath, fsType);
        await host.mountDevice(devicePath, deviceMountPath, {
          fsType,
          flags: [...(spec.persistentVolume?.spec?.mountOptions ?? [])],
          readOnly: source.readOnly,
        });
      } catch (error) {
        await removeIfNotMounted(host, deviceMountPath);
        throw error;
      }
    },
  };
}

/** Source: upstream SafeFormatAndMount.formatAndMountSensitive. */
async function formatOrCheck(host: Host, devicePath: string, fsType: string): Promise<void> {
  if ((await host.fileSystemOf(devicePath)) !== undefined) {
    await host.checkFileSystem(devicePath);
    return;
  }
  try {
    await host.format(devicePath, fsType);
  } catch (error) {
    // Someone else's file system got there first: it is left as it is, and mounted.
    if (!(error instanceof HostError && error.code === "EEXIST")) throw error;
  }
}

function deviceUnmounter(kubelet: KubeletVolumeHost): DeviceUnmounter {
  return {
    unmountDevice: (deviceMountPath) => unmountAndRemove(kubelet.host, deviceMountPath),
  };
}

function podVolumePath(kubelet: KubeletVolumeHost, podUID: string, volumeName: string): string {
  return kubeletPaths.podVolumeDir(kubelet.rootDir, podUID, awsEbsPluginName, volumeName);
}

function podMounter(kubelet: KubeletVolumeHost, spec: VolumeSpec, pod: Pod): Mounter {
  const source = ebsSourceOf(spec);
  const path = podVolumePath(kubelet, pod.metadata?.uid ?? "", specName(spec));
  return {
    getPath: () => path,
    readOnly: source.readOnly,
    async setUp(args) {
      const { host } = kubelet;
      if (!(await host.isMountPoint(path))) {
        await host.makeDirectory(path);
        try {
          const globalPath = globalMountPath(kubelet.rootDir, source.volumeID);
          if (!source.readOnly) await refuseReadOnly(host, globalPath, source.volumeID);
          await host.bindMount(globalPath, path, { readOnly: source.readOnly });
        } catch (error) {
          await removeIfNotMounted(host, path);
          throw error;
        }
      }
      if (args.fsGroup === undefined || source.readOnly) return;
      try {
        const onlyOnRootMismatch = args.fsGroupChangePolicy === "OnRootMismatch";
        await host.chownTree(path, args.fsGroup, { onlyOnRootMismatch });
      } catch (cause) {
        // It is mounted already: it has to be unmounted before it is forgotten.
        throw new UncertainProgressError(
          `the files of volume ${source.volumeID} could not be given to the pod's fsGroup`,
          { cause },
        );
      }
    },
  };
}

/** The kernel makes a file system read-only when it finds errors in it. Source: ext4(5), errors=remount-ro. */
async function refuseReadOnly(host: Host, globalPath: string, volumeID: string): Promise<void> {
  const top = (await host.listMounts(globalPath)).findLast(({ target }) => target === globalPath);
  if (top?.readOnly !== true) return;
  throw new EbsVolumeError(
    `volume ${volumeID}: its file system has become read-only, as at an error in it: end all pods of this node that use it, so that it is checked and mounted again`,
  );
}

function podUnmounter(kubelet: KubeletVolumeHost, volumeName: string, podUID: string): Unmounter {
  const path = podVolumePath(kubelet, podUID, volumeName);
  return { getPath: () => path, tearDown: () => unmountAndRemove(kubelet.host, path) };
}

/** A spec that is good for unmounting: the id is that of the global mount which the pod's mount shares. */
async function constructVolumeSpec(
  kubelet: KubeletVolumeHost,
  volumeName: string,
  mountPath: string,
): Promise<VolumeSpec> {
  const mounts = await kubelet.host.listMounts(kubelet.rootDir);
  const mount = mounts.find(({ target }) => target === mountPath);
  const global = mounts.find(
    ({ source, target }) =>
      volumeIDOfGlobalMount(kubelet.rootDir, target) !== undefined &&
      mount !== undefined &&
      (mount.source === target || mount.source === source),
  );
  const volumeID = global && volumeIDOfGlobalMount(kubelet.rootDir, global.target);
  if (volumeID === undefined) {
    throw new EbsVolumeError(`${mountPath}: no global mount of the EBS plugin shares its device`);
  }
  return ebsSpecOfVolumeID(volumeName, volumeID);
}

/** A spec that is good for unmounting only. */
export function ebsSpecOfVolumeID(volumeName: string, volumeID: string): VolumeSpec {
  return {
    persistentVolume: { metadata: { name: volumeName }, spec: { awsElasticBlockStore: { volumeID } } },
    readOnly: false,
    inlineVolumeSpecForCsiMigration: false,
  };
}

/** Unmounts as often as something is mounted there, then removes the empty directory. */
async function unmountAndRemove(host: Host, path: string): Promise<void> {
  while (await host.isMountPoint(path)) await host.unmount(path);
  await host.removeDirectory(path);
}

async function removeIfNotMounted(host: Host, path: string): Promise<void> {
  if (!(await host.isMountPoint(path))) await host.removeDirectory(path).catch(() => {});
}
