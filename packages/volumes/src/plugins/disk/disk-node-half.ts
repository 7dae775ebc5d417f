/**
 * The node's half of a disk plugin: the device is mounted once at a global directory and bound into each pod.
 * `disk-plugin.ts` joins it with the controller's half.
 *
 * Invariant: nothing is made or removed outside the kubelet root.
 */
import type { Pod } from "@longshore/kube";
import { backoffMs, DeadlineError, type Host, invariant, withDeadline } from "@longshore/runtime";
import { mountOptionsOf } from "../../framework/mount-options.ts";
import type { DiskCloud } from "../../framework/ports.ts";
import { type KubeletVolumeHost, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type { DeviceMounter, GlobalMount, Mounter, Unmounter } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import {
  bindForPod,
  giveToGroup,
  mountFormatted,
  refuseLostDevice,
  resolvedLink,
  unmountAndRemove,
} from "../device-mounts.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import {
  type AttachedByController,
  blockSpecNamed,
  type DiskDescription,
  diskSourceOf,
  specNamed,
} from "./disk-description.ts";
import {
  forgetGlobalMount,
  globalMapsDirectory,
  globalMountPath,
  globalMountsDirectory,
  recordGlobalMount,
  volumeNameOfGlobalMap,
  volumeNameOfGlobalMount,
} from "./global-directories.ts";

const defaultDeviceDir = "/dev";

/** Longest wait for a device in one attempt, in milliseconds; what follows is an event, and a further attempt. */
const deviceTimeoutMs = 60_000;

/** What the node's half works with. */
export interface DiskNode {
  readonly disks: DiskDescription;
  /** The host that the plugin was initialised with. */
  readonly host: VolumeHost;
  readonly cloud: () => DiskCloud;
}

/** The node's part of the host. A controller has none: there it is a broken invariant. */
export function kubeletOf({ disks, host }: Pick<DiskNode, "disks" | "host">): KubeletVolumeHost {
  invariant(host.kubelet !== undefined, `the ${disks.label} plugin mounts only on a node's host`);
  return host.kubelet;
}

/**
 * Waits until the device (or its partition) that the controller has reported is there; returns its path.
 * Source: docs/behaviour/node-agent.md 7.3.
 *
 * @throws InTreeVolumeError when it is not there within a minute
 */
export async function waitForDevice(
  node: DiskNode,
  attached: AttachedByController,
  spec: VolumeSpec,
  reported: string,
  signal: AbortSignal,
): Promise<string> {
  const { volumeName, partition } = diskSourceOf(node.disks, spec);
  const { host, nodeName, rootDir, deviceDir = defaultDeviceDir } = kubeletOf(node);
  if (reported === "") {
    throw new InTreeVolumeError(
      `volume ${volumeName}: status.volumesAttached of the node gives no devicePath: attach it again`,
    );
  }
  const device = attached.deviceOf?.(reported, deviceDir) ?? reported;
  const path = partition > 0 ? (attached.partitionOf ?? partitionPath)(device, partition) : device;
  const { clock } = node.host;
  await refuseLostDevice(host, globalMountPath(rootDir, node.disks, volumeName), volumeName);
  try {
    return await withDeadline(clock, deviceTimeoutMs, signal, async (within) => {
      for (let attempt = 1; ; attempt++) {
        const found = await presentDevice(host, path);
        if (found !== undefined) return found;
        await clock.sleep(backoffMs({ initialMs: 100, maximumMs: 1000 }, attempt), within);
      }
    });
  } catch (error) {
    if (signal.aborted || !(error instanceof DeadlineError)) throw error;
    throw new InTreeVolumeError(
      `volume ${volumeName}: node ${nodeName} has no device ${path}, where it is reported as attached: look whether the provider has the disk attached to the node; it is mounted once the device is there`,
    );
  }
}

/** Where a path leads, if anything is there: a link may be there before its device, or be left after it. */
async function presentDevice(host: Host, path: string): Promise<string | undefined> {
  if ((await host.stat(path)) === undefined) return undefined;
  const found = await resolvedLink(host, path);
  return (await host.stat(found)) === undefined ? undefined : found;
}

/** `/dev/xvdba` → `/dev/xvdba1`; a name that ends in a digit gets a `p` in between. */
function partitionPath(devicePath: string, partition: number): string {
  return `${devicePath}${/\d$/.test(devicePath) ? "p" : ""}${partition}`;
}

/** Mounts devices at their global directories. */
export function deviceMounter(node: DiskNode): DeviceMounter {
  const { disks } = node;
  const { rootDir, host } = kubeletOf(node);
  return {
    getDeviceMountPath: (spec) => globalMountPath(rootDir, disks, diskSourceOf(disks, spec).volumeName),
    async mountDevice(spec, device, deviceMountPath) {
      const { volumeName, fsType, readOnly } = diskSourceOf(disks, spec);
      await recordGlobalMount(host, rootDir, disks, volumeName);
      const flags = mountOptionsOf(spec.persistentVolume ?? {});
      await mountFormatted(host, deviceMountPath, { volumeName, device, fsType, readOnly, flags });
    },
  };
}

