/**
 * One world of the swarm: a cluster, faults and operations drawn from a seed. The contract is checked at every step against
 * the world itself. Then the faults end, and everything must come to rest: the pods write, and what they used is let go.
 *
 * Invariant: the same seed and the same `only` produce the same trace.
 */
import { fileURLToPath } from "node:url";
import { readDefinitions } from "@longshore/apiserver";
import { SeededRandom, VirtualClock } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import type { SeedOptions } from "../seed-result.ts";
import { drawPlan, type SwarmPlan } from "./swarm-plan.ts";
import { SwarmWorld } from "./swarm-world.ts";
import type { WorldResult } from "./world-result.ts";

/** What to simulate. */
export interface WorldOptions extends SeedOptions {
  /** In place of what the seed draws. */
  readonly plan?: Partial<SwarmPlan>;
  /** The run ends after this step. */
  readonly until?: number;
}

/** Read once, before any virtual time passes. */
let read: ReturnType<typeof readDefinitions> | undefined;

function definitions(): ReturnType<typeof readDefinitions> {
  read ??= readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  return read;
}

const limitMs = 6 * 3_600_000;

/** Runs one seed. Never throws for what the world does; a stuck world is a violation of C8. */
export async function simulateWorld({ seed, plan, ...options }: WorldOptions): Promise<WorldResult> {
  const clock = new VirtualClock();
  const random = new SeededRandom(seed);
  const drawn = { ...drawPlan(random.fork("plan")), ...plan };
  const snapshotDefinitions = drawn.volumes.includes("native") ? await definitions() : [];
  const world = new SwarmWorld(clock, random, drawn, { ...options, snapshotDefinitions });
  try {
    await clock.run(Promise.race([world.play(), world.stopped]), { limitMs });
  } catch (error) {
    world.stuck(error instanceof Error ? error.message : String(error));
  }
  return { seed, plan: drawn, ...world.result() };
}
