/** The states of the node's volumes together, and what others are answered from them. */
import { listsAttachments, type VolumePlugin } from "../../framework/volume-plugin.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { ActualState } from "./actual-state.ts";
import type { DesiredState } from "./desired-state.ts";
import type { Leftovers } from "./leftovers/leftovers.ts";
import type { MountedDisk, PluginNames } from "./managed-volumes.ts";
import type { NodePods } from "./pods/node-pods.ts";
import type { VolumePath } from "./volume-paths.ts";
import type { MountsInFlight } from "./volumes/mounts-in-flight.ts";
import type { Remounts } from "./volumes/remounts.ts";
import type { VolumeRecords } from "./volumes/volume-records.ts";

/** All that the volume manager knows. */
export interface NodeVolumeStates {
  readonly pods: NodePods;
  readonly desired: DesiredState;
  readonly actual: ActualState;
  readonly leftovers: Leftovers;
  readonly records: VolumeRecords;
  readonly mounts: MountsInFlight;
  readonly remounts: Remounts;
  /** Volumes whose attachment is being confirmed right now: they are about to be in the actual state. */
  readonly verifying: Set<string>;
}

/** A volume in a pod's directory. */
export interface VolumeInPod {
  readonly path: string;
  readonly readOnly: boolean;
  /** Name of the volume's directory in the pod. */
  readonly volumeName: string;
}

/** What belongs into `volumesInUse`, sorted: desired or possibly here, or kept for directories not understood. */
export function namesInUse({ desired, actual, leftovers }: NodeVolumeStates): readonly string[] {
  const names = new Set(leftovers.namesInUse);
  for (const volume of desired.volumes()) if (volume.attachable) names.add(volume.uniqueName);
  for (const volume of actual.volumes()) if (volume.attachable) names.add(volume.uniqueName);
  return [...names].sort();
}

/** Attached volumes of which something is or may be mounted. */
export function mountedDisksOf({ actual }: NodeVolumeStates): readonly MountedDisk[] {
  return [...actual.volumes()].filter(
    ({ attachable, device, pods }) => attachable && (device.state !== "notMounted" || pods.size > 0),
  );
}

/** What is possibly here and attached, while neither a VolumeAttachment nor a provider's list says so: Flexvolumes. */
export function namesUnlisted({ actual }: NodeVolumeStates): readonly string[] {
  return [...actual.volumes()]
    .filter(({ attachable, plugin }) => attachable && isUnlisted(plugin))
    .map(({ uniqueName }) => uniqueName);
}

function isUnlisted(plugin: VolumePlugin): boolean {
  return plugin.pluginName !== csiPluginName && !listsAttachments(plugin);
}

/** Volumes of the pod that are certainly mounted, by the names in the pod's spec. */
export function mountedVolumesOf(
  { pods, desired, actual }: NodeVolumeStates,
  podUID: string,
): ReadonlyMap<string, VolumeInPod> {
  const mounted = new Map<string, VolumeInPod>();
  // From the moment a pod is known to end, no container of it may start. A caller that read the mounts
  // before that counts in the runtime, which is asked after it.
  if (pods.hasEnded(podUID)) return mounted;
  for (const volume of desired.volumesOf(podUID)) {
    const mount = actual.podOf(volume.uniqueName, podUID);
    if (mount?.state !== "mounted") continue;
    const { path, readOnly, volumeName } = mount;
    for (const name of volume.pods.get(podUID)?.outerNames ?? [])
      mounted.set(name, { path, readOnly, volumeName });
  }
  return mounted;
}

/** True when nothing of the plugin is, may be or is about to be mounted on the given way. */
export function nothingMounted(
  { desired, actual, leftovers, verifying }: NodeVolumeStates,
  path: VolumePath,
  { inTreeName }: PluginNames,
): boolean {
  for (const { origin, plugin } of actual.volumes()) {
    if (origin === inTreeName) return false;
    if (path === "in-tree" && plugin.pluginName === inTreeName) return false;
  }
  for (const uniqueName of verifying) if (desired.get(uniqueName)?.origin === inTreeName) return false;
  const pluginName = path === "csi" ? csiPluginName : inTreeName;
  return leftovers.all.every(({ plugin }) => plugin.pluginName !== pluginName);
}
