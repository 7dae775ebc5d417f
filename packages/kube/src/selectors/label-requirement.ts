/** One condition on labels, and a list of them (k8s.io/apimachinery/pkg/labels). */
import { labelValueErrors, qualifiedNameErrors } from "./validation.ts";

/** Operators as the text form of selectors writes them. */
export const labelOperators = ["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"] as const;
/** One of {@link labelOperators}. */
export type LabelOperator = (typeof labelOperators)[number];

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

/** A selector is not valid. */
export class SelectorError extends Error {
  override readonly name = "SelectorError";
}

/** One condition on one label. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted. */
  readonly values: readonly string[];
}

/** Makes a requirement. @throws SelectorError naming what is wrong */
export function labelRequirement(
  key: string,
  operator: LabelOperator,
  values: readonly string[],
): LabelRequirement {
  refuse("key", key, qualifiedNameErrors(key));
  checkCount(key, operator, values.length);
  if (operator === "gt" || operator === "lt") {
    for (const value of values) {
      if (parseInt64(value) === undefined) {
        throw new SelectorError(`${key}: "${value}" is not an integer, which 'Gt' and 'Lt' need`);
      }
    }
  }
  for (const value of values) refuse(`value of ${key}`, value, labelValueErrors(value));
  return { key, operator, values: [...values].sort(compareBytes) };
}

function refuse(what: string, text: string, complaints: readonly string[]): void {
  if (complaints.length > 0) throw new SelectorError(`${what} "${text}": ${complaints.join("; ")}`);
}

function checkCount(key: string, operator: LabelOperator, count: number): void {
  switch (operator) {
    case "in":
    case "notin":
      if (count === 0) throw new SelectorError(`${key}: 'in' and 'notin' need at least one value`);
      return;
    case "exists":
    case "!":
      if (count !== 0) throw new SelectorError(`${key}: 'exists' and '!' take no value`);
      return;
    default:
      if (count !== 1) throw new SelectorError(`${key}: '${operator}' takes exactly one value`);
  }
}

/** True when the labels meet the requirement. */
export function meets({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "=":
    case "==":
    case "in":
      return value !== undefined && values.includes(value);
    case "!=":
    case "notin":
      return value === undefined || !values.includes(value);
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "gt":
    case "lt": {
      const actual = value === undefined ? undefined : parseInt64(value);
      const bound = parseInt64(values[0] ?? "");
      if (actual === undefined || bound === undefined) return false;
      return operator === "gt" ? actual > bound : actual < bound;
    }
  }
}

/** The requirement in the text form. */
export function requirementText({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case "exists":
      return key;
    case "!":
      return `!${key}`;
    case "gt":
      return `${key}>${values[0] ?? ""}`;
    case "lt":
      return `${key}<${values[0] ?? ""}`;
    case "in":
    case "notin":
      return `${key} ${operator} (${values.join(",")})`;
    default:
      return `${key}${operator}${values[0] ?? ""}`;
  }
}

/** All of its requirements must be met; without any it matches everything. */
export class LabelMatcher {
  /** Sorted by key. */
  readonly requirements: readonly LabelRequirement[];
  constructor(requirements: readonly LabelRequirement[]) {
    this.requirements = [...requirements].sort((a, b) => compareBytes(a.key, b.key));
  }
  get isEmpty(): boolean {
    return this.requirements.length === 0;
  }
  matches(labels: Labels | undefined): boolean {
    return this.requirements.every((requirement) => meets(requirement, labels ?? {}));
  }
  toString(): string {
    return this.requirements.map(requirementText).join(",");
  }
}

/** Go's order of strings, for the characters that keys and values may have. */
export function compareBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A decimal int64, as Go's strconv.ParseInt reads it. */
function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