/** Unmounts a global directory; a volume that the node attaches is detached before the directory goes. */
export async function unmountDevice(
  node: DiskNode,
  path: string,
  detach: (volumeName: string) => Promise<void>,
): Promise<void> {
  const { host, rootDir } = kubeletOf(node);
  while (await host.isMountPoint(path)) await host.unmount(path);
  const volumeName = await volumeNameOfGlobalMount(host, rootDir, node.disks, path);
  if (volumeName !== undefined) await detach(volumeName);
  await host.removeDirectory(path);
  await forgetGlobalMount(host, rootDir, node.disks, path);
}

/** Binds the global directory of a volume for one pod. */
export function podMounter(node: DiskNode, spec: VolumeSpec, pod: Pod): Mounter {
  const { disks } = node;
  const { rootDir, host } = kubeletOf(node);
  const source = diskSourceOf(disks, spec);
  const path = kubeletPaths.podVolumeDir(rootDir, pod.metadata?.uid ?? "", disks.pluginName, specName(spec));
  return {
    getPath: () => path,
    readOnly: source.readOnly,
    supportsSELinux: true,
    async setUp(args) {
      await bindForPod(host, globalMountPath(rootDir, disks, source.volumeName), path, source);
      if (!source.readOnly) await giveToGroup(node.host, path, source.volumeName, args);
    },
  };
}

/** Unmounts a volume from one pod. */
export function podUnmounter(node: DiskNode, volumeName: string, podUID: string): Unmounter {
  const { rootDir, host } = kubeletOf(node);
  const path = kubeletPaths.podVolumeDir(rootDir, podUID, node.disks.pluginName, volumeName);
  return { getPath: () => path, tearDown: () => unmountAndRemove(host, path) };
}

/** A spec that is good for unmounting: the name is that of the global mount which the pod's mount shares. */
export async function constructVolumeSpec(
  node: DiskNode,
  volumeName: string,
  mountPath: string,
): Promise<VolumeSpec> {
  const { disks } = node;
  const { host, rootDir } = kubeletOf(node);
  const mounts = await host.listMounts(rootDir);
  const mount = mounts.find(({ target }) => target === mountPath);
  if (mount !== undefined) {
    for (const { source, target } of mounts) {
      if (mount.source !== target && mount.source !== source) continue;
      const found = await volumeNameOfGlobalMount(host, rootDir, disks, target);
      if (found !== undefined) return specNamed(disks, volumeName, found);
    }
  }
  throw new InTreeVolumeError(`${mountPath}: no global mount of the ${disks.label} plugin shares its device`);
}

/** What the plugin's global directories hold, from disk alone. */
export async function listGlobalMounts(node: DiskNode): Promise<readonly GlobalMount[]> {
  const { disks } = node;
  const { host, rootDir } = kubeletOf(node);
  const found: GlobalMount[] = [];
  for (const deviceMountPath of await globalMountTargets(node)) {
    const volumeName = await volumeNameOfGlobalMount(host, rootDir, disks, deviceMountPath);
    if (volumeName === undefined) continue;
    found.push({ spec: specNamed(disks, volumeName, volumeName), deviceMountPath });
  }
  return disks.attached.by === "controller" ? found : [...found, ...(await listGlobalMaps(node))];
}

/** Block volumes that the node may have attached; where the controller attaches, a pod's link says all there is to undo. */
async function listGlobalMaps({ disks, ...node }: DiskNode): Promise<readonly GlobalMount[]> {
  const { host, rootDir } = kubeletOf({ disks, ...node });
  const parent = globalMapsDirectory(rootDir, disks);
  return ((await host.readDirectory(parent)) ?? []).flatMap((name) => {
    const deviceMountPath = `${parent}/${name}`;
    const volumeName = volumeNameOfGlobalMap(rootDir, disks, deviceMountPath);
    if (volumeName === undefined) return [];
    return { spec: blockSpecNamed(disks, volumeName, volumeName), deviceMountPath };
  });
}

/** A node that attaches makes the directory before: one without a mount may have an attached volume. */
async function globalMountTargets(node: DiskNode): Promise<readonly string[]> {
  const { host, rootDir } = kubeletOf(node);
  const parent = globalMountsDirectory(rootDir, node.disks);
  if (node.disks.attached.by === "controller") {
    return (await host.listMounts(parent)).map(({ target }) => target);
  }
  return ((await host.readDirectory(parent)) ?? []).map((name) => `${parent}/${name}`);
}
