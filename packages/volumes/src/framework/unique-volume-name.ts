/** Names of volumes and the rule of who may share one. Source: docs/behaviour/volume-plugins.md 5. */
import { isAttachable, isDeviceMountable, type VolumePlugin } from "./volume-plugin.ts";
import { isBlockSpec, specName, type VolumeSpec } from "./volume-spec.ts";

/** `<pluginName>/<volume>`: the same on the controller, on the node and in the node's status. */
export type UniqueVolumeName = string;

/** The text is not a unique volume name. */
export class UniqueNameError extends Error {
  override readonly name = "UniqueNameError";
}

/**
 * The unique name: from the plugin's own name of the volume when the plugin can attach or mount
 * devices or the volume is a block device, else from the pod.
 */
export function uniqueVolumeName(plugin: VolumePlugin, spec: VolumeSpec, podUID: string): UniqueVolumeName {
  if (isSharedByPods(plugin, spec)) return uniqueNameOf(plugin.pluginName, plugin.getVolumeName(spec));
  return uniqueNameOf(plugin.pluginName, `${podUID}-${specName(spec)}`);
}

/** Whether pods of a node share the volume, and not only its files: its device. An inline CSI volume is made for its pod. */
export function isSharedByPods(plugin: VolumePlugin, spec: VolumeSpec): boolean {
  return (isAttachable(plugin) || isDeviceMountable(plugin) || isBlockSpec(spec)) && spec.volume?.csi == null;
}

/** Joins the two halves of a unique name. */
export function uniqueNameOf(pluginName: string, volumeName: string): UniqueVolumeName {
  return `${pluginName}/${volumeName}`;
}

/**
 * The two halves of a unique name; the volume's half may itself contain slashes.
 * @throws UniqueNameError when there are fewer than three parts
 */
export function splitUniqueName(uniqueName: UniqueVolumeName): {
  readonly pluginName: string;
  readonly volumeName: string;
} {
  const first = uniqueName.indexOf("/");
  const second = first < 0 ? -1 : uniqueName.indexOf("/", first + 1);
  if (second < 0) {
    throw new UniqueNameError(
      `unique volume name "${uniqueName}": expected <vendor>/<plugin>/<volume>; correct the entry`,
    );
  }
  return { pluginName: uniqueName.slice(0, second), volumeName: uniqueName.slice(second + 1) };
}

/** Whether the volume may be attached to several nodes at once. A volume without a spec counts as one that may. */
export function isMultiAttachAllowed(spec: VolumeSpec | undefined): boolean {
  if (spec === undefined) return true;
  if (spec.volume !== undefined) return spec.volume.azureDisk == null && spec.volume.cinder == null;
  const modes = spec.persistentVolume?.spec?.accessModes ?? [];
  return modes.length === 0 || modes.includes("ReadWriteMany") || modes.includes("ReadOnlyMany");
}
