/** The in-tree plugins of a local cluster's controllers and nodes. */
import type { CloudProvider, DiskCloud, VolumePlugin } from "@longshore/volumes";
import { inTreePlugins } from "@longshore/volumes/in-tree-plugins";
import type { PluginName } from "../layout/plugins.ts";

/** Those of these names, not initialised, each bound to the cloud of its provider. */
export function inTreePluginsOf(
  names: readonly PluginName[],
  cloudFor: (provider: CloudProvider) => DiskCloud,
): readonly VolumePlugin[] {
  const wanted = new Set(names.map((name) => `kubernetes.io/${name}`));
  return inTreePlugins({ cloudFor }).filter(({ pluginName }) => wanted.has(pluginName));
}
