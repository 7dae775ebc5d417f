/**
 * Which volumes of a plugin are still on this node, by either path, as far as disk and API objects
 * show it. A node may not list VolumeAttachments, so the VolumeAttachment of each volume that it knows
 * is looked up by name.
 */
import { KubeApiError, type KubeClient, type Node, resources, type Stored } from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { uncertainVolumesOf } from "@longshore/storage";
import { splitUniqueName, uniqueNameOf } from "../../framework/names.ts";
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import { globalMountsDirectory, volumeIDOfGlobalMount } from "../../plugins/aws-ebs/ebs-global-mount.ts";
import { awsEbsPluginName } from "../../plugins/aws-ebs/volume-id.ts";
import {
  attachmentName,
  csiPluginName,
  csiVolumeName,
  parseCsiVolumeName,
} from "../../plugins/csi/csi-names.ts";
import { readVolData, type VolData } from "../../plugins/csi/vol-data.ts";
import type { VolumePath } from "./migration-step.ts";

/** A plugin and the driver that takes over from it. */
export interface MigratingPlugin {
  readonly inTreeName: string;
  readonly driverName: string;
}

/** What the observation needs. */
export interface VolumesLeftEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly nodeName: string;
  readonly rootDir: string;
}

/**
 * Observes what is left of `plugin`.
 * @param heardOf unique names of CSI volumes that this agent has seen attached; names that are
 *   attached now are added, names that are certainly detached are taken out
 */
export async function observeVolumesLeft(
  env: VolumesLeftEnv,
  plugin: MigratingPlugin,
  node: Stored<Node>,
  heardOf: Set<string>,
  signal: AbortSignal,
): Promise<Readonly<Record<VolumePath, readonly string[]>>> {
  const listed = (node.status?.volumesAttached ?? []).map(({ name }) => name);
  // The status alone is early: a volume leaves it before it is detached.
  const attached = [...listed, ...uncertainVolumesOf(node)];
  const inTreePrefix = `${plugin.inTreeName}/`;
  const inTree = new Set([
    ...attached.filter((name) => name.startsWith(inTreePrefix)),
    ...(await inTreeVolumesOnDisk(env, plugin.inTreeName)),
  ]);
  const csiPrefix = uniqueNameOf(csiPluginName, csiVolumeName(plugin.driverName, ""));
  const onDisk = await csiVolumesOnDisk(env, plugin.driverName);
  for (const name of [...attached.filter((n) => n.startsWith(csiPrefix)), ...onDisk.keys()])
    heardOf.add(name);
  const csi: string[] = [];
  for (const name of [...heardOf].sort()) {
    if (!name.startsWith(csiPrefix)) continue;
    const there = onDisk.has(name) || attached.includes(name);
    const attachment = await attachmentOf(env, name, signal);
    if (!there && attachment === undefined) {
      heardOf.delete(name);
      continue;
    }
    const pvName = onDisk.get(name)?.specVolID ?? attachment?.spec.source.persistentVolumeName;
    if (!(await isNativeCsiVolume(env, pvName, signal))) csi.push(name);
  }
  return { "in-tree": [...inTree].sort(), csi };
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

/** Unique names of CSI volumes of the driver that are staged or published, from their data files. */
async function csiVolumesOnDisk(
  env: VolumesLeftEnv,
  driverName: string,
): Promise<ReadonlyMap<string, VolData>> {
  const { host, rootDir } = env;
  const found = new Map<string, VolData>();
  const look = async (directory: string, pvName: string) => {
    const data = await readVolData(host, directory).catch(() => undefined);
    if (data?.driverName !== driverName) return;
    found.set(uniqueNameOf(csiPluginName, csiVolumeName(driverName, data.volumeHandle)), {
      ...data,
      specVolID: data.specVolID ?? pvName,
    });
  };
  const staging = `${kubeletPaths.pluginDir(rootDir, csiPluginName)}/pv`;
  for (const pvName of (await host.readDirectory(staging)) ?? []) await look(`${staging}/${pvName}`, pvName);
  for (const directory of await podVolumeDirectories(env, csiPluginName)) {
    await look(directory, directory.slice(directory.lastIndexOf("/") + 1));
  }
  return found;
}

/** Names of in-tree volumes of the plugin that have a directory in a pod or a global mount. */
async function inTreeVolumesOnDisk(env: VolumesLeftEnv, inTreeName: string): Promise<readonly string[]> {
  const names = await podVolumeDirectories(env, inTreeName);
  if (inTreeName !== awsEbsPluginName) return names;
  const mounts = await env.host.listMounts(globalMountsDirectory(env.rootDir));
  const mounted = mounts
    .map(({ target }) => volumeIDOfGlobalMount(env.rootDir, target))
    .filter((id): id is string => id !== undefined)
    .map((id) => uniqueNameOf(inTreeName, id));
  return [...names, ...mounted];
}

async function podVolumeDirectories(env: VolumesLeftEnv, pluginName: string): Promise<readonly string[]> {
  const { host, rootDir } = env;
  const directories: string[] = [];
  for (const podUID of (await host.readDirectory(`${rootDir}/pods`)) ?? []) {
    const parent = `${kubeletPaths.podVolumesDir(rootDir, podUID)}/${escapeQualifiedName(pluginName)}`;
    for (const name of (await host.readDirectory(parent)) ?? []) directories.push(`${parent}/${name}`);
  }
  return directories;
}
