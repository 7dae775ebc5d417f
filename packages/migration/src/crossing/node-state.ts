/** What a crossing reads off a node: pure functions of its objects. Source: docs/behaviour/migration-controllers.md C1, C2. */
import type { CSINode, Node, VolumeAttachment } from "@longshore/kube";
import { migratedPluginsAnnotation, uncertainVolumesOf } from "@longshore/storage";
import { type CrossingDirection, type CrossingSubject, isVolumeOf } from "./crossing-subject.ts";

/** What of the plugin is still in use or attached on the node; empty when nothing is. */
export function volumesLeft(
  subject: CrossingSubject,
  node: Node,
  attachments: readonly VolumeAttachment[],
): string[] {
  const inUse = (node.status?.volumesInUse ?? []).filter((name) => isVolumeOf(subject, name));
  const attached = (node.status?.volumesAttached ?? [])
    .map((volume) => volume.name)
    .filter((name) => isVolumeOf(subject, name));
  // A volume leaves `volumesAttached` before it is detached.
  const uncertain = uncertainVolumesOf(node).filter((name) => isVolumeOf(subject, name));
  const joined = attachments
    .filter((va) => va.spec.nodeName === node.metadata?.name && va.spec.attacher === subject.driverName)
    .map((va) => `VolumeAttachment ${va.metadata?.name ?? ""}`);
  return [
    ...inUse.map((name) => `${name} in use`),
    ...attached.map((name) => `${name} attached`),
    ...uncertain.map((name) => `${name} perhaps attached (the attach/detach controller is to confirm)`),
    ...joined,
  ];
}

/** In-tree names of the plugins that the node serves through CSI: its migrated-plugins annotation. */
export function migratedPluginsOf(csiNode: CSINode | undefined): string[] {
  const text = csiNode?.metadata?.annotations?.[migratedPluginsAnnotation] ?? "";
  return text.split(",").filter((name) => name !== "");
}

/** What the node's CSINode still lacks for the direction, or undefined when it is as it should be. */
export function csiNodeLacks(
  subject: CrossingSubject,
  direction: CrossingDirection,
  csiNode: CSINode | undefined,
): string | undefined {
  const isListed = migratedPluginsOf(csiNode).includes(subject.inTreeName);
  if (direction === "rollback")
    return isListed ? "the plugin to leave the migrated-plugins annotation" : undefined;
  if (csiNode === undefined) return "the CSINode";
  if (!isListed) return "the plugin in the migrated-plugins annotation";
  return csiNode.spec.drivers?.some((d) => d.name === subject.driverName) === true
    ? undefined
    : `the driver ${subject.driverName} in the CSINode`;
}
