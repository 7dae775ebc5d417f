/**
 * Rules of schemas in CEL, `x-kubernetes-validations`: what an object breaks (apiextensions-apiserver schema/cel). A
 * rule that asks for `oldSelf` holds for changes only.
 */
import type { CustomSchema, ValidationRule } from "../api/custom-schema.ts";
import { type FieldProblem, forbiddenValue, invalidValue, requiredValue } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { spendTime } from "../api/work-time.ts";
import { memberPath, pathWithin } from "./add-problems.ts";
import { CostMeter, callCostMax, objectCostMax } from "./cel-cost.ts";
import { isEmbedded, RuleValues } from "./cel-values.ts";
import { compileExpression, type Expression, optionalValue } from "./compile-expression.ts";
import { membersOf } from "./json-path.ts";
import { own } from "./prune.ts";
import { Correlation } from "./unchanged-problems.ts";
import { typeOf } from "./validate-value.ts";

/** What the object breaks of the rules of its schema. Pure. */
export function ruleViolations(
  object: unknown,
  old: unknown,
  schema: CustomSchema,
  options: { readonly ratchets: boolean },
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  new Rules(options.ratchets, problems).look(object, old, schema, "", true);
  return problems;
}

/** Maximum number of problems reported. */
const problemsMax = 100;

/** An evaluation costs this much before its first part is looked at. */
const evaluationCost = 5;

const outOfBudget = "running out of cost budget, no further validation rules will be run";

class Rules {
  readonly #ratchets: boolean;
  readonly #problems: FieldProblem[];
  readonly #values = new RuleValues();
  readonly #correlation = new Correlation();
  /** What all rules together may still cost; below 0 when no more of them are run. */
  #left = objectCostMax;

  constructor(ratchets: boolean, problems: FieldProblem[]) {
    this.#ratchets = ratchets;
    this.#problems = problems;
  }

