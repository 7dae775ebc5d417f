/** How problems are told when there are many of them, or their paths are long: the answer is never much larger than the request. */
import type { FieldProblem } from "../api/errors.ts";

/** Most problems of one object that are looked for. */
export const problemsMax = 1000;

/** Most problems that are told, and how many characters they may have together. */
const toldMax = 100;
const toldLengthMax = 1_000_000;

/** Longest path of a field that is told in full. */
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

/** True when the path was told in full, and can be followed. */
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

/** As many of the problems as can be told, and how many others there are. */
export function toldProblems(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  let length = 0;
  let count = 0;
  for (const { field, message } of problems) {
    length += field.length + message.length;
    if (count > 0 && (count >= toldMax || length > toldLengthMax)) break;
    count++;
  }
  if (count === problems.length) return problems;
  const message = `Too many: ${problems.length - count} other problems are not told`;
  return [...problems.slice(0, count), { reason: "FieldValueTooMany", message, field: "<nil>" }];
}
