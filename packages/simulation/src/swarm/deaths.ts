/** Components that die at a call: before it leaves, or after it took effect and before the answer comes. */
import { CsiCallError } from "@longshore/csi";
import type { CallGate, SeamCall } from "../cut.ts";
import { type SwarmFaultsEnv, strikes } from "./swarm-faults.ts";

/** What deaths need. */
export interface DeathsEnv extends SwarmFaultsEnv {
  /** Whether it runs, so that it can die. */
  isRunning(component: string): boolean;
  /** Ends the component now, and starts it again after so many milliseconds. */
  die(component: string, downMs: number): void;
}

const downMsMax = 10_000;

/** A gate at which the component that calls dies, or the driver of a node that it calls. */
export function deathGate(env: DeathsEnv): CallGate {
  return async (call, proceed) => {
    const kind = dies(env, "deathAtCall", call.component, call)
      ? "deathAtCall"
      : dies(env, "driverDeath", driverOf(call), call)
        ? "driverDeath"
        : undefined;
    if (kind === undefined) return proceed();
    const victim = kind === "deathAtCall" ? call.component : (driverOf(call) ?? "");
    const draw = env.draws.next(`${victim} ${kind} how`);
    const downMs = 1 + draw.below(downMsMax);
    const hasEffect = draw.below(2) === 1;
    const when = hasEffect ? "after" : "before";
    env.onFault(kind, victim, `${when} ${call.seam}.${call.method} of ${call.component}`);
    const answer = hasEffect ? proceed() : undefined;
    // Its caller may be dead when it comes: unhandled, its failure would end the process of the simulation.
    await answer?.catch(() => {});
    env.die(victim, downMs);
    if (kind === "deathAtCall") return new Promise(() => {});
    throw new CsiCallError(call.method, "UNAVAILABLE", "the driver has ended", { answered: false });
  };
}

function dies(
  env: DeathsEnv,
  kind: "deathAtCall" | "driverDeath",
  victim: string | undefined,
  call: SeamCall,
): boolean {
  return victim !== undefined && env.isRunning(victim) && strikes(env, kind, call);
}

/** The driver on the node whose agent calls. */
function driverOf({ component, seam, method }: SeamCall): string | undefined {
  return seam === "csi" && method.startsWith("node") && !component.startsWith("csi-")
    ? `csi-node/${component}`
    : undefined;
}
