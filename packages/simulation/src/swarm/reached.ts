/**
 * What the components of a world have reached: the steps of their decisions, as their metric counts them, and the calls at which
 * one of them ended. Each has a name that is the same in every world, whatever the name of the node.
 */
import { type Meter, noMeter } from "@longshore/runtime";
import type { SeamCall } from "../cut.ts";

/** The metric that every controller counts its steps in. */
const stepsMetric = "longshore_controller_steps_total";

/** Counts of everything that was there to be reached; 0: it was not. */
export interface WorldReach {
  /** By controller and step, of every controller that ran. */
  readonly steps: Readonly<Record<string, number>>;
  /** By component, seam and method: how often a component crashed that waited for this call, of all calls that were made. */
  readonly crashPoints: Readonly<Record<string, number>>;
}

/** Follows what is reached. */
export class Reached {
  readonly #steps: Record<string, number> = {};
  readonly #crashPoints: Record<string, number> = {};

  /** What there is at this moment. */
  get reach(): WorldReach {
    return { steps: { ...this.#steps }, crashPoints: { ...this.#crashPoints } };
  }

  /** A meter for the components of the world; it measures nothing but steps. */
  meter(): Meter {
    const steps = this.#steps;
    const counter = {
      add(amount: number, { controller, step }: Readonly<Record<string, string>> = {}) {
        const name = `${controller}: ${step}`;
        steps[name] = (steps[name] ?? 0) + amount;
      },
    };
    return {
      ...noMeter,
      counter: (name, options) => (name === stepsMetric ? counter : noMeter.counter(name, options)),
    };
  }

  /** A component makes a call. */
  called({ component, seam, method }: SeamCall): void {
    this.#crashPoints[`${kindOf(component)} ${seam}.${method}`] ??= 0;
  }

  /** A component ends while it waits for these calls. */
  crashed(component: string, underWay: readonly string[]): void {
    for (const call of underWay) {
      const name = `${kindOf(component)} ${call}`;
      this.#crashPoints[name] = (this.#crashPoints[name] ?? 0) + 1;
    }
  }
}

/** What a component is, without the number of its node or replica. */
function kindOf(component: string): string {
  return component.replace(/-\d+$/, "");
}
