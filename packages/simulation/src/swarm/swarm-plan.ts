/**
 * What one world of the swarm is: its cluster, the faults that exist in it and how often they strike, and the operations that
 * are made. A world has about half of the kinds: a fault that is always there hides what only happens without it (Groce et al.,
 * "Swarm Testing").
 */
import { clusterPlugins, type PluginName } from "@longshore/local";
import type { Random } from "@longshore/runtime";

/** Kinds of faults, by the names of their counters. */
export const faultKinds = [
  "lostRequest",
  "lostReply",
  "delay",
  "conflict",
  "throttled",
  "duplicateCall",
  "mountFailure",
  "fullDisk",
  "watchBroken",
  "watchExpired",
  "cloudThrottled",
  "cloudSlow",
  "cloudLate",
] as const;

/** Kinds of operations, by the names of their counters. */
export const operationKinds = [
  "podDeleted",
  "drain",
  "scale",
  "componentCrash",
  "componentRestart",
  "apiServerRestart",
  "powerLoss",
  "nodePaused",
  "clockJump",
  "nodeDeleted",
  "nodeReplaced",
  "outOfService",
  "claimGrown",
  "snapshotRestored",
  "gateFlip",
  "crossing",
] as const;

/** Kinds of volumes beside the directories of claims, by the names of their counters. */
export const volumeKinds = ["block", "inline", "ephemeral", "native"] as const;

/** A kind of fault. */
export type FaultKind = (typeof faultKinds)[number];
/** A kind of operation. */
export type OperationKind = (typeof operationKinds)[number];
/** A kind of volume. */
export type VolumeKind = (typeof volumeKinds)[number];
/** Whatever is counted. */
export type SwarmKind = FaultKind | OperationKind | VolumeKind;

/** A world. */
export interface SwarmPlan {
  readonly nodes: number;
  readonly plugins: readonly PluginName[];
  /** Those that the world has beside the directories of claims. */
  readonly volumes: readonly VolumeKind[];
  /** Writers of each plugin, no two of them on a node. */
  readonly replicas: number;
  /** The attach/detach controller goes by the node's statement alone (docs/behaviour/migration-controllers.md B2). */
  readonly nodeDecides: boolean;
  /** The gates of all plugins are on from the beginning: drivers make the volumes. */
  readonly beginsMigrated: boolean;
  /** How often the faults of the world strike, in thousandths of the calls that they concern. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  readonly operations: readonly OperationKind[];
  /** How many operations are made. */
  readonly rounds: number;
}

const pluginsMax = 3;
const ratesPerMille = [2, 8, 30, 100] as const;

/** Draws the world. */
export function drawPlan(random: Random): SwarmPlan {
  const isOn = (what: string) => random.below(2, what) === 0;
  const nodes = 1 + random.below(4, "nodes");
  const first = random.below(clusterPlugins.length, "first plugin");
  const count = 1 + random.below(pluginsMax, "plugins");
  const names = clusterPlugins.map(({ name }) => name);
  const plugins = [...names.slice(first), ...names.slice(0, first)].slice(0, count);
  const replicas = 1 + random.below(nodes, "writers");
  const rates = faultKinds.map((kind) => {
    const rate = ratesPerMille[random.below(ratesPerMille.length, `rate of ${kind}`)] ?? 0;
    return [kind, isOn(kind) ? rate : 0] as const;
  });
  const drawn = operationKinds.filter((kind) => isOn(kind));
  // Gates that are flipped during a crossing are no longer those that it has set.
  const crosses = isOn("crossing or flips");
  const operations = drawn.filter((kind) => kind !== (crosses ? "gateFlip" : "crossing"));
  return {
    nodes,
    plugins,
    volumes: volumeKinds.filter((kind) => isOn(kind)),
    replicas,
    // Flips in any order are safe only so (docs/behaviour/migration-controllers.md B2).
    nodeDecides: isOn("node decides") || operations.includes("gateFlip"),
    beginsMigrated: isOn("begins migrated"),
    faults: Object.fromEntries(rates.filter(([, rate]) => rate > 0)),
    operations,
    rounds: 5 + random.below(15, "rounds"),
  };
}
