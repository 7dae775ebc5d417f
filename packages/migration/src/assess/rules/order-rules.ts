/**
 * Flips in the wrong order: the control plane is switched over before the nodes and back after them, each node while nothing of
 * the plugin is attached there. Source: docs/behaviour/migration-controllers.md C1 to C3.
 */
import { migratedPluginsOf } from "@longshore/storage";
import { type InventoryFacts, pluginOfVolume } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";

/** Findings about the order of a crossing. */
export function orderRules(view: InventoryFacts): RuleFinding[] {
  const { csiNodes, unread } = view.inventory;
  if (unread.has("CSINode")) return [];
  const migrated = new Map(csiNodes.map((csiNode) => [csiNode.metadata.name, migratedPluginsOf(csiNode)]));
  return [...attachedInTree(view, migrated), ...attachedByDriver(view, migrated)];
}

/** The node waits for an attachment by the driver, and the control plane has attached in the tree. */
function attachedInTree(
  view: InventoryFacts,
  migrated: ReadonlyMap<string, ReadonlySet<string>>,
): RuleFinding[] {
  return view.inventory.nodes.flatMap(({ metadata, status }) => {
    const plugins = migrated.get(metadata.name);
    if (plugins === undefined) return [];
    return (status?.volumesAttached ?? [])
      .filter(({ name }) => plugins.has(name.split("/").slice(0, 2).join("/")))
      .map(({ name }) =>
        found("LS1606", {
          object: `Node ${metadata.name}`,
          field: "status.volumesAttached",
          evidence: `its kubelet has crossed, and ${name} is attached there by the in-tree plugin`,
        }),
      );
  });
}

/** The node mounts in the tree, and the control plane has the driver attach. */
function attachedByDriver(
  view: InventoryFacts,
  migrated: ReadonlyMap<string, ReadonlySet<string>>,
): RuleFinding[] {
  return view.inventory.attachments.flatMap((va) => {
    const pv = view.volumeByName.get(va.spec.source.persistentVolumeName ?? "");
    const gates = pv === undefined ? undefined : pluginOfVolume(pv);
    const plugins = migrated.get(va.spec.nodeName);
    if (gates === undefined || plugins === undefined || plugins.has(gates.inTreeName)) return [];
    if (va.metadata.deletionTimestamp !== undefined) return [];
    return [
      found("LS1606", {
        object: subjectOf("VolumeAttachment", va),
        field: "spec.nodeName",
        evidence: `${gates.driverName} is to attach PersistentVolume ${pv?.metadata.name} to node ${va.spec.nodeName}, whose kubelet does not have ${gates.inTreeName} on its list of migrated plugins`,
      }),
    ];
  });
}
