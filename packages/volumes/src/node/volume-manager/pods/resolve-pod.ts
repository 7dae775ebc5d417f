/** From a pod to the volumes that it wants: claims and volumes are read live. Source: docs/behaviour/node-agent.md 4.2, 4.3. */
import type { KubeClient, Pod, Stored } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import type { MigratedPluginManager } from "../../../csimigration/migrated-plugin-manager.ts";
import { uniqueVolumeName } from "../../../framework/unique-volume-name.ts";
import { isBlockVolumePlugin } from "../../../framework/volume-plugin.ts";
import type { VolumePluginManager } from "../../../framework/volume-plugin-manager.ts";
import { isBlockSpec } from "../../../framework/volume-spec.ts";
import type { ResolvedVolume } from "../desired-state.ts";
import type { PodResolution } from "./decide-pod-step.ts";
import { PodVolumeError, podVolumeSpec, usedVolumes } from "./pod-volume-spec.ts";

/** What resolving works with. */
export interface ResolveEnv {
  readonly kube: KubeClient;
  readonly plugins: VolumePluginManager;
  readonly migration: MigratedPluginManager;
}

/** Resolves all volumes that containers of the pod use; a failure of one is among the errors. */
export async function resolvePod(
  env: ResolveEnv,
  pod: Stored<Pod>,
  signal: AbortSignal,
): Promise<PodResolution> {
  const volumes: ResolvedVolume[] = [];
  const errors: string[] = [];
  for (const volume of usedVolumes(pod)) {
    try {
      volumes.push(await resolveVolume(env, pod, volume, signal));
    } catch (error) {
      signal.throwIfAborted();
      errors.push(`volume ${volume.name}: ${errorChain(error)}`);
    }
  }
  return { volumes: mergedByName(volumes), errors };
}

async function resolveVolume(
  { kube, plugins, migration }: ResolveEnv,
  pod: Stored<Pod>,
  volume: Parameters<typeof podVolumeSpec>[2],
  signal: AbortSignal,
): Promise<ResolvedVolume> {
  const { spec, origin } = await podVolumeSpec({ kube, migration }, pod, volume, signal);
  const plugin = plugins.findPluginBySpec(spec);
  const attachable = (await plugins.findAttachablePluginBySpec(spec)) !== undefined;
  const deviceMountable = (await plugins.findDeviceMountablePluginBySpec(spec)) !== undefined;
  if (isBlockSpec(spec) && !isBlockVolumePlugin(plugin)) {
    throw new PodVolumeError(`plugin ${plugin.pluginName} has no block volumes: use volumeMode Filesystem`);
  }
  const uniqueName = uniqueVolumeName(plugin, spec, pod.metadata.uid);
  const outerNames = new Set([volume.name]);
  return { uniqueName, plugin, attachable, deviceMountable, origin, pod, spec, outerNames };
}

/** A pod may use one volume under several names: they become one entry. */
function mergedByName(volumes: readonly ResolvedVolume[]): readonly ResolvedVolume[] {
  const merged = new Map<string, ResolvedVolume>();
  for (const volume of volumes) {
    const earlier = merged.get(volume.uniqueName);
    const outerNames = new Set([...(earlier?.outerNames ?? []), ...volume.outerNames]);
    merged.set(volume.uniqueName, { ...(earlier ?? volume), outerNames });
  }
  return [...merged.values()];
}
