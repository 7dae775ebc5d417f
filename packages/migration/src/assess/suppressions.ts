/**
 * Findings that are accepted: each with a reason, and an end after which it is a finding again.
 *
 *     suppressions:
 *       - code: LS1102
 *         object: Node build-*
 *         reason: build nodes get no volumes
 *         until: 2027-03-31
 */
import { load } from "js-yaml";
import { found, type RuleFinding } from "./assessment-finding.ts";
import { findingCode } from "./finding-codes.ts";

/** One entry of the file. */
export interface Suppression {
  readonly code: string;
  /** The object of the finding; `*` stands for any text. Default: every object. */
  readonly object: string;
  readonly reason: string;
  /** The last day on which it counts (UTC), as YYYY-MM-DD. */
  readonly until: string;
}

/** A file of suppressions that cannot be used: names the entry, the field and the remedy. */
export class SuppressionError extends Error {
  override readonly name = "SuppressionError";
}

const fields: ReadonlySet<string> = new Set(["code", "object", "reason", "until"]);

/** Reads a file of suppressions. @throws SuppressionError */
export function parseSuppressions(text: string): readonly Suppression[] {
  const entries = membersOf(parsed(text)).suppressions;
  if (!Array.isArray(entries))
    throw new SuppressionError("`suppressions` is missing: it is a list of entries");
  return entries.map((entry: unknown, index) => suppressionOf(entry, `suppressions[${index}]`));
}

function parsed(text: string): unknown {
  try {
    return load(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n", 1)[0] : "";
    throw new SuppressionError(`it is no YAML: ${reason}`, { cause: error });
  }
}

function suppressionOf(entry: unknown, at: string): Suppression {
  const members = membersOf(entry);
  for (const name of Object.keys(members)) {
    if (!fields.has(name)) {
      throw new SuppressionError(`${at}.${name}: not a field; there are ${[...fields].join(", ")}`);
    }
  }
  const code = findingCode(textOf(members, "code", at, "a code, such as LS1102"));
  if (code === undefined) {
    throw new SuppressionError(
      `${at}.code: "${members.code}" is not a code; \`longshore explain\` lists them`,
    );
  }
  return {
    code: code.code,
    object: members.object === undefined ? "*" : textOf(members, "object", at, "an object, such as Node n1"),
    reason: textOf(members, "reason", at, "why the finding may stay"),
    until: dayOf(members, at),
  };
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(
  members: Readonly<Record<string, unknown>>,
  name: string,
  at: string,
  expected: string,
): string {
  const value = members[name];
  if (typeof value === "string" && value.trim() !== "") return value.trim();
  throw new SuppressionError(
    `${at}.${name}: ${value === undefined ? "missing" : "no text"}; write ${expected}`,
  );
}

/** YAML makes a date of what looks like one. */
function dayOf(members: Readonly<Record<string, unknown>>, at: string): string {
  const { until } = members;
  const text = until instanceof Date ? until.toISOString().slice(0, 10) : until;
  const isDay = typeof text === "string" && /^\d{4}-\d\d-\d\d$/.test(text) && isDate(text);
  if (isDay) return text;
  const what = until === undefined ? "missing" : "no day";
  throw new SuppressionError(`${at}.until: ${what}; write the last day on which it counts, as 2027-03-31`);
}

/** Whether there is such a day: 2027-02-30 is none. */
function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** Whether it counts no more. */
export function isExpired({ until }: Suppression, now: Date): boolean {
  return now.toISOString().slice(0, 10) > until;
}

/** The first suppression that covers the finding and counts. */
export function suppressionOfFinding(
  suppressions: readonly Suppression[],
  { code, object }: RuleFinding,
  now: Date,
): Suppression | undefined {
  return suppressions.find(
    (entry) => entry.code === code && !isExpired(entry, now) && matches(entry.object, object),
  );
}

/** The findings about suppressions that count no more. */
export function expiredSuppressions(suppressions: readonly Suppression[], now: Date): RuleFinding[] {
  return suppressions
    .filter((entry) => isExpired(entry, now))
    .map(({ code, object, reason, until }) =>
      found("LS1006", {
        object: `suppression of ${code} for ${object === "*" ? "every object" : object}`,
        field: "until",
        evidence: `it counted until ${until}; its reason is: ${reason}`,
      }),
    );
}

/** Whether the text is what the pattern says; each `*` stands for any text. Costs time in proportion to both. */
function matches(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const last = rest.pop() ?? "";
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
