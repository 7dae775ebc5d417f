/**
 * Validates a custom resource against its schema and reports problems in the words of the reference (kube-openapi
 * validation/validate, apiextensions-apiserver pkg/apiserver/validation). The checks run in the reference's order:
 * type, combinations, then what belongs to the value's own type, then the list of known values, then members.
 */

import type { CustomSchema } from "../api/custom-schema.ts";
import { type FieldProblem, invalidValue, requiredValue, unsupportedValue } from "../api/errors.ts";
import { isNumber, toJson, toSortedJson } from "../api/json.ts";
import { spendTime } from "../api/work-time.ts";
import { addProblems, memberPath, pathWithin } from "./add-problems.ts";
import { hasFormat } from "./formats.ts";
import { patternMatches, patternSteps } from "./pattern-matches.ts";
import { own } from "./prune.ts";

/** How problems are reported. */
export interface ValidationWords {
  /** Wrong types, and lists and texts that are too long, have separate reasons (behaviour `crdTypedCauses`). */
  readonly typedCauses: boolean;
  /** Paths contain the index of a list item (behaviour `crdItemPaths`). */
  readonly itemPaths: boolean;
}

/**
 * What is wrong with the value; empty when nothing is. Takes from `work` what it takes, about a fifth of a microsecond
 * a piece: a large schema and a large object may ask everything of everything.
 */
export function validateValue(
  value: unknown,
  schema: CustomSchema,
  words: ValidationWords,
  at = "",
  work: Work = { left: workMax },
): readonly FieldProblem[] {
  try {
    return new Validation(words, work).validate(value, schema, at).problems;
  } catch (error) {
    if (!(error instanceof TooMuchWorkError)) throw error;
    return [invalidValue(at, typeOf(value), "it is too large, or its schema is, to be validated")];
  }
}

/** What may still be done. */
export interface Work {
  left: number;
}

/** Most work that one object may be; the longest that can be sent has a million values. */
export const workMax = 4_000_000;

/** Work of reporting one problem. */
const problemWork = 25;

/** Steps of patterns that are as much as one of ours. */
const patternStepsOfOne = 16;

class TooMuchWorkError extends Error {
  override readonly name = "TooMuchWorkError";
}

interface Result {
  readonly problems: FieldProblem[];
  /** Number of checks that passed: of several alternatives, the best match is reported. */
  matches: number;
}

const newResult = (): Result => ({ problems: [], matches: 0 });

class Validation {
  readonly #words: ValidationWords;
  readonly #work: Work;

  constructor(words: ValidationWords, work: Work) {
    this.#words = words;
    this.#work = work;
  }

  /** @throws TooMuchWorkError when there is not so much left to spend */
  #spend(work: number): void {
    spendTime(Math.ceil(work));
    this.#work.left -= work;
    if (this.#work.left < 0) throw new TooMuchWorkError();
  }

  validate(value: unknown, schema: CustomSchema, at: string): Result {
    this.#spend(1);
    const result = newResult();
    const add = (problem: FieldProblem | undefined) => {
      if (problem === undefined) result.matches++;
      else {
        this.#spend(problemWork);
        addProblems(result.problems, [problem]);
      }
    };
    add(this.#typeProblem(value, schema, at));
    if (value !== null) {
      this.#combinations(value, schema, at, result);
      if (typeof value === "string") this.#text(value, schema, at, add);
      else if (isNumber(value)) for (const problem of numberProblems(value, schema, at)) add(problem);
      else if (Array.isArray(value)) this.#list(value, schema, at, result);
    }
    if (schema.enum !== undefined) {
      const { keys, text } = knownValues(schema.enum);
      const key = enumKey(value);
      this.#spend(typeof key === "string" ? key.length / 20 : 0);
      if (keys.has(key)) add(undefined);
      else {
        const { message, ...problem } = unsupportedValue(at, value, []);
        add({ ...problem, message: message + text });
      }
    }
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      this.#object(value as Readonly<Record<string, unknown>>, schema, at, result);
    }
    return result;
  }

