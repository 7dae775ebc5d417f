/**
 * What an earlier agent left mounted, found again from disk alone. Everything found counts as
 * "may be mounted": what is desired is mounted again (which changes nothing if it is there), what
 * is not is unmounted. Source: docs/behaviour/node-agent.md 9, in the way of its "later releases".
 */
import { errorChain, type Host, type Logger } from "@longshore/runtime";
import { isSharedByPods, uniqueVolumeName } from "../../../framework/unique-volume-name.ts";
import { kubeletPaths, unescapeQualifiedName } from "../../../framework/volume-host.ts";
import { isAttachable, listsGlobalMounts, type VolumePlugin } from "../../../framework/volume-plugin.ts";
import type { VolumePluginManager } from "../../../framework/volume-plugin-manager.ts";
import { isBlockSpec, specName, type VolumeSpec } from "../../../framework/volume-spec.ts";
import { csiPluginName } from "../../../plugins/csi/csi-names.ts";
import { specOfVolData } from "../../../plugins/csi/csi-node-half.ts";
import { readVolData, removeMountDirectory, VolDataError } from "../../../plugins/csi/vol-data.ts";
import { absentDriverPlugin } from "../../../plugins/flexvolume/absent-driver-plugin.ts";
import { deviceMountsDirectory, volumeOfDeviceMount } from "../../../plugins/flexvolume/flexvolume-names.ts";
import { flexVolumeSpecOf } from "../../../plugins/flexvolume/flexvolume-node-half.ts";
import type { ActualState, BlockDevice } from "../actual-state.ts";

/** A pod's volume directory that does not identify its volume; it can still be unmounted by name. */
export interface PodLeftover {
  readonly kind: "pod";
  readonly plugin: VolumePlugin;
  readonly podUID: string;
  readonly volumeName: string;
  readonly path: string;
  /** It is a link in the pod's directory of devices. */
  readonly isBlock?: true;
}

/** A staging directory that does not identify its volume. */
export interface StagedLeftover {
  readonly kind: "staged";
  readonly plugin: VolumePlugin;
  readonly deviceMountPath: string;
  readonly path: string;
  /** It is a block volume's directory of mappings. */
  readonly block?: BlockDevice;
}

/** A directory that could not be understood: something may be mounted there. */
export type Leftover = PodLeftover | StagedLeftover;

/** What reconstruction works with. */
export interface ReconstructEnv {
  readonly host: Host;
  readonly logger: Logger;
  readonly rootDir: string;
  readonly plugins: VolumePluginManager;
  readonly actual: ActualState;
}

/** Fills the actual state from disk. @returns the directories that could not be understood */
export async function reconstructVolumes(env: ReconstructEnv): Promise<readonly Leftover[]> {
  const staged = await reconstructStagedCsiVolumes(env);
  await reconstructGlobalMounts(env);
  const absent = await reconstructFlexVolumeMounts(env);
  return [...staged, ...(await reconstructPodVolumes(env, absent))];
}

/** The plugin of that name, or undefined. */
export function pluginNamed(env: ReconstructEnv, name: string): VolumePlugin | undefined {
  return env.plugins.plugins.find((plugin) => plugin.pluginName === name);
}

/** @param absent what stands for the plugins of drivers that do not work, by name */
async function reconstructPodVolumes(
  env: ReconstructEnv,
  absent: ReadonlyMap<string, VolumePlugin>,
): Promise<readonly PodLeftover[]> {
  const leftovers: PodLeftover[] = [];
  const { host, rootDir } = env;
  for (const podUID of (await host.readDirectory(`${rootDir}/pods`)) ?? []) {
    const volumesDirectory = kubeletPaths.podVolumesDir(rootDir, podUID);
    for (const escaped of (await host.readDirectory(volumesDirectory)) ?? []) {
      const pluginName = unescapeQualifiedName(escaped);
      const plugin = pluginNamed(env, pluginName) ?? absent.get(pluginName);
      if (plugin === undefined) continue; // What is not known is not touched.
      for (const volumeName of (await host.readDirectory(`${volumesDirectory}/${escaped}`)) ?? []) {
        const path = `${volumesDirectory}/${escaped}/${volumeName}`;
        try {
          await reconstructPodVolume(env, plugin, podUID, volumeName, path);
        } catch (error) {
          env.logger.warn("a volume directory was not understood", { path, error: errorChain(error) });
          leftovers.push({ kind: "pod", plugin, podUID, volumeName, path });
        }
      }
    }
  }
  return leftovers;
}

