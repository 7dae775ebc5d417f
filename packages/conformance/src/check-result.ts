/** How a check ends, and by which names checks are known. */

/** The services by which checks are grouped, in the order in which they run. */
export const checkGroups = [
  "identity",
  "controller",
  "group-controller",
  "node",
  "snapshot-metadata",
  "protocol",
] as const;

/** The first part of a check's id. */
export type CheckGroup = (typeof checkGroups)[number];

/** The driver breaks the rule; the message says what was seen and what must be. */
export class CheckFailure extends Error {
  override readonly name = "CheckFailure";
}

/** Whether the rule holds cannot be seen here; the message says why. */
export class CheckSkipped extends Error {
  override readonly name = "CheckSkipped";
}

/** How binding a rule is: the specification demands it, recommends it, or the suite alone recommends it. */
export type Verb = "MUST" | "SHOULD" | "ADVICE";

/** How a check ended. */
export interface CheckResult {
  readonly id: string;
  readonly sentence: string;
  readonly spec: string;
  /** How binding the rule is. A broken MUST has failed; one that is less is a warning. */
  readonly verb: Verb;
  readonly outcome: "passed" | "failed" | "warned" | "skipped";
  /** What was seen (failed, warned), or why it was not looked at (skipped). */
  readonly message?: string;
  /** The calls of a check that failed or warned, in order, without secrets. */
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
