/**
 * The in-tree plugins of a local cluster's controllers and nodes. A component never imports this: a build without in-tree code
 * has no use for it (docs/behaviour/volume-plugins.md 7.4).
 */
import { inTreePlugins } from "@longshore/volumes/in-tree-plugins";
import type { PluginName } from "../layout/plugins.ts";
import type { MakeInTreePlugins } from "./make-in-tree-plugins.ts";

/** Makes those of these names. */
export function inTreePluginsNamed(names: readonly PluginName[]): MakeInTreePlugins {
  const wanted = new Set(names.map((name) => `kubernetes.io/${name}`));
  return (cloudFor) => inTreePlugins({ cloudFor }).filter(({ pluginName }) => wanted.has(pluginName));
}
