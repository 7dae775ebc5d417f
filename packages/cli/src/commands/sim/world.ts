/** The worlds that `longshore sim` plays, and the flags that say which. */
import {
  type ConversionSimulationResult,
  type DiskTimeline,
  type SeedOptions,
  type SimulationOptions,
  type SimulationResult,
  simulateConversion,
  simulateCrossing,
  simulateSmallWorld,
  simulateWorld,
  type WorldResult,
} from "@longshore/simulation";

/** Names of worlds; the first is played unless another is named. */
export const worldNames = ["crossing", "swarm", "small", "conversion"] as const;
/** The name of a world. */
export type WorldName = (typeof worldNames)[number];

/** How a seed went, in whichever world. */
export type WorldSeedResult = SimulationResult | WorldResult | ConversionSimulationResult;

/** What is asked of one run. */
export interface RunOptions extends SeedOptions {
  /** The run ends after this step. */
  readonly until?: number;
  /** Follows who holds which disk. */
  readonly timeline?: DiskTimeline;
}

/** What is simulated of every seed of a run of the command. */
export interface World {
  readonly name: WorldName;
  /** The flags with which `longshore sim` simulates it; those that are the default are left out. */
  readonly flags: readonly string[];
  /** Flags of the command that it cannot follow, with the reason. */
  readonly refused: Readonly<Record<string, string>>;
  simulate(options: RunOptions): Promise<WorldSeedResult>;
}

/** A rest is given in hours. */
export const hourMs = 3_600_000;
const nodesDefault = 2;

/** Crossings of a cluster with so many nodes, and its rest. */
export function crossingWorld(options: Pick<SimulationOptions, "nodes" | "restMs">): World {
  const { nodes = nodesDefault, restMs } = options;
  const flags = [
    ...(nodes === nodesDefault ? [] : ["--nodes", String(nodes)]),
    ...(restMs === undefined ? [] : ["--rest-hours", String(restMs / hourMs)]),
  ];
  const refused = { "--coverage": "which kinds of faults there are is drawn in the swarm only" };
  return { name: "crossing", flags, refused, simulate: (run) => simulateCrossing({ ...options, ...run }) };
}

const noRest = "only crossings rest";
const noTimeline = "who held which disk when is written for crossings only";

/** What worlds cannot follow whose cluster the seed draws. */
const drawnRefuses = {
  "--nodes": "each seed draws how many there are",
  "--rest-hours": noRest,
  "--timeline": noTimeline,
};

/** Worlds whose cluster, faults and operations the seed draws. */
export const swarmWorld: World = {
  name: "swarm",
  flags: ["--world", "swarm"],
  refused: drawnRefuses,
  simulate: (run) => simulateWorld(run),
};

/** The same with a node or two and one plugin. */
export const smallWorld: World = {
  name: "small",
  flags: ["--world", "small"],
  refused: drawnRefuses,
  simulate: (run) => simulateSmallWorld(run),
};

/** Conversions of PersistentVolumes, and their undo. */
export const conversionWorld: World = {
  name: "conversion",
  flags: ["--world", "conversion"],
  refused: {
    "--nodes": "its cluster has one",
    "--rest-hours": noRest,
    "--timeline": noTimeline,
    "--until": "a conversion is played to its end",
    "--coverage": "which kinds of faults there are is drawn in the swarm only",
  },
  simulate: (run) => simulateConversion(run),
};
