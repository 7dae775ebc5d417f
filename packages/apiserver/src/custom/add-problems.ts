/** Problems when there are many of them, or their paths are long: what is found is never much larger than the request. */
import type { FieldProblem } from "../api/errors.ts";

/** Most problems of one object that are looked for. */
export const problemsMax = 500;

/** Maximum length of a field path that is reported in full. */
const pathMax = 4096;

/** Stands for what is left out of a path. */
const leftOut = "…";

/** The path of what lies at `suffix` (`.name`, `[2]`) within `at`. */
export function pathWithin(at: string, suffix: string): string {
  if (at.length + suffix.length <= pathMax) return at + suffix;
  const shown = suffix.length <= 200 ? suffix : `${suffix.slice(0, 100)}${leftOut}${suffix.slice(-100)}`;
  return `${at.length <= pathMax / 2 ? at : at.slice(0, pathMax / 2)}${leftOut}${shown}`;
}

/** As {@link pathWithin}, for a member: at the root, its name alone. */
export function memberPath(at: string, name: string): string {
  return pathWithin(at, at === "" ? name : `.${name}`);
}

/** True when the path was reported in full, and can be followed. */
export function isWhole(path: string): boolean {
  return path.length <= pathMax && !path.includes(leftOut);
}

/** Adds to a list that never becomes longer than {@link problemsMax}. */
export function addProblems(to: FieldProblem[], problems: Iterable<FieldProblem>): void {
  for (const problem of problems) {
    if (to.length >= problemsMax) return;
    to.push(problem);
  }
}
