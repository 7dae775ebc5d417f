/**
 * Small worlds: a node or two, one plugin, a few operations. Most of what can break needs no more than that, and a seed costs a
 * tenth of a second of processor time, so that thousands can be played (Jackson, "Software Abstractions": the small scope hypothesis).
 */
import { type Random, SeededRandom } from "@longshore/runtime";
import { simulateWorld, type WorldOptions } from "./simulate-world.ts";
import { drawPlan, hasSubject, isDrawnApart, type SwarmPlan, type VolumeKind } from "./swarm-plan.ts";
import type { WorldResult } from "./world-result.ts";

const nodesMax = 2;
const roundsMax = 3;

/** Draws a small world: faults and operations are those of the swarm. */
function drawSmallPlan(random: Random): SwarmPlan {
  const drawn = drawPlan(random.fork("swarm"));
  const nodes = 1 + random.below(nodesMax, "nodes");
  const volumes = oneKind(random, drawn.volumes);
  return {
    ...drawn,
    nodes,
    plugins: drawn.plugins.slice(0, 1),
    volumes,
    replicas: 1 + random.below(nodes, "writers"),
    operations: drawn.operations.filter((kind) => hasSubject(kind, volumes)),
    rounds: 1 + random.below(roundsMax, "rounds"),
  };
}

/** One kind of volumes or none. Half of the worlds that may have a kind that is drawn apart have it. */
function oneKind(random: Random, drawn: readonly VolumeKind[]): readonly VolumeKind[] {
  const others = drawn.filter((kind) => !isDrawnApart(kind));
  const at = random.below(others.length + 1, "kind of volume");
  const apart = drawn.filter(isDrawnApart);
  const ofApart = random.fork("kind drawn apart").below(2 * Math.max(1, apart.length), "kind of volume");
  return ofApart < apart.length ? apart.slice(ofApart, ofApart + 1) : others.slice(at, at + 1);
}

/** Runs one seed, as {@link simulateWorld} does. */
export function simulateSmallWorld({ plan, ...options }: WorldOptions): Promise<WorldResult> {
  const drawn = drawSmallPlan(new SeededRandom(options.seed).fork("small plan"));
  return simulateWorld({ ...options, plan: { ...drawn, ...plan } });
}
