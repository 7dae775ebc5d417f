/**
 * What an earlier agent left mounted, found again from disk alone. Everything found counts as
 * "may be mounted": what is desired is mounted again (which changes nothing if it is there), what
 * is not is unmounted. Source: docs/behaviour/node-agent.md 9, in the way of its "later releases".
 */
import { errorChain, type Host, type Logger } from "@longshore/runtime";
import { uniqueNameOf } from "../../framework/names.ts";
import { isAttachable, isDeviceMountable, type VolumePlugin } from "../../framework/plugin.ts";
import type { VolumePluginManager } from "../../framework/plugin-manager.ts";
import { specName, type VolumeSpec } from "../../framework/spec.ts";
import { kubeletPaths, unescapeQualifiedName } from "../../framework/volume-host.ts";
import { ebsSpecOfVolumeID } from "../../plugins/aws-ebs/aws-ebs-node-half.ts";
import { globalMountsDirectory, volumeIDOfGlobalMount } from "../../plugins/aws-ebs/ebs-global-mount.ts";
import { awsEbsPluginName } from "../../plugins/aws-ebs/volume-id.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import { specOfVolData } from "../../plugins/csi/csi-node-half.ts";
import { readVolData, removeMountDirectory } from "../../plugins/csi/vol-data.ts";
import type { ActualState } from "./actual-state.ts";

/** A pod's volume directory that does not identify its volume; it can still be unmounted by name. */
export interface LeftoverDirectory {
  readonly plugin: VolumePlugin;
  readonly podUID: string;
  readonly volumeName: string;
  readonly path: string;
}

/** What reconstruction works with. */
export interface ReconstructEnv {
  readonly host: Host;
  readonly logger: Logger;
  readonly rootDir: string;
  readonly plugins: VolumePluginManager;
  readonly actual: ActualState;
}

/** Fills the actual state from disk. @returns the directories that could not be understood */
export async function reconstructVolumes(env: ReconstructEnv): Promise<readonly LeftoverDirectory[]> {
  await reconstructStagedCsiVolumes(env);
  await reconstructGlobalEbsMounts(env);
  return reconstructPodVolumes(env);
}

/** The plugin of that name, or undefined. */
function pluginNamed(env: ReconstructEnv, name: string): VolumePlugin | undefined {
  return env.plugins.plugins.find((plugin) => plugin.pluginName === name);
}

async function reconstructPodVolumes(env: ReconstructEnv): Promise<readonly LeftoverDirectory[]> {
  const leftovers: LeftoverDirectory[] = [];
  const { host, rootDir } = env;
  for (const podUID of (await host.readDirectory(`${rootDir}/pods`)) ?? []) {
    const volumesDirectory = kubeletPaths.podVolumesDir(rootDir, podUID);
    for (const escaped of (await host.readDirectory(volumesDirectory)) ?? []) {
      const plugin = pluginNamed(env, unescapeQualifiedName(escaped));
      if (plugin === undefined) continue; // The shell's own volumes, such as emptyDir.
      for (const volumeName of (await host.readDirectory(`${volumesDirectory}/${escaped}`)) ?? []) {
        const path = `${volumesDirectory}/${escaped}/${volumeName}`;
        try {
          await reconstructPodVolume(env, plugin, podUID, volumeName, path);
        } catch (error) {
          env.logger.warn("a volume directory was not understood", { path, error: errorChain(error) });
          leftovers.push({ plugin, podUID, volumeName, path });
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
  const pod = { podUID, volumeName, path: unmounter.getPath(), readOnly: false };
  env.actual.restore(restored(plugin, spec), { pod });
}

function restored(plugin: VolumePlugin, spec: VolumeSpec) {
  const byName = isAttachable(plugin) || isDeviceMountable(plugin);
  const name = byName ? plugin.getVolumeName(spec) : specName(spec);
  return {
    uniqueName: uniqueNameOf(plugin.pluginName, name),
    spec,
    plugin,
    attachable: isAttachable(plugin),
  };
}

/** Staging directories. One without a data file was never staged: the file is written first. */
async function reconstructStagedCsiVolumes(env: ReconstructEnv): Promise<void> {
  const plugin = pluginNamed(env, csiPluginName);
  if (plugin === undefined) return;
  const parent = `${kubeletPaths.pluginDir(env.rootDir, csiPluginName)}/pv`;
  for (const pvName of (await env.host.readDirectory(parent)) ?? []) {
    const directory = `${parent}/${pvName}`;
    const deviceMountPath = `${directory}/globalmount`;
    try {
      const data = await readVolData(env.host, directory);
      if (data === undefined) await removeMountDirectory(env.host, deviceMountPath);
      else env.actual.restore(restored(plugin, specOfVolData(data, pvName)), { deviceMountPath });
    } catch (error) {
      env.logger.warn("a staging directory was not understood", {
        path: directory,
        error: errorChain(error),
      });
    }
  }
}

async function reconstructGlobalEbsMounts(env: ReconstructEnv): Promise<void> {
  const plugin = pluginNamed(env, awsEbsPluginName);
  if (plugin === undefined) return;
  for (const { target } of await env.host.listMounts(globalMountsDirectory(env.rootDir))) {
    const volumeID = volumeIDOfGlobalMount(env.rootDir, target);
    if (volumeID === undefined) continue;
    env.actual.restore(restored(plugin, ebsSpecOfVolumeID(volumeID, volumeID)), { deviceMountPath: target });
  }
}
