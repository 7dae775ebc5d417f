/**
 * The in-tree volume plugin `kubernetes.io/portworx-volume`. The controller attaches nothing: the node asks the provider for
 * the device when a pod's volume is set up, mounts it for the pod, and returns it with the last pod.
 *
 * Invariant: the pod's directory is there before the file that says which volume the pod has, this before the volume is attached,
 * and they go in the other order after it is detached, so that a teardown can be repeated after a crash or a loss of power at any
 * point.
 */
import { invariant, KeyedLock } from "@longshore/runtime";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import type { DiskCloud } from "../../framework/ports.ts";
import { kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type {
  DeletableVolumePlugin,
  ExpandableVolumePlugin,
  Mounter,
  NodeExpandableVolumePlugin,
  NodeExpandOptions,
  ProvisionableVolumePlugin,
  Unmounter,
} from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { giveToGroup, mountFormatted, removeIfNotMounted, unmountAndRemove } from "../device-mounts.ts";
import { detachDisk } from "../disk/attach-disk.ts";
import { attachToNode } from "../disk/attach-on-node.ts";
import { type DiskSource, diskSourceOf, specNamed } from "../disk/disk-description.ts";
import { type DiskNode, kubeletOf } from "../disk/disk-node-half.ts";
import type { InTreePluginOptions } from "../disk/disk-plugin.ts";
import { deleteDisk, diskProvisioner, growDisk } from "../disk/provision-disk.ts";
import { hasSource } from "../disk/volume-source.ts";
import { growInTree } from "../grow-in-tree.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { type PodVolume, PodVolumes } from "./pod-volumes.ts";
import { formatTag, portworxVolume } from "./portworx-volume.ts";

/** Everything that the Portworx plugin can do. */
export type PortworxPlugin = ProvisionableVolumePlugin &
  DeletableVolumePlugin &
  ExpandableVolumePlugin &
  NodeExpandableVolumePlugin;

const { pluginName } = portworxVolume;

/** The plugin, to be given to `createVolumePluginManager`. */
export function portworxPlugin(options: InTreePluginOptions = {}): PortworxPlugin {
  let initialised: VolumeHost | undefined;
  const cloud = (): DiskCloud => {
    if (options.cloud !== undefined) return options.cloud;
    throw new InTreeVolumeError(portworxVolume.withoutCloud);
  };
  /** By volume: a pod that comes does not find the volume detached for one that goes. */
  const locks = new KeyedLock();
  const node = (): PortworxNode => {
    invariant(initialised !== undefined, "a volume plugin is initialised before it is used");
    return { disks: portworxVolume, host: initialised, cloud, locks };
  };
  return {
    pluginName,
    async init(given) {
      initialised = given;
    },
    getVolumeName: (spec) => diskSourceOf(portworxVolume, spec).volumeName,
    canSupport: (spec) => hasSource(spec, portworxVolume.sourceField),
    supportsMountOption: () => false,
    supportsMetrics: () => true,
    newMounter: async (spec, pod) => podMounter(node(), spec, pod.metadata?.uid ?? ""),
    newUnmounter: async (name, podUID) => podUnmounter(node(), { name, podUID }),
    constructVolumeSpec: (name, mountPath) => constructVolumeSpec(node(), name, mountPath),
    newProvisioner: (volumeOptions) =>
      diskProvisioner(portworxVolume.provisioning, cloud, () => node().host, volumeOptions),
    newDeleter: (spec) => ({ delete: async (signal) => deleteDisk(portworxVolume, cloud(), spec, signal) }),
    expandVolumeDevice: async (spec, newSizeBytes, _oldSizeBytes, signal) =>
      growDisk(portworxVolume, cloud(), spec, newSizeBytes, signal),
    requiresFSResize: () => true,
    nodeExpand: (expand) => growAt(node(), expand),
  };
}

interface PortworxNode extends DiskNode {
  readonly locks: KeyedLock;
}

function podVolumesOf(node: PortworxNode): PodVolumes {
  const { host, rootDir } = kubeletOf(node);
  return new PodVolumes(host, rootDir, pluginName);
}

function pathOf(node: PortworxNode, { podUID, name }: PodVolume): string {
  return kubeletPaths.podVolumeDir(kubeletOf(node).rootDir, podUID, pluginName, name);
}

function podMounter(node: PortworxNode, spec: VolumeSpec, podUID: string): Mounter {
  const source = diskSourceOf(portworxVolume, spec);
  const volume = { podUID, name: specName(spec) };
  const path = pathOf(node, volume);
  return {
    getPath: () => path,
    readOnly: source.readOnly,
    async setUp(args, signal) {
      await node.locks.run(source.volumeName, () => setUp(node, source, volume, signal));
      if (!source.readOnly) await giveToGroup(node.host, path, source.volumeName, args);
    },
  };
}

async function setUp(
  node: PortworxNode,
  source: DiskSource,
  volume: PodVolume,
  signal: AbortSignal,
): Promise<void> {
  const { host } = kubeletOf(node);
  const path = pathOf(node, volume);
  if (await host.isMountPoint(path)) return;
  // Before the file, whose durable write keeps both: by the directory the node agent finds the volume after a loss of power.
  await host.makeDirectory(path);
  await podVolumesOf(node).record(volume, source.volumeName);
  try {
    const device = await attachToNode(node, portworxVolume.names, source, undefined, signal);
    const fsType = source.fsType || (await formatOf(node, source.volumeName, signal));
    await mountFormatted(host, path, { ...source, fsType, device, flags: [] });
  } catch (error) {
    try {
      await release(node, volume, source.volumeName, signal);
    } catch {
      throw new UncertainProgressError(
        `volume ${source.volumeName} was not mounted and may be attached to this node`,
        { cause: error },
      );
    }
    await removeIfNotMounted(host, path);
    throw error;
  }
}

/** The file system that the volume's class asked for; empty where it left that open. */
async function formatOf(node: PortworxNode, volumeID: string, signal: AbortSignal): Promise<string> {
  const disk = await node.cloud().describeDisk(portworxVolume.names.diskIdOf(volumeID), signal);
  return disk?.tags[formatTag] ?? "";
}

/** Detaches the volume where no other pod of the node has it, and forgets that this one had it. */
async function release(
  node: PortworxNode,
  volume: PodVolume,
  volumeID: string,
  signal: AbortSignal,
): Promise<void> {
  const podVolumes = podVolumesOf(node);
  const isMounted = (other: PodVolume) => kubeletOf(node).host.isMountPoint(pathOf(node, other));
  if (!(await podVolumes.isUsedByOthers(volume, volumeID, isMounted))) {
    await detachDisk(portworxVolume, node.cloud(), volumeID, kubeletOf(node).nodeName, signal);
  }
  await podVolumes.forget(volume);
}

function podUnmounter(node: PortworxNode, volume: PodVolume): Unmounter {
  const path = pathOf(node, volume);
  return {
    getPath: () => path,
    async tearDown(signal) {
      const { host } = kubeletOf(node);
      while (await host.isMountPoint(path)) await host.unmount(path);
      const volumeID = await podVolumesOf(node).idOf(volume);
      if (volumeID !== undefined) {
        await node.locks.run(volumeID, () => release(node, volume, volumeID, signal));
      }
      await unmountAndRemove(host, path);
    },
  };
}

/** A spec that is good for unmounting. */
async function constructVolumeSpec(node: PortworxNode, name: string, mountPath: string): Promise<VolumeSpec> {
  const podsDirectory = `${kubeletOf(node).rootDir}/pods/`;
  const [podUID = ""] = mountPath.startsWith(podsDirectory)
    ? mountPath.slice(podsDirectory.length).split("/")
    : [];
  const volumeID = await podVolumesOf(node).idOf({ podUID, name });
  // Without it nothing of the volume was attached by this agent: the name is enough to unmount.
  return specNamed(portworxVolume, name, volumeID ?? name);
}

/** Grows the file system at a pod's directory. Upstream's provider does so by itself. */
async function growAt(node: PortworxNode, expand: NodeExpandOptions): Promise<boolean> {
  const { path, phase } = expand;
  if (phase === "staged") return false;
  const { host } = kubeletOf(node);
  const mount = (await host.listMounts(path)).findLast(({ target }) => target === path);
  if (mount === undefined) throw new InTreeVolumeError(`${path}: nothing is mounted there that could grow`);
  const expandMounted = { ...expand, devicePath: mount.source };
  return growInTree(host, expandMounted, (spec) => diskSourceOf(portworxVolume, spec));
}
