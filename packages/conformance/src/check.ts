/**
 * What one check of the conformance suite is: a description, what it needs of the driver, and a function of
 * its context. A check keeps nothing; what it makes is in the context's ledger and is removed after it.
 */
import type { CheckContext } from "./check-context.ts";
import type { CheckGroup } from "./check-result.ts";
import type { DriverTarget } from "./driver-target.ts";

/** A precondition of a check. Returns the reason why it does not hold, or undefined when it holds. */
export type Need = (target: DriverTarget) => string | undefined;

/** One rule of the specification that can be seen from outside. */
export interface Check {
  /** Stable: group, RPC or subject, rule; e.g. `controller.create-volume.idempotent`. */
  readonly id: `${CheckGroup}.${string}`;
  /** What must hold, as a sentence. */
  readonly sentence: string;
  /** The section of the CSI specification that says so. */
  readonly spec: string;
  readonly needs?: readonly Need[];
  /** Checks without which this one says nothing: where one of them failed, this one is skipped. */
  readonly after?: readonly string[];
  /** Ends when the rule holds. @throws CheckFailure when it does not; CheckSkipped when that cannot be seen */
  run(context: CheckContext): Promise<void>;
}
