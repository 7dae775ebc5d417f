/** How metrics name the plugin of a volume. Source: docs/behaviour/node-agent.md 10. */
import { splitUniqueName, type UniqueVolumeName } from "../framework/unique-volume-name.ts";
import type { VolumeSpec } from "../framework/volume-spec.ts";
import { csiPluginName, parseCsiVolumeName } from "../plugins/csi/csi-names.ts";

/** The plugin's name; for CSI with the driver that serves the volume: `kubernetes.io/csi:<driver>`. */
export function volumePluginLabel(pluginName: string, spec: VolumeSpec): string {
  const driver = spec.persistentVolume?.spec?.csi?.driver ?? spec.volume?.csi?.driver;
  return pluginName === csiPluginName && driver !== undefined ? `${pluginName}:${driver}` : pluginName;
}

/** Likewise, of an attachable volume of which the name alone may be known. A name that is no volume's: `N/A`. */
export function volumePluginLabelOfName(uniqueName: UniqueVolumeName): string {
  try {
    const { pluginName, volumeName } = splitUniqueName(uniqueName);
    if (pluginName !== csiPluginName) return pluginName;
    return `${pluginName}:${parseCsiVolumeName(volumeName).driver}`;
  } catch {
    return uniqueName.startsWith(`${csiPluginName}/`) ? csiPluginName : "N/A";
  }
}
