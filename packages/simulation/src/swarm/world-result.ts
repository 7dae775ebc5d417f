/** What a simulated world of the swarm gives: plain data, as it is after JSON. */
import type { SeedResult } from "../seed-result.ts";
import type { WorldReach } from "./reached.ts";
import type { SwarmKind, SwarmPlan } from "./swarm-plan.ts";

/** How it went; `struck` has the operations, too. */
export interface WorldResult extends SeedResult {
  readonly plan: SwarmPlan;
  /** How often each kind of fault and operation happened; those that did not are left out. */
  readonly counters: Readonly<Partial<Record<SwarmKind, number>>>;
  readonly reach: WorldReach;
  /** Records that were written and acknowledged. */
  readonly acknowledgedWrites: number;
}
