/** The faults of a world: at the calls of its components, and at the cloud. */
import type { InProcessCluster } from "@longshore/local";
import type { Clock } from "@longshore/runtime";
import { type CallGate, mayChange, type SeamCall } from "../cut.ts";
import type { FaultDraws } from "../fault-draws.ts";
import { faultyGate } from "../faults.ts";
import { FaultyCloud } from "../faulty-cloud.ts";
import { standstill } from "../standstill.ts";
import { type DeathsEnv, deathGate } from "./deaths.ts";
import type { Reached } from "./reached.ts";
import { swarmGate } from "./swarm-faults.ts";
import type { FaultKind, SwarmPlan } from "./swarm-plan.ts";
import type { WorldChecks } from "./world-checks.ts";
import type { WorldStory } from "./world-story.ts";

/** What they need. */
export interface WorldFaultsEnv extends Pick<DeathsEnv, "isRunning" | "die"> {
  readonly clock: Clock;
  readonly draws: FaultDraws;
  readonly plan: SwarmPlan;
  readonly story: WorldStory;
  readonly checks: WorldChecks;
  readonly reached: Reached;
  /** Undefined while it comes up. */
  cluster(): InProcessCluster | undefined;
}

/** Of one world. */
export class WorldFaults {
  /** No faults while the cluster comes up, nor at the end. */
  isHealed = true;
  /** What the faults of single calls and watches need. */
  readonly ofCalls: DeathsEnv & { readonly clock: Clock };
  readonly #env: WorldFaultsEnv;

  constructor(env: WorldFaultsEnv) {
    const { clock, draws, isRunning, die, story } = env;
    this.#env = env;
    this.ofCalls = {
      clock,
      draws,
      isRunning,
      die,
      rate: (kind) => this.#rate(kind),
      onFault: (kind, component, call) => story.fault(kind, component, call),
    };
  }

  /** What stands before every call of a component. */
  gate(): CallGate {
    const { story, checks, reached, cluster } = this.#env;
    const special = swarmGate(this.ofCalls);
    const deadly = deathGate(this.ofCalls);
    const common = faultyGate(
      this.ofCalls,
      () =>
        this.isHealed
          ? undefined
          : {
              lostRequest: this.#rate("lostRequest"),
              lostReply: this.#rate("lostReply"),
              delay: this.#rate("delay"),
              delayMsMax: 2000,
            },
      (call, fault) => {
        if (fault !== undefined) story.fault(fault.kind, call.component, `${call.seam}.${call.method}`);
        this.#step(call);
      },
    );
    return (call, proceed) => {
      const now = cluster();
      reached.called(call);
      if (now !== undefined) checks.onlyLeaderChanges(call, now);
      return common(call, () => special(call, () => deadly(call, proceed)));
    };
  }

  /** The cloud, as it misbehaves. */
  cloud(): FaultyCloud {
    const { clock, draws, story, checks, cluster } = this.#env;
    return new FaultyCloud({
      clock,
      draws,
      rates: () =>
        this.isHealed
          ? undefined
          : {
              throttledList: this.#rate("cloudThrottled") * 4,
              slowChange: this.#rate("cloudSlow"),
              lateChange: this.#rate("cloudLate"),
              changeMsMax: 30_000,
              deathAtChange: 0,
            },
      onFault: (what) => {
        const late = what.startsWith("answers") ? "cloudLate" : "cloudSlow";
        story.fault(what.startsWith("throttles") ? "cloudThrottled" : late, "the cloud", what);
      },
      onEffect: (call) => checks.asked(call, cluster()),
      onAttached: (call) => {
        const now = cluster();
        if (now !== undefined) checks.attached(call, now);
      },
      onDetached: () => this.#look(),
    });
  }

  #rate(kind: FaultKind): number {
    return this.isHealed ? 0 : (this.#env.plan.faults[kind] ?? 0);
  }

  /** Every call at a seam is a step: whatever it changed, the contract must hold after it. */
  #step(call: SeamCall): void {
    const cluster = this.#env.cluster();
    const look = () => {
      if (mayChange(call)) this.#look();
    };
    this.#env.story.step(look, () => (cluster === undefined ? [] : standstill(cluster)));
  }

  #look(): void {
    const cluster = this.#env.cluster();
    if (cluster !== undefined) this.#env.checks.look(cluster);
  }
}
