/** Holds a decision of a controller to being pure, in tests. */
import { isDeepStrictEqual } from "node:util";
import type { Step } from "./pass.ts";

/**
 * Returns `decide` with a guard: what it is given is frozen deeply, so that a change throws, and it decides twice.
 *
 * @throws Error when the two decisions differ; TypeError when the decision changes what it was given
 */
export function pureDecision<O, S extends Step>(decide: (observed: O) => S): (observed: O) => S {
  return (observed) => {
    freeze(observed, new Set());
    const step = decide(observed);
    const again = decide(observed);
    if (isDeepStrictEqual(step, again)) return step;
    throw new Error(`the decision is not pure: ${step.step}, then ${again.step} on the same observation`);
  };
}

/** Freezes plain objects and arrays, and what they hold; instances of classes, maps and sets guard themselves. */
function freeze(value: unknown, seen: Set<unknown>): void {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !Array.isArray(value)) return;
  for (const member of Object.values(value)) freeze(member, seen);
  Object.freeze(value);
}
