/**
 * What one check of the conformance suite is: a description, what it needs of the driver, and a function of
 * its context. A check keeps nothing; what it makes is in the context's ledger and is removed after it.
 */
import type { CheckContext } from "./context.ts";
import type { DriverTarget } from "./target.ts";

/** The services by which checks are grouped, in the order in which they run. */
export const checkGroups = ["identity", "controller", "group-controller", "node", "protocol"] as const;

/** The first part of a check's id. */
export type CheckGroup = (typeof checkGroups)[number];

/** What must be so for a check to make sense. Gives the reason why it is not, or undefined when it is. */
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

/** The driver breaks the rule; the message says what was seen and what must be. */
export class CheckFailure extends Error {
  override readonly name = "CheckFailure";
}

/** Whether the rule holds cannot be seen here; the message says why. */
export class CheckSkipped extends Error {
  override readonly name = "CheckSkipped";
}

/** How a check ended. */
export interface CheckResult {
  readonly id: string;
  readonly sentence: string;
  readonly spec: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What was seen (failed), or why it was not looked at (skipped). */
  readonly message?: string;
  /** The calls of a failed check, in order, without secrets. */
  readonly calls?: readonly CallRecord[];
  readonly elapsedMs: number;
}

/** One call that was made. */
export interface CallRecord {
  readonly rpc: string;
  /** gRPC code by name; a call without an answer has the code that the transport gave it. */
  readonly code: string;
  /** The driver's status message, or what broke on the way; secret values are taken out. */
  readonly message?: string;
  /** The request in the JSON form of protobuf, secrets stripped. */
  readonly request: unknown;
  readonly elapsedMs: number;
}

/** The group of a check. */
export function groupOf(id: string): CheckGroup {
  const group = checkGroups.find((name) => id.startsWith(`${name}.`));
  if (group === undefined)
    throw new Error(`check ${id} is in no group: begin its id with one of ${checkGroups}`);
  return group;
}
