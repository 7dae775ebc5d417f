/**
 * Which volumes of a plugin are still on this node, by either path, as far as disk and API objects
 * show it. A node may not list VolumeAttachments, so the VolumeAttachment of each volume that it knows
 * is looked up by name.
 */
import { KubeApiError, type KubeClient, type Node, resources, type Stored } from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { attachmentName, csiUniqueVolumeName, uncertainVolumesOf } from "@longshore/storage";
import { splitUniqueName } from "../../framework/unique-volume-name.ts";
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import {
  blockDataDirectory,
  blockDevicesDirectory,
  blockMapDirectory,
  isBlockVolumeName,
} from "../../plugins/csi/csi-block-paths.ts";
import { csiPluginName, parseCsiVolumeName } from "../../plugins/csi/csi-names.ts";
import { readVolData, type VolData } from "../../plugins/csi/vol-data.ts";
import type { PluginNames } from "../volume-manager/managed-volumes.ts";
import type { VolumePath } from "../volume-manager/volume-paths.ts";

/** What the observation needs. */
export interface VolumesLeftEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly nodeName: string;
  readonly rootDir: string;
  /** True for a volume that pods wait for, and of which nothing is or may be mounted. */
  readonly isMerelyWanted: (uniqueName: string) => boolean;
}

/**
 * Observes what is left of `plugin`.
 * @param heardOf unique names of CSI volumes that this agent has seen attached; names that are
 *   attached now are added, names that are certainly detached are taken out
 */
export async function observeVolumesLeft(
  env: VolumesLeftEnv,
  plugin: PluginNames,
  node: Stored<Node>,
  heardOf: Set<string>,
  signal: AbortSignal,
): Promise<Readonly<Record<VolumePath, readonly string[]>>> {
  const listed = (node.status?.volumesAttached ?? []).map(({ name }) => name);
  // The list also names what pods wait for, and nothing of that is mounted.
  const inUse = (node.status?.volumesInUse ?? []).filter((name) => !env.isMerelyWanted(name));
  // The list of attached volumes alone is early: a volume leaves it before it is detached.
  const attached = [...listed, ...uncertainVolumesOf(node), ...inUse];
  const inTreePrefix = `${plugin.inTreeName}/`;
  const inTree = new Set([
    ...attached.filter((name) => name.startsWith(inTreePrefix)),
    ...(await inTreeVolumesOnDisk(env, plugin.inTreeName)),
  ]);
  const csiPrefix = csiUniqueVolumeName(plugin.driverName, "");
  const onDisk = await csiVolumesOnDisk(env, plugin.driverName);
  for (const name of [...attached.filter((n) => n.startsWith(csiPrefix)), ...onDisk.volumes.keys()])
    heardOf.add(name);
  const csi: string[] = [];
  for (const name of [...heardOf].sort()) {
    if (!name.startsWith(csiPrefix)) continue;
    const there = onDisk.volumes.has(name) || attached.includes(name);
    const attachment = await attachmentOf(env, name, signal);
    if (!there && attachment === undefined) {
      heardOf.delete(name);
      continue;
    }
    const pvName = onDisk.volumes.get(name)?.specVolID ?? attachment?.spec.source.persistentVolumeName;
    if (!(await isNativeCsiVolume(env, pvName, signal))) csi.push(name);
  }
  return { "in-tree": [...inTree].sort(), csi: [...csi, ...onDisk.unreadable] };
}

async function attachmentOf(env: VolumesLeftEnv, uniqueName: string, signal: AbortSignal) {
  const { driver, volumeHandle } = parseCsiVolumeName(splitUniqueName(uniqueName).volumeName);
  const name = attachmentName(volumeHandle, driver, env.nodeName);
  try {
    return await env.kube.get(resources.volumeAttachments, { name }, { signal });
  } catch (error) {
    // The node authorizer answers Forbidden for whatever is not related to the node, existing or not.
    if (error instanceof KubeApiError && error.code === 403) return undefined;
    throw error;
  }
}

/** A PV whose source is CSI's to begin with never crosses. Whatever cannot be read counts as one that does. */
async function isNativeCsiVolume(
  env: VolumesLeftEnv,
  pvName: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (pvName === undefined) return false;
  const pv = await env.kube.get(resources.persistentVolumes, { name: pvName }, { signal }).catch((error) => {
    signal.throwIfAborted();
    void error; // Most likely forbidden: no pod on this node uses it any more.
    return undefined;
  });
  return pv?.spec?.csi != null;
}

