/** What the operators of a swarm's world do, one operation after the other; crossings go on beside them. */
import type { FaultDraws } from "../fault-draws.ts";
import { type Expectation, Operators, type OperatorsEnv } from "./operations/operators.ts";
import { operationsByKind } from "./operations/registry.ts";
import type { OperationKind } from "./swarm-plan.ts";

/** What they need. */
export interface SwarmOperationsEnv extends OperatorsEnv {
  readonly draws: FaultDraws;
  onOperation(kind: OperationKind, what: string): void;
}

const pauseMsMax = 20_000;
const downMsMax = 30_000;
const killedAfterMsMax = 60_000;

/** The operators at work. */
export class SwarmOperations {
  readonly #env: SwarmOperationsEnv;
  readonly #operators: Operators;

  constructor(env: SwarmOperationsEnv) {
    this.#env = env;
    this.#operators = new Operators(env);
  }

  /** Makes all operations of the plan. */
  async play(): Promise<void> {
    const { plan, draws, clock, onOperation } = this.#env;
    for (let round = 0; round < plan.rounds; round++) {
      const draw = draws.next("operation");
      const pauseMs = 1 + draw.below(pauseMsMax);
      const kind = plan.operations[draw.below(Math.max(1, plan.operations.length))];
      // Drawn always: whether an operation is let happen changes no later one.
      const drawn = {
        name: draw.name,
        target: draw.below(1 << 16),
        ms: 1 + draw.below(downMsMax),
        isOn: draw.below(2) === 1,
        killMs: 1 + draw.below(killedAfterMsMax),
      };
      await clock.sleep(pauseMs, this.#operators.signal);
      if (kind === undefined) continue;
      const happens = (what: string) => {
        if (!draws.happens(draw)) return false;
        onOperation(kind, what);
        return true;
      };
      await operationsByKind[kind](this.#operators, { ...drawn, happens });
    }
  }

  /** Starts components again after this time, in milliseconds. */
  comesBack(ms: number, ...components: readonly string[]): void {
    this.#operators.comesBack(ms, ...components);
  }

  /** What must come to hold once the writers run again. */
  get expectations(): readonly Expectation[] {
    return this.#operators.expectations;
  }

  /** What was begun comes to its end, and every component runs. */
  end(): Promise<void> {
    return this.#operators.end();
  }
}
