/**
 * Limits on client input: nesting that would exhaust the stack, and values that are
 * small as text and huge as a tree (YAML aliases, the copy operation of a JSON patch). Also limits how many
 * problems an answer reports.
 */
import { spendTime } from "./work-time.ts";

/** Deepest nesting of lists and objects. Objects of the API have about twenty levels. */
export const depthMax = 500;

/** Most values in one body; one of the longest allowed length has no more than this in honest JSON. */
const valuesMax = 2_000_000;

/** Maximum number of problems that one answer reports. */
export const problemsMax = 1000;

/** Maximum total number of their characters, except for the first problem. */
export const problemLengthMax = 1024 * 1024;

/** Most characters of a value that a problem shows. */
export const shownLengthMax = 64 * 1024;

/** Why the value is refused, or undefined. */
export function excessOf(value: unknown): string | undefined {
  let seen = 0;
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > depthMax) return `it is nested more than ${depthMax} levels deep`;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      for (const member of Array.isArray(item) ? item : Object.values(item)) {
        spendTime();
        if (++seen > valuesMax) return `it holds more than ${valuesMax} values`;
        if (typeof member === "object" && member !== null) next.push(member);
      }
    }
    level = next;
  }
  return undefined;
}