/** CSI volumes in directories of this node. */
interface CsiVolumesOnDisk {
  /** By unique name: volumes of the driver that are staged or published. */
  readonly volumes: ReadonlyMap<string, VolData>;
  /** Paths of directories whose volume, and so whose driver, is not known: they may be of any driver. */
  readonly unreadable: readonly string[];
}

/** Reads the data files of all CSI volumes that are staged or published. */
async function csiVolumesOnDisk(env: VolumesLeftEnv, driverName: string): Promise<CsiVolumesOnDisk> {
  const volumes = new Map<string, VolData>();
  const unreadable: string[] = [];
  for (const { directory, mountPath } of await csiVolumeDirectories(env)) {
    const data = await volDataOf(env.host, directory, mountPath);
    if (data === "unreadable") unreadable.push(directory);
    if (data === undefined || data === "unreadable" || data.driverName !== driverName) continue;
    // No in-tree plugin has volumes that are made for one pod: they never cross.
    if (data.volumeLifecycleMode === "Ephemeral") continue;
    const name = csiUniqueVolumeName(driverName, data.volumeHandle);
    const directoryName = directory.slice(directory.lastIndexOf("/") + 1);
    volumes.set(name, { ...data, specVolID: data.specVolID ?? directoryName });
  }
  return { volumes, unreadable };
}

/** Undefined: nothing was ever staged or published there, since the file is written first and goes last. */
async function volDataOf(
  host: Host,
  directory: string,
  mountPath: string,
): Promise<VolData | "unreadable" | undefined> {
  try {
    const data = await readVolData(host, directory);
    return data === undefined && (await host.listMounts(mountPath)).length > 0 ? "unreadable" : data;
  } catch {
    return "unreadable";
  }
}

async function csiVolumeDirectories(env: VolumesLeftEnv) {
  const staging = `${kubeletPaths.pluginDir(env.rootDir, csiPluginName)}/pv`;
  const staged = ((await env.host.readDirectory(staging)) ?? []).map((name) => `${staging}/${name}`);
  const published = await podVolumeDirectories(env, csiPluginName);
  const devices = (await env.host.readDirectory(blockDevicesDirectory(env.rootDir))) ?? [];
  return [
    ...devices.filter(isBlockVolumeName).map((name) => ({
      directory: blockDataDirectory(env.rootDir, name),
      mountPath: blockMapDirectory(env.rootDir, name),
    })),
    ...staged.map((directory) => ({ directory, mountPath: `${directory}/globalmount` })),
    ...published.map((directory) => ({ directory, mountPath: `${directory}/mount` })),
  ];
}

/**
 * Paths of what the plugin's in-tree code has mounted or mapped: for pods, and for the node. No code of the plugin is asked, since a
 * node may have none (docs/behaviour/volume-plugins.md 7.4), and an earlier agent of it may have had it.
 */
async function inTreeVolumesOnDisk(env: VolumesLeftEnv, inTreeName: string): Promise<readonly string[]> {
  const globalMounts = await env.host.listMounts(kubeletPaths.pluginMountsDir(env.rootDir, inTreeName));
  return [
    ...(await podVolumeDirectories(env, inTreeName)),
    ...(await podVolumeDirectories(env, inTreeName, kubeletPaths.podDevicesDir)),
    ...globalMounts.map(({ target }) => target),
  ];
}

/** What pods have of the plugin's volumes: directories, or links to devices. */
async function podVolumeDirectories(
  env: VolumesLeftEnv,
  pluginName: string,
  directoryOf = kubeletPaths.podVolumesDir,
): Promise<readonly string[]> {
  const { host, rootDir } = env;
  const directories: string[] = [];
  for (const podUID of (await host.readDirectory(`${rootDir}/pods`)) ?? []) {
    const parent = `${directoryOf(rootDir, podUID)}/${escapeQualifiedName(pluginName)}`;
    for (const name of (await host.readDirectory(parent)) ?? []) directories.push(`${parent}/${name}`);
  }
  return directories;
}
