/** Reading CSINode objects: the only way from a node's name to the node id that a driver knows. */
import type { CSINode } from "@longshore/kube";
import { migratedPluginsAnnotation } from "./well-known.ts";

/** The node id of `driver`, or undefined while the driver is not registered on the node. */
export function nodeIdOf(csiNode: CSINode | undefined, driver: string): string | undefined {
  return driverOf(csiNode, driver)?.nodeID;
}

/** The topology keys of `driver` on the node; empty when it has none or is not there. */
export function topologyKeysOf(csiNode: CSINode | undefined, driver: string): readonly string[] {
  return driverOf(csiNode, driver)?.topologyKeys ?? [];
}

/** The in-tree plugins whose volumes the node treats as CSI; the list is split on commas without trimming. */
export function migratedPluginsOf(csiNode: CSINode | undefined): ReadonlySet<string> {
  const text = csiNode?.metadata?.annotations?.[migratedPluginsAnnotation] ?? "";
  return new Set(text.split(",").filter((name) => name !== ""));
}

function driverOf(csiNode: CSINode | undefined, driver: string) {
  return csiNode?.spec?.drivers?.find(({ name }) => name === driver);
}
