/**
 * The annotation on a CSINode that says which in-tree plugins this node has handed over to CSI.
 * Source: docs/behaviour/node-agent.md 2.4.
 */
import type { CSINode } from "@longshore/kube";
import { migratedPluginsAnnotation, migratedPluginsOf } from "@longshore/storage";

/** The object with exactly these plugins listed; the same object when they are listed already. */
export function withMigratedPlugins(node: CSINode, plugins: ReadonlySet<string>): CSINode {
  const current = migratedPluginsOf(node);
  if (current.size === plugins.size && [...plugins].every((name) => current.has(name))) return node;
  const { [migratedPluginsAnnotation]: _dropped, ...others } = node.metadata?.annotations ?? {};
  const list = [...plugins].sort().join(",");
  const annotations = list === "" ? others : { ...others, [migratedPluginsAnnotation]: list };
  return { ...node, metadata: { ...node.metadata, annotations } };
}