async function reconstructPodVolume(
  env: ReconstructEnv,
  plugin: VolumePlugin,
  podUID: string,
  volumeName: string,
  path: string,
): Promise<void> {
  const spec = await plugin.constructVolumeSpec(volumeName, path);
  const unmounter = await plugin.newUnmounter(volumeName, podUID);
  // `readOnly` is not on disk: a pod that still wants the volume mounts it again, which sets it.
  const pod = { podUID, volumeName, path: unmounter.getPath(), readOnly: false };
  env.actual.restore(restored(plugin, spec, podUID), { pod });
}

/**
 * The volume as the actual state takes it.
 *
 * @param podUID of the pod whose directory it is; left out for a volume that is mounted for the whole node
 */
export function restored(plugin: VolumePlugin, spec: VolumeSpec, podUID = "") {
  const attachable = isAttachable(plugin) && isSharedByPods(plugin, spec);
  return { uniqueName: uniqueVolumeName(plugin, spec, podUID), spec, plugin, attachable };
}

/** Staging directories. One without a data file and without a mount was never staged: the file is written first. */
async function reconstructStagedCsiVolumes(env: ReconstructEnv): Promise<readonly StagedLeftover[]> {
  const plugin = pluginNamed(env, csiPluginName);
  if (plugin === undefined) return [];
  const leftovers: StagedLeftover[] = [];
  const parent = `${kubeletPaths.pluginDir(env.rootDir, csiPluginName)}/pv`;
  for (const pvName of (await env.host.readDirectory(parent)) ?? []) {
    const path = `${parent}/${pvName}`;
    const deviceMountPath = `${path}/globalmount`;
    try {
      const data = await readVolData(env.host, path);
      if (data !== undefined)
        env.actual.restore(restored(plugin, specOfVolData(data, pvName)), {
          device: { path: deviceMountPath },
        });
      else if (await env.host.isMountPoint(deviceMountPath))
        throw new VolDataError(`${path} is mounted but has no vol_data.json`);
      else await removeNeverStaged(env, deviceMountPath);
    } catch (error) {
      env.logger.warn("a staging directory was not understood", { path, error: errorChain(error) });
      leftovers.push({ kind: "staged", plugin, deviceMountPath, path });
    }
  }
  return leftovers;
}

/** Nothing is mounted there; that it cannot be removed is no reason to keep a volume in use. */
async function removeNeverStaged({ host, logger }: ReconstructEnv, deviceMountPath: string): Promise<void> {
  try {
    await removeMountDirectory(host, deviceMountPath);
  } catch (error) {
    logger.warn("a staging directory cannot be removed", { path: deviceMountPath, error: errorChain(error) });
  }
}

async function reconstructGlobalMounts(env: ReconstructEnv): Promise<void> {
  for (const plugin of env.plugins.plugins.filter(listsGlobalMounts)) {
    for (const { spec, deviceMountPath } of await plugin.listGlobalMounts()) {
      const block = isBlockSpec(spec) ? { volumeName: specName(spec), devicePath: "" } : undefined;
      const device = { path: deviceMountPath, ...(block !== undefined && { block }) };
      env.actual.restore(restored(plugin, spec), { device });
    }
  }
}

/** @returns what stands for the plugins of drivers that do not work now, by name */
async function reconstructFlexVolumeMounts(env: ReconstructEnv): Promise<ReadonlyMap<string, VolumePlugin>> {
  const { host, rootDir, plugins, actual } = env;
  const absent = new Map<string, VolumePlugin>();
  for (const { target } of await host.listMounts(deviceMountsDirectory(rootDir))) {
    const volume = volumeOfDeviceMount(rootDir, target);
    if (volume === undefined) continue;
    const { pluginName, volumeName } = volume;
    let plugin = pluginNamed(env, pluginName) ?? absent.get(pluginName);
    if (plugin === undefined || !isAttachable(plugin)) {
      plugin = absentDriverPlugin(rootDir, pluginName, (name) => plugins.findPluginByName(name));
      absent.set(pluginName, plugin);
    }
    const spec = flexVolumeSpecOf(pluginName, volumeName);
    actual.restore(restored(plugin, spec), { device: { path: target } });
  }
  return absent;
}