  #typeProblem(value: unknown, schema: CustomSchema, at: string): FieldProblem | undefined {
    const { type } = schema;
    if (value === null) {
      if (schema.nullable === true || type === undefined) return undefined;
      return this.#wrongType(at, type, "null", "null");
    }
    const given = typeOf(value);
    if (schema["x-kubernetes-int-or-string"] === true) {
      return given === "integer" || given === "string"
        ? undefined
        : this.#wrongType(at, "integer,string", given, given);
    }
    if (type === undefined || type === given || (type === "number" && given === "integer")) return undefined;
    return this.#wrongType(at, type, given, given);
  }

  #wrongType(at: string, type: string, shown: string, value: unknown): FieldProblem {
    const problem = invalidValue(
      at,
      value,
      `${inBody(at)} must be of type ${type}: ${JSON.stringify(shown)}`,
    );
    return this.#words.typedCauses ? { ...problem, reason: "FieldValueTypeInvalid" } : problem;
  }

  #combinations(value: unknown, schema: CustomSchema, at: string, result: Result): void {
    const { allOf = [], anyOf = [], oneOf = [], not } = schema;
    const report = (what: string) => result.problems.push(combinationProblem(at, what));
    if (anyOf.length > 0) {
      const results = anyOf.map((one) => this.validate(value, one, at));
      if (results.some(isValid)) result.matches++;
      else {
        report("must validate at least one schema (anyOf)");
        merge(result, best(results));
      }
    }
    if (oneOf.length > 0) {
      const results = oneOf.map((one) => this.validate(value, one, at));
      const valid = results.filter(isValid).length;
      if (valid === 1) result.matches++;
      else if (valid === 0) {
        report("must validate one and only one schema (oneOf). Found none valid");
        merge(result, best(results));
      } else report(`must validate one and only one schema (oneOf). Found ${valid} valid alternatives`);
    }
    if (allOf.length > 0) {
      const results = allOf.map((one) => this.validate(value, one, at));
      for (const one of results) merge(result, one);
      const valid = results.filter(isValid).length;
      if (valid === 0) report("must validate all the schemas (allOf). None validated");
      else if (valid < allOf.length) report("must validate all the schemas (allOf)");
    }
    if (not !== undefined && isValid(this.validate(value, not, at))) {
      report("must not validate the schema (not)");
    }
  }

  /** Reports the first problem of length and pattern, and a problem of the format. */
  #text(
    value: string,
    schema: CustomSchema,
    at: string,
    add: (problem: FieldProblem | undefined) => void,
  ): void {
    const { maxLength, minLength, pattern, format = "" } = schema;
    const problem = (why: string) => invalidValue(at, value, `${inBody(at)} ${why}`);
    this.#spend(value.length / 20);
    if (pattern !== undefined) this.#spend(patternSteps(pattern, value.length) / patternStepsOfOne);
    // Code units first, which are known: there are never fewer of them than characters.
    if (maxLength !== undefined && value.length > maxLength && lengthOf(value) > maxLength) {
      const why = `should be at most ${maxLength} chars long`;
      add(this.#words.typedCauses ? tooLong(at, maxLength) : problem(why));
    } else if (minLength !== undefined && lengthOf(value) < minLength) {
      add(problem(`should be at least ${minLength} chars long`));
    } else if (pattern !== undefined && !patternMatches(pattern, value)) {
      add(problem(`should match '${pattern}'`));
    } else add(undefined);
    if (format !== "") add(hasFormat(format, value) ? undefined : this.#wrongType(at, format, value, value));
  }

  #list(value: readonly unknown[], schema: CustomSchema, at: string, result: Result): void {
    const { items, minItems, maxItems, uniqueItems } = schema;
    this.#spend((value.length * (schema["x-kubernetes-list-map-keys"] ?? []).length) / 5);
    if (items !== undefined) {
      for (const [i, item] of value.entries()) {
        merge(result, this.validate(item, items, this.#words.itemPaths ? pathWithin(at, `[${i}]`) : at));
      }
    }
    if (minItems !== undefined && value.length < minItems) {
      result.problems.push(
        invalidValue(at, value.length, `${inBody(at)} should have at least ${minItems} items`),
      );
    }
    if (maxItems !== undefined && value.length > maxItems) {
      result.problems.push(
        this.#words.typedCauses
          ? tooMany(at, value.length, maxItems)
          : invalidValue(at, value.length, `${inBody(at)} should have at most ${maxItems} items`),
      );
    }
    if (uniqueItems === true && hasDuplicates(value)) {
      result.problems.push(invalidValue(at, "", `${inBody(at)} shouldn't contain duplicates`));
    }
  }

  #object(value: Readonly<Record<string, unknown>>, schema: CustomSchema, at: string, result: Result): void {
    const { properties, additionalProperties, required = [], minProperties, maxProperties } = schema;
    const count = Object.keys(value).length;
    this.#spend(count / 5 + required.length / 5);
    if (minProperties !== undefined && count < minProperties) {
      result.problems.push(
        invalidValue(at, count, `${inBody(at)} should have at least ${minProperties} properties`),
      );
    }
    if (maxProperties !== undefined && count > maxProperties) {
      result.problems.push(
        this.#words.typedCauses
          ? tooMany(at, count, maxProperties)
          : invalidValue(at, count, `${inBody(at)} should have at most ${maxProperties} properties`),
      );
    }
    for (const name of required) {
      if (Object.hasOwn(value, name)) result.matches++;
      else {
        this.#spend(problemWork);
        addProblems(result.problems, [requiredValue(memberPath(at, name))]);
      }
    }
    const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
    for (const [key, member] of Object.entries(value)) {
      const property = own(properties, key) ?? others;
      if (property !== undefined) merge(result, this.validate(member, property, memberPath(at, key)));
    }
  }
}

function isValid(result: Result): boolean {
  return result.problems.length === 0;
}

function merge(into: Result, other: Result): void {
  addProblems(into.problems, other.problems);
  into.matches += other.matches;
}

/** The alternative that passed most checks, the first of those that are alike. */
function best(results: readonly Result[]): Result {
  return results.reduce((a, b) => (b.matches > a.matches ? b : a));
}

/** The reference has no path for these: the place is in the text. */
function combinationProblem(at: string, what: string): FieldProblem {
  return invalidValue("<nil>", "", `${JSON.stringify(at)} ${what}`);
}

function inBody(at: string): string {
  return `${at} in body`;
}

interface KnownValues {
  readonly keys: ReadonlySet<unknown>;
  /** The values in one text, as in messages. */
  readonly text: string;
}

const enums = new WeakMap<readonly unknown[], KnownValues>();

/** Maximum number of known values in a message. */
const shownValuesMax = 250;

function knownValues(values: readonly unknown[]): KnownValues {
  let known = enums.get(values);
  if (known === undefined) {
    const texts = values.slice(0, shownValuesMax).map(enumText);
    if (values.length > shownValuesMax) texts.push(`and ${values.length - shownValuesMax} others`);
    known = {
      keys: new Set(values.map(enumKey)),
      text: texts.map((text) => JSON.stringify(text)).join(", "),
    };
    enums.set(values, known);
  }
  return known;
}

/** The same for values that are the same JSON, and for no others. */
function enumKey(value: unknown): unknown {
  return isNumber(value) || typeof value === "boolean" ? value : toSortedJson(value);
}

function enumText(value: unknown): string {
  return typeof value === "string" ? value : toJson(value);
}

function tooLong(at: string, most: number): FieldProblem {
  return { reason: "FieldValueTooLong", message: `Too long: may not be more than ${most} bytes`, field: at };
}

function tooMany(at: string, count: number, most: number): FieldProblem {
  return {
    reason: "FieldValueTooMany",
    message: `Too many: ${count}: must have at most ${most} items`,
    field: at,
  };
}

function* numberProblems(
  value: number | bigint,
  schema: CustomSchema,
  at: string,
): Iterable<FieldProblem | undefined> {
  const { multipleOf, maximum, exclusiveMaximum, minimum, exclusiveMinimum, format } = schema;
  const problem = (why: string) => invalidValue(at, value, `${inBody(at)} ${why}`);
  if (multipleOf !== undefined) {
    yield isMultiple(Number(value), multipleOf)
      ? undefined
      : problem(`should be a multiple of ${multipleOf}`);
  }
  if (maximum !== undefined) {
    if (exclusiveMaximum === true)
      yield value < maximum ? undefined : problem(`should be less than ${maximum}`);
    else yield value <= maximum ? undefined : problem(`should be less than or equal to ${maximum}`);
  }
  if (minimum !== undefined) {
    if (exclusiveMinimum === true)
      yield value > minimum ? undefined : problem(`should be greater than ${minimum}`);
    else yield value >= minimum ? undefined : problem(`should be greater than or equal to ${minimum}`);
  }
  if (format === "int32" && typeOf(value) === "integer" && (value > 2147483647 || value < -2147483648)) {
    yield problem(`must be of type int32: ${value}`);
  }
}

function isMultiple(value: number, of: number): boolean {
  if (of <= 0) return true;
  const quotient = value / of;
  // With a tolerance, as the reference: in floating point 0.3 / 0.1 is not 3.
  return Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient));
}

/** Characters, not code units. */
function lengthOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function hasDuplicates(list: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const item of list) {
    const key = toSortedJson(item);
    if (seen.has(key)) return true;
    seen.add(key);
  }
  return false;
}

/** The type of a value as JSON schemas name it. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value === "bigint" ? "integer" : typeof value;
}
