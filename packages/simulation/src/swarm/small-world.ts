/**
 * Small worlds: a node or two, one plugin, a few operations. Most of what can break needs no more than that, and a seed costs a
 * tenth of a second of processor time, so that thousands can be played (Jackson, "Software Abstractions": the small scope hypothesis).
 */
import { type Random, SeededRandom } from "@longshore/runtime";
import { simulateWorld, type WorldOptions } from "./simulate-world.ts";
import { drawPlan, type SwarmPlan } from "./swarm-plan.ts";
import type { WorldResult } from "./world-result.ts";

const nodesMax = 2;
const roundsMax = 3;

/** Draws a small world: faults and operations are those of the swarm. */
function drawSmallPlan(random: Random): SwarmPlan {
  const drawn = drawPlan(random.fork("swarm"));
  const nodes = 1 + random.below(nodesMax, "nodes");
  const kind = random.below(drawn.volumes.length + 1, "kind of volume");
  return {
    ...drawn,
    nodes,
    plugins: drawn.plugins.slice(0, 1),
    volumes: drawn.volumes.slice(kind, kind + 1),
    replicas: 1 + random.below(nodes, "writers"),
    rounds: 1 + random.below(roundsMax, "rounds"),
  };
}

/** Runs one seed, as {@link simulateWorld} does. */
export function simulateSmallWorld({ plan, ...options }: WorldOptions): Promise<WorldResult> {
  const drawn = drawSmallPlan(new SeededRandom(options.seed).fork("small plan"));
  return simulateWorld({ ...options, plan: { ...drawn, ...plan } });
}
