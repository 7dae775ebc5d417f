/** Nodes: what their CSINodes say of migrated plugins and of topology, and cordons that were left. */
import type { CSINode, Node, Stored } from "@longshore/kube";
import { migratedPluginsOf } from "@longshore/storage";
import type { MigrationGates } from "@longshore/translation";
import { isCordonedForCrossing } from "../../crossing/cordon.ts";
import { hasDriver, type InventoryFacts } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { minorVersionOf, pluginStateAt } from "../plugin-history.ts";

/** Findings about Nodes and CSINodes. */
export function nodeRules(view: InventoryFacts): RuleFinding[] {
  const findings = view.inventory.nodes.filter(isCordonedForCrossing).map((node) =>
    found("LS1605", {
      object: `Node ${node.metadata.name}`,
      field: "metadata.annotations",
      evidence: "it has the mark of a crossing's cordon",
    }),
  );
  if (view.inventory.unread.has("CSINode")) return findings;
  const nodes = new Map(view.inventory.nodes.map((node) => [node.metadata.name, node]));
  return [
    ...findings,
    ...view.inventory.csiNodes.flatMap((csiNode) =>
      annotation(view, csiNode, nodes.get(csiNode.metadata.name)),
    ),
    ...view.plugins.flatMap((gates) => halfCrossed(view, gates)),
    ...view.plugins.flatMap((gates) => withoutTopologyLabels(view, gates, nodes)),
  ];
}

function annotation(
  view: InventoryFacts,
  csiNode: Stored<CSINode>,
  node: Stored<Node> | undefined,
): RuleFinding[] {
  const name = csiNode.metadata.name;
  const listed = migratedPluginsOf(csiNode);
  const object = `Node ${name}`;
  const field = "CSINode metadata.annotations[storage.alpha.kubernetes.io/migrated-plugins]";
  const used = view.plugins.filter(({ inTreeName }) => listed.has(inTreeName));
  // A plugin of which the cluster has nothing needs no driver.
  const lacking = used.filter(({ driverName }) => !hasDriver(view, driverName, name));
  const minor = minorVersionOf(node?.status?.nodeInfo?.kubeletVersion);
  const silent =
    minor === undefined
      ? []
      : view.plugins.filter(
          ({ inTreeName }) => !listed.has(inTreeName) && pluginStateAt(inTreeName, minor) === "redirected",
        );
  return [
    ...lacking.map(({ inTreeName, driverName }) =>
      found("LS1601", {
        object,
        field,
        evidence: `it lists ${inTreeName}, and ${driverName} is not registered there`,
      }),
    ),
    ...silent.map(({ inTreeName }) =>
      found("LS1603", {
        object,
        field,
        evidence: `its kubelet is of 1.${minor}, and it does not list ${inTreeName}`,
      }),
    ),
  ];
}

function halfCrossed(view: InventoryFacts, { inTreeName }: MigrationGates): RuleFinding[] {
  const crossed = view.migratedOn.get(inTreeName);
  const others = view.inventory.csiNodes.filter(({ metadata }) => crossed?.has(metadata.name) !== true);
  if (crossed === undefined || others.length === 0) return [];
  const evidence = `${crossed.size} of ${view.inventory.csiNodes.length} nodes have crossed; not, for example, ${others[0]?.metadata.name}`;
  return [found("LS1602", { object: `plugin ${inTreeName}`, evidence })];
}

/** The scheduler compares the labels of nodes with the topology of volumes: a key without a label fits none. */
function withoutTopologyLabels(
  view: InventoryFacts,
  { driverName }: MigrationGates,
  nodes: ReadonlyMap<string, Stored<Node>>,
): RuleFinding[] {
  return view.inventory.csiNodes.flatMap(({ metadata, spec }) => {
    const labels = nodes.get(metadata.name)?.metadata.labels;
    const keys = spec?.drivers?.find(({ name }) => name === driverName)?.topologyKeys ?? [];
    if (!nodes.has(metadata.name)) return [];
    const lacking = keys.filter((key) => labels?.[key] === undefined);
    if (lacking.length === 0) return [];
    return [
      found("LS1607", {
        object: `Node ${metadata.name}`,
        field: "metadata.labels",
        evidence: `${driverName} has the topology keys ${keys.join(", ")} there, and the node has no label ${lacking.join(", ")}`,
      }),
    ];
  });
}
