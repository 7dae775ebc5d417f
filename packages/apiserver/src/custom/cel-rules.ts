/**
 * Rules of schemas in CEL, `x-kubernetes-validations`: what a definition may say, and what an object breaks
 * (apiextensions-apiserver schema/cel). A rule that asks for `oldSelf` holds for changes only.
 */
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../api/errors.ts";
import { sameJson } from "../api/own.ts";
import { compileExpression, type Expression, optionalValue } from "./cel.ts";
import { isEmbedded, valueForRules } from "./cel-values.ts";
import type { CustomSchema, ValidationRule } from "./custom-schema.ts";
import { membersOf } from "./json-path.ts";
import { own } from "./prune.ts";
import { correspondingItem } from "./ratcheting.ts";
import { typeOf } from "./validate-value.ts";

const reasons = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];

/** Problems of the rules of a structural schema. Pure. */
export function ruleProblems(schema: CustomSchema, at: string): FieldProblem[] {
  return problemsWithin(schema, at, undefined);
}

/** @param uncorrelated the list within which an item cannot be told from another, so that it has no old value */
function problemsWithin(schema: CustomSchema, at: string, uncorrelated: string | undefined): FieldProblem[] {
  const { items, additionalProperties } = schema;
  const problems = (schema["x-kubernetes-validations"] ?? []).flatMap((rule, i) =>
    problemsOf(rule, `${at}.x-kubernetes-validations[${i}]`, uncorrelated),
  );
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    problems.push(...problemsWithin(property, `${at}.properties[${name}]`, uncorrelated));
  }
  if (items !== undefined) {
    const within = schema["x-kubernetes-list-type"] === "map" ? uncorrelated : (uncorrelated ?? at);
    problems.push(...problemsWithin(items, `${at}.items`, within));
  }
  if (typeof additionalProperties === "object") {
    problems.push(...problemsWithin(additionalProperties, `${at}.additionalProperties`, uncorrelated));
  }
  return problems;
}

function problemsOf(rule: ValidationRule, at: string, uncorrelated: string | undefined): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if ((rule.rule ?? "").trim() === "") return [requiredValue(`${at}.rule`, "rule is not specified")];
  const expression = compileExpression(rule.rule);
  if (expression instanceof Error) {
    problems.push(invalidValue(`${at}.rule`, rule.rule, `compilation failed: ${expression.message}`));
  } else {
    if (expression.type !== "bool" && expression.type !== "dyn") {
      problems.push(invalidValue(`${at}.rule`, rule.rule, "cel expression must evaluate to a bool"));
    }
    if (expression.usesOldSelf && uncorrelated !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
      problems.push(invalidValue(`${at}.rule`, rule.rule, why));
    }
    if (!expression.usesOldSelf && rule.optionalOldSelf !== undefined) {
      problems.push(
        forbiddenValue(
          `${at}.optionalOldSelf`,
          "optionalOldSelf may not be set if oldSelf is not used in rule",
        ),
      );
    }
  }
  if (rule.message !== undefined) {
    if (rule.message.trim() === "") {
      problems.push(invalidValue(`${at}.message`, rule.message, "message must be non-empty if specified"));
    } else if (rule.message.includes("\n")) {
      problems.push(invalidValue(`${at}.message`, rule.message, "message must not contain line breaks"));
    }
  }
  if (rule.messageExpression !== undefined) {
    const message = compileExpression(rule.messageExpression);
    const path = `${at}.messageExpression`;
    if (message instanceof Error) {
      const why = `messageExpression compilation failed: ${message.message}`;
      problems.push(invalidValue(path, rule.messageExpression, why));
    } else if (message.type !== "string" && message.type !== "dyn") {
      problems.push(
        invalidValue(path, rule.messageExpression, "messageExpression must evaluate to a string"),
      );
    }
  }
  if (rule.reason !== undefined && !reasons.includes(rule.reason)) {
    problems.push(unsupportedValue(`${at}.reason`, rule.reason, reasons));
  }
  if (rule.fieldPath !== undefined && membersOf(rule.fieldPath).length === 0) {
    problems.push(invalidValue(`${at}.fieldPath`, rule.fieldPath, "fieldPath must be a valid path"));
  }
  return problems;
}

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

