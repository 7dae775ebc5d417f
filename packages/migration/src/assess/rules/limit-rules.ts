/** How many volumes nodes may have: more than their drivers allow, and the room before and after a crossing. */
import type { MigrationGates } from "@longshore/translation";
import type { InventoryFacts } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";

/** Findings about limits. */
export function limitRules(view: InventoryFacts): RuleFinding[] {
  if (view.inventory.unread.has("CSINode")) return [];
  const used = usedVolumes(view);
  return [...exceeded(view, used), ...view.plugins.flatMap((gates) => headroom(view, gates, used))];
}

/** For each driver and node the volumes, each by what stands for it. */
type UsedVolumes = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<unknown>>>;

/** The volumes of each driver on each node. Those in pods count as well as PersistentVolumes do. */
function usedVolumes(view: InventoryFacts): UsedVolumes {
  const used = new Map<string, Map<string, Set<unknown>>>();
  for (const { nodeName, driver, what, pv } of view.uses) {
    const onNodes = used.get(driver) ?? new Map<string, Set<unknown>>();
    used.set(driver, onNodes);
    const volume = pv ?? what;
    const volumes = onNodes.get(nodeName);
    if (volumes === undefined) onNodes.set(nodeName, new Set([volume]));
    else volumes.add(volume);
  }
  return used;
}

function exceeded(view: InventoryFacts, used: UsedVolumes): RuleFinding[] {
  return view.inventory.csiNodes.flatMap(({ metadata, spec }) =>
    (spec?.drivers ?? []).flatMap(({ name, allocatable }) => {
      const count = used.get(name)?.get(metadata.name)?.size ?? 0;
      if (allocatable?.count === undefined || count <= allocatable.count) return [];
      return [
        found("LS1604", {
          object: `Node ${metadata.name}`,
          field: "CSINode spec.drivers[].allocatable.count",
          evidence: `its pods use ${count} volumes of ${name}, which allows ${allocatable.count}`,
        }),
      ];
    }),
  );
}

/** What is left of a limit on the nodes that have one. */
interface Room {
  nodes: number;
  least: number;
  limit: number;
  node: string;
}

/** Room on the nodes by the limit of the in-tree plugin and by that of the driver. */
function headroom(view: InventoryFacts, gates: MigrationGates, used: UsedVolumes): RuleFinding[] {
  const { inTreeName, driverName } = gates;
  const count = (node: string) => used.get(driverName)?.get(node)?.size ?? 0;
  const key = `attachable-volumes-${inTreeName.slice(inTreeName.indexOf("/") + 1)}`;
  const before = roomOf(
    view.inventory.nodes.map(({ metadata, status }) => [metadata.name, Number(status?.allocatable?.[key])]),
    count,
  );
  const after = roomOf(
    view.inventory.csiNodes.map(({ metadata, spec }) => [
      metadata.name,
      Number(spec?.drivers?.find(({ name }) => name === driverName)?.allocatable?.count),
    ]),
    count,
  );
  if (before === undefined && after === undefined) return [];
  const evidence = `before, by the in-tree limit: ${roomText(before)}; after, by the limit of ${driverName}: ${roomText(after)}`;
  return [found("LS1608", { object: `plugin ${inTreeName}`, evidence })];
}

function roomOf(
  limits: readonly (readonly [node: string, limit: number])[],
  count: (node: string) => number,
): Room | undefined {
  let room: Room | undefined;
  for (const [node, limit] of limits) {
    if (!Number.isFinite(limit)) continue;
    const left = limit - count(node);
    if (room === undefined) room = { nodes: 0, least: left, limit, node };
    if (left < room.least) Object.assign(room, { least: left, limit, node });
    room.nodes += 1;
  }
  return room;
}

function roomText(room: Room | undefined): string {
  if (room === undefined) return "no node has one";
  const { nodes, least, limit, node } = room;
  return `${nodes} nodes, the least room is ${least} of ${limit} on ${node}`;
}