  get #hasEnded(): boolean {
    return this.#left < 0 || this.#problems.length >= problemsMax;
  }

  look(value: unknown, old: unknown, schema: CustomSchema, at: string, isRoot: boolean): void {
    if (value === undefined || this.#hasEnded || !hasRules(schema)) return;
    spendTime();
    this.#holds(value, old, schema, at, isRoot);
    if (Array.isArray(value)) {
      if (schema.items === undefined) return;
      for (const [i, item] of value.entries()) {
        if (this.#hasEnded) return;
        const before = Array.isArray(old) ? this.#correlation.itemOf(item, old, schema) : undefined;
        this.look(item, before, schema.items, pathWithin(at, `[${i}]`), false);
      }
    } else if (typeof value === "object" && value !== null) {
      const { properties, additionalProperties } = schema;
      const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
      for (const [key, member] of Object.entries(value)) {
        const property = own(properties, key) ?? others;
        if (property === undefined) continue;
        const isNamed = own(properties, key) !== undefined;
        const path = isNamed ? memberPath(at, key) : pathWithin(at, `[${key}]`);
        this.look(member, memberOf(old, key), property, path, false);
      }
    }
  }

  #holds(value: unknown, old: unknown, schema: CustomSchema, at: string, isRoot: boolean): void {
    const rules = schema["x-kubernetes-validations"] ?? [];
    if (rules.length === 0 || value === null) return;
    const isResource = isRoot || isEmbedded(schema);
    const self = this.#values.of(value, schema, isResource);
    const oldSelf = old === undefined ? undefined : this.#values.of(old, schema, isResource);
    const isUnchanged = this.#ratchets && old !== undefined && this.#correlation.isSame(value, old);
    for (const rule of rules) {
      if (this.#hasEnded) return;
      const expression = compileExpression(rule.rule);
      // A rule that cannot be compiled was let in under another version, or before this check was: it says nothing.
      if (expression instanceof Error) continue;
      // Unchanged values are not checked, except by rules about the change itself.
      if (isUnchanged && !expression.usesOldSelf) continue;
      const isOptional = rule.optionalOldSelf === true;
      if (expression.usesOldSelf && !isOptional && oldSelf === undefined) continue;
      const scope = {
        self,
        oldSelf: isOptional ? optionalValue(oldSelf) : oldSelf,
      };
      const problem = this.#judge(rule, expression, scope, schema, at);
      if (problem !== undefined) this.#problems.push(problem);
    }
  }

  #judge(
    rule: ValidationRule,
    expression: Expression,
    scope: Scope,
    schema: CustomSchema,
    at: string,
  ): FieldProblem | undefined {
    const shown = schema.type ?? typeOf(scope.self);
    const text = rule.message ?? rule.rule;
    const where =
      rule.fieldPath === undefined ? at : [at, ...membersOf(rule.fieldPath)].filter(Boolean).join(".");
    const outcome = this.#run(expression, scope);
    if (outcome.value === true) return undefined;
    if (outcome.excess === "object")
      return invalidValue(at, shown, `validation failed due to ${outOfBudget}`);
    if (outcome.excess === "call") {
      const why = `no further validation rules will be run due to call cost exceeds limit for rule: ${text}`;
      return invalidValue(at, shown, `'${outcome.why}': ${why}`);
    }
    if (outcome.why !== undefined) return invalidValue(at, shown, `${outcome.why} evaluating rule: ${text}`);
    const { message, isExcess } = this.#messageOf(rule, scope);
    if (isExcess) return invalidValue(at, shown, message);
    switch (rule.reason) {
      case "FieldValueForbidden":
        return forbiddenValue(where, message);
      case "FieldValueRequired":
        return requiredValue(where, message);
      case "FieldValueDuplicate":
        return { reason: rule.reason, message: `Duplicate value: ${toJson(shown)}`, field: where };
      default:
        return invalidValue(where, shown, message);
    }
  }

  /** Runs the expression, which pays; when it cannot, no other is run after it. */
  #run(expression: Expression, scope: Scope): Outcome {
    const limit = Math.min(callCostMax, this.#left);
    const meter = new CostMeter(limit);
    let outcome: Outcome;
    try {
      meter.charge(evaluationCost);
      outcome = { value: expression.run(scope, meter) };
    } catch (error) {
      outcome = { why: ((error as Error).message.split("\n")[0] ?? "").slice(0, reasonMax) };
    }
    // The evaluation itself does not check the clock, since expressions catch errors; it takes at most 0.1 s.
    spendTime(Math.ceil(meter.used));
    this.#left -= meter.used;
    if (!meter.isExceeded) return outcome;
    this.#left = -1;
    return { ...outcome, excess: limit < callCostMax ? "object" : "call" };
  }

  /** The message of a broken rule, or why no more rules can be run. */
  #messageOf(rule: ValidationRule, scope: Scope): { readonly message: string; readonly isExcess?: boolean } {
    const plain = { message: rule.message ?? `failed rule: ${rule.rule}` };
    if (rule.messageExpression === undefined) return plain;
    const expression = compileExpression(rule.messageExpression);
    if (expression instanceof Error) return plain;
    const { value, excess } = this.#run(expression, scope);
    if (excess === "object") {
      return { message: `messageExpression evaluation failed due to ${outOfBudget}`, isExcess: true };
    }
    if (excess === "call") {
      const of = JSON.stringify(rule.messageExpression);
      const why = `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${of}`;
      return { message: why, isExcess: true };
    }
    const isFit = typeof value === "string" && value.length <= messageMax && value.trim() !== "";
    return isFit && !value.includes("\n") ? { message: value } : plain;
  }
}

type Scope = Parameters<Expression["run"]>[0];

/** The result of an expression: its value, or why it has none, and which limit it exceeded. */
interface Outcome {
  readonly value?: unknown;
  readonly why?: string;
  readonly excess?: "call" | "object";
}

/** Longest reason for an expression that cannot be evaluated; it may quote values. */
const reasonMax = 500;

/** Longest message that an expression may make. */
const messageMax = 5120;

const withRules = new WeakMap<CustomSchema, boolean>();

/** True when the schema, or anything within it, has a rule. */
function hasRules(schema: CustomSchema): boolean {
  let known = withRules.get(schema);
  if (known === undefined) {
    const { items, additionalProperties, properties = {} } = schema;
    const within = [...Object.values(properties), items, additionalProperties];
    known =
      (schema["x-kubernetes-validations"] ?? []).length > 0 ||
      within.some((one) => typeof one === "object" && hasRules(one));
    withRules.set(schema, known);
  }
  return known;
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}