/** Most problems that are told. */
const problemsMax = 100;

class Rules {
  readonly #ratchets: boolean;
  readonly #problems: FieldProblem[];

  constructor(ratchets: boolean, problems: FieldProblem[]) {
    this.#ratchets = ratchets;
    this.#problems = problems;
  }

  look(value: unknown, old: unknown, schema: CustomSchema, at: string, isRoot: boolean): void {
    if (value === undefined || this.#problems.length >= problemsMax || !hasRules(schema)) return;
    this.#holds(value, old, schema, at, isRoot);
    if (Array.isArray(value)) {
      if (schema.items === undefined) return;
      for (const [i, item] of value.entries()) {
        const before = Array.isArray(old) ? correspondingItem(item, old, schema) : undefined;
        this.look(item, before, schema.items, `${at}[${i}]`, false);
      }
    } else if (typeof value === "object" && value !== null) {
      const { properties, additionalProperties } = schema;
      const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
      for (const [key, member] of Object.entries(value)) {
        const property = own(properties, key) ?? others;
        if (property === undefined) continue;
        const path = own(properties, key) === undefined ? `${at}[${key}]` : at === "" ? key : `${at}.${key}`;
        this.look(member, memberOf(old, key), property, path, false);
      }
    }
  }

  #holds(value: unknown, old: unknown, schema: CustomSchema, at: string, isRoot: boolean): void {
    const rules = schema["x-kubernetes-validations"] ?? [];
    if (rules.length === 0 || value === null) return;
    const isResource = isRoot || isEmbedded(schema);
    const self = valueForRules(value, schema, isResource);
    const oldSelf = old === undefined ? undefined : valueForRules(old, schema, isResource);
    const isUnchanged = this.#ratchets && old !== undefined && sameJson(value, old);
    for (const rule of rules) {
      const expression = compileExpression(rule.rule);
      // A rule that cannot be compiled was let in under another version, or before this check was: it says nothing.
      if (expression instanceof Error) continue;
      // What is as it was is let be, except by rules about the change itself.
      if (isUnchanged && !expression.usesOldSelf) continue;
      const isOptional = rule.optionalOldSelf === true;
      if (expression.usesOldSelf && !isOptional && oldSelf === undefined) continue;
      const scope = {
        self,
        oldSelf: isOptional ? optionalValue(oldSelf) : oldSelf,
      };
      const problem = judge(rule, expression, scope, schema, at);
      if (problem !== undefined) this.#problems.push(problem);
    }
  }
}

type Scope = Parameters<Expression["run"]>[0];

function judge(
  rule: ValidationRule,
  expression: Expression,
  scope: Scope,
  schema: CustomSchema,
  at: string,
): FieldProblem | undefined {
  const shown = schema.type ?? typeOf(scope.self);
  const where =
    rule.fieldPath === undefined ? at : [at, ...membersOf(rule.fieldPath)].filter(Boolean).join(".");
  let holds: unknown;
  try {
    holds = expression.run(scope);
  } catch (error) {
    const why = (error as Error).message.split("\n")[0];
    return invalidValue(at, shown, `${why} evaluating rule: ${rule.message ?? rule.rule}`);
  }
  if (holds === true) return undefined;
  const message = messageOf(rule, scope);
  switch (rule.reason) {
    case "FieldValueForbidden":
      return forbiddenValue(where, message);
    case "FieldValueRequired":
      return requiredValue(where, message);
    case "FieldValueDuplicate":
      return { reason: rule.reason, message: `Duplicate value: ${JSON.stringify(shown)}`, field: where };
    default:
      return invalidValue(where, shown, message);
  }
}

/** Longest message that an expression may make. */
const messageMax = 5120;

function messageOf(rule: ValidationRule, scope: Scope): string {
  const plain = rule.message ?? `failed rule: ${rule.rule}`;
  if (rule.messageExpression === undefined) return plain;
  const expression = compileExpression(rule.messageExpression);
  if (expression instanceof Error) return plain;
  try {
    const made = expression.run(scope);
    const isFit = typeof made === "string" && made.trim() !== "" && !made.includes("\n");
    return isFit && made.length <= messageMax ? made : plain;
  } catch {
    return plain;
  }
}

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
