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
  "watchLag",
  "deathAtCall",
  "driverDeath",
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
  "leaderPaused",
  "zoneOutage",
  "driversRemoved",
  "registrationLost",
  "versionChange",
  "conversion",
  "flexDriverChanged",
  "reboot",
  "inlineConversion",
  "restoredFromBackup",
  "podForceDeleted",
  "claimDeleted",
  "driverUpgraded",
] as const;

/** Kinds of volumes beside the directories of claims, by the names of their counters. */
export const volumeKinds = ["block", "inline", "ephemeral", "native", "flexvolume", "csiInline"] as const;

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
  /** Over how many zones they are spread. */
  readonly zones: number;
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

/** Operations that set gates with no regard to a crossing. */
const flips: readonly OperationKind[] = ["gateFlip", "versionChange"];
const pluginsMax = 3;
const ratesPerMille = [2, 8, 30, 100] as const;

/** Drawn from a stream of their own each: the worlds without them are what they were before there were such kinds. */
const drawnApart: readonly SwarmKind[] = [
  "flexvolume",
  "flexDriverChanged",
  "reboot",
  "inlineConversion",
  "restoredFromBackup",
  "podForceDeleted",
  "claimDeleted",
  "driverUpgraded",
];

/** Whether worlds without this kind are the same with and without it in the lists. */
export const isDrawnApart = (kind: SwarmKind): boolean => drawnApart.includes(kind);

/** Whether there is something in the world for the operation to be done to. */
export function hasSubject(kind: OperationKind, volumes: readonly VolumeKind[]): boolean {
  return kind !== "flexDriverChanged" || volumes.includes("flexvolume");
}

/** Draws the world. */
export function drawPlan(random: Random): SwarmPlan {
  const isOn = (what: string) => random.below(2, what) === 0;
  const has = (kind: OperationKind | VolumeKind) =>
    isDrawnApart(kind) ? random.fork(kind).below(2, kind) === 0 : isOn(kind);
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
  const drawn = operationKinds.filter(has);
  // Gates that are flipped during a crossing are no longer those that it has set.
  const others: readonly OperationKind[] = isOn("crossing or flips") ? flips : ["crossing"];
  const faults = Object.fromEntries(rates.filter(([, rate]) => rate > 0));
  // A Node that is deleted, and whose agent dies before it makes it again, is given up: its volumes are taken from it by force.
  const isFatal = faults.deathAtCall !== undefined;
  const possible = drawn.filter((kind) => !others.includes(kind) && !(isFatal && kind === "nodeDeleted"));
  const volumes = volumeKinds.filter(has);
  const operations = possible.filter((kind) => hasSubject(kind, volumes));
  // What pods name themselves says no zone: its pod could go where its disk is not.
  const zones = isOn("two zones") && !volumes.includes("inline") ? 2 : 1;
  return {
    nodes,
    zones,
    plugins,
    volumes,
    replicas,
    // Flips in any order are safe only so (docs/behaviour/migration-controllers.md B2).
    nodeDecides: isOn("node decides") || operations.some((kind) => flips.includes(kind)),
    beginsMigrated: isOn("begins migrated"),
    faults,
    operations,
    rounds: 5 + random.below(15, "rounds"),
  };
}
