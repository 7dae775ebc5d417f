/**
 * Block volumes that an earlier agent left mapped, found again from disk alone: each link in a pod's directory of devices,
 * and each directory of a CSI volume's device. As with mounts, everything found counts as "may be mapped".
 * Source: docs/behaviour/node-agent.md 9, docs/behaviour/csi-plugin.md 15.
 */
import { errorChain } from "@longshore/runtime";
import { kubeletPaths, unescapeQualifiedName } from "../../../framework/volume-host.ts";
import { type BlockVolumePlugin, isBlockVolumePlugin } from "../../../framework/volume-plugin.ts";
import {
  blockDataDirectory,
  blockDevicesDirectory,
  blockMapDirectory,
  blockVolumeDirectory,
  isBlockVolumeName,
} from "../../../plugins/csi/csi-block-paths.ts";
import { removeBlockRemains } from "../../../plugins/csi/csi-block-unmapper.ts";
import { csiPluginName } from "../../../plugins/csi/csi-names.ts";
import { blockSpecOfVolData } from "../../../plugins/csi/csi-node-half.ts";
import { readVolData, VolDataError } from "../../../plugins/csi/vol-data.ts";
import {
  type Leftover,
  type PodLeftover,
  pluginNamed,
  type ReconstructEnv,
  restored,
  type StagedLeftover,
} from "./reconstruct-volumes.ts";

/** Fills the actual state with block volumes. @returns what could not be understood */
export async function reconstructDevices(env: ReconstructEnv): Promise<readonly Leftover[]> {
  return [...(await reconstructCsiDevices(env)), ...(await reconstructPodDevices(env))];
}

async function reconstructPodDevices(env: ReconstructEnv): Promise<readonly PodLeftover[]> {
  const leftovers: PodLeftover[] = [];
  const { host, rootDir } = env;
  for (const podUID of (await host.readDirectory(`${rootDir}/pods`)) ?? []) {
    const devices = kubeletPaths.podDevicesDir(rootDir, podUID);
    for (const escaped of (await host.readDirectory(devices)) ?? []) {
      const plugin = pluginNamed(env, unescapeQualifiedName(escaped));
      if (plugin === undefined || !isBlockVolumePlugin(plugin)) continue;
      for (const volumeName of (await host.readDirectory(`${devices}/${escaped}`)) ?? []) {
        const path = `${devices}/${escaped}/${volumeName}`;
        try {
          await reconstructPodDevice(env, plugin, podUID, volumeName, path);
        } catch (error) {
          env.logger.warn("a pod's device was not understood", { path, error: errorChain(error) });
          leftovers.push({ kind: "pod", isBlock: true, plugin, podUID, volumeName, path });
        }
      }
    }
  }
  return leftovers;
}

async function reconstructPodDevice(
  env: ReconstructEnv,
  plugin: BlockVolumePlugin,
  podUID: string,
  volumeName: string,
  path: string,
): Promise<void> {
  const spec = await plugin.constructBlockVolumeSpec(podUID, volumeName, path);
  const unmapper = await plugin.newBlockVolumeUnmapper(volumeName, podUID);
  // `readOnly` is not on disk: a pod that still wants the volume maps it again, which sets it.
  env.actual.restore(restored(plugin, spec), {
    device: { path: unmapper.getGlobalMapPath(spec), block: { volumeName, devicePath: "" } },
    pod: { podUID, volumeName, path, readOnly: false, isBlock: true },
  });
}

/** One without a data file and without a mapping was never staged: the file is written first, and goes last. */
async function reconstructCsiDevices(env: ReconstructEnv): Promise<readonly StagedLeftover[]> {
  const plugin = pluginNamed(env, csiPluginName);
  if (plugin === undefined) return [];
  const { host, rootDir } = env;
  const leftovers: StagedLeftover[] = [];
  for (const volumeName of (await host.readDirectory(blockDevicesDirectory(rootDir))) ?? []) {
    if (!isBlockVolumeName(volumeName)) continue;
    const path = blockVolumeDirectory(rootDir, volumeName);
    const device = { path: blockMapDirectory(rootDir, volumeName), block: { volumeName, devicePath: "" } };
    try {
      const data = await readVolData(host, blockDataDirectory(rootDir, volumeName));
      if (data !== undefined)
        env.actual.restore(restored(plugin, blockSpecOfVolData(data, volumeName)), { device });
      else if ((await host.listMounts(path)).length > 0)
        throw new VolDataError(`${path} has mappings but no data/vol_data.json`);
      else await removeNeverStaged(env, volumeName);
    } catch (error) {
      env.logger.warn("a device's directory was not understood", { path, error: errorChain(error) });
      leftovers.push({ kind: "staged", plugin, deviceMountPath: device.path, path, block: device.block });
    }
  }
  return leftovers;
}

/** That it cannot be removed is no reason to keep a volume in use. */
async function removeNeverStaged(env: ReconstructEnv, volumeName: string): Promise<void> {
  try {
    await removeBlockRemains(env, volumeName);
  } catch (error) {
    env.logger.warn("a device's directory cannot be removed", { volumeName, error: errorChain(error) });
  }
}
