/**
 * Comparing an answer with the recorded one: as JSON values, so that the order of members does not matter and
 * the order of lists does.
 */

import { isDeepStrictEqual } from "node:util";
import type { VectorCase } from "./types.ts";

/** What the implementation did with a case. */
export type Answer = { readonly output: unknown } | { readonly error: unknown };

/** The lines of a difference between the recorded and the given answer, or `undefined` where they agree. */
export function difference(vector: VectorCase, answer: Answer): readonly string[] | undefined {
  const accepted = vector.anyOf ?? [vector];
  for (const expected of accepted) {
    if ("error" in expected && expected.error !== undefined) {
      if ("error" in answer) return undefined;
    } else if ("output" in answer && isDeepStrictEqual(asJson(answer.output), expected.output)) return undefined;
  }
  const [expected] = accepted;
  if ("error" in answer) return [`- ${JSON.stringify(expected?.output)}`, `+ refused: ${messageOf(answer.error)}`];
  if (expected?.error !== undefined) {
    return [`- refused: ${expected.error}`, `+ ${JSON.stringify(asJson(answer.output))}`];
  }
  return diffValues("", expected?.output, asJson(answer.output));
}

/** The value as it reads after a trip through JSON: members that are `undefined` are gone. */
function asJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** One line for each place at which two JSON values part. */
function diffValues(path: string, expected: unknown, actual: unknown): string[] {
  if (isDeepStrictEqual(expected, actual)) return [];
  if (isObject(expected) && isObject(actual) && Array.isArray(expected) === Array.isArray(actual)) {
    const members = [...new Set([...Object.keys(expected), ...Object.keys(actual)])].sort();
    return members.flatMap((member) => {
      const both = [ownMember(expected, member), ownMember(actual, member)];
      return diffValues(`${path}.${member}`, both[0], both[1]);
    });
  }
  const lines: string[] = [];
  if (expected !== undefined) lines.push(`- ${path || "."}: ${JSON.stringify(expected)}`);
  if (actual !== undefined) lines.push(`+ ${path || "."}: ${JSON.stringify(actual)}`);
  return lines;
}

function isObject(value: unknown): value is { readonly [member: string]: unknown } {
  return typeof value === "object" && value !== null;
}

function ownMember(value: { readonly [member: string]: unknown }, member: string): unknown {
  return Object.hasOwn(value, member) ? value[member] : undefined;
}
