/**
 * What a definition may say in its rules, `x-kubernetes-validations` (apiextensions-apiserver
 * pkg/apis/apiextensions/validation, ValidateCustomResourceDefinitionOpenAPISchema).
 */
import type { CustomSchema, ValidationRule } from "../api/custom-schema.ts";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../api/errors.ts";
import { addProblems, pathWithin } from "./add-problems.ts";
import { compileExpression } from "./compile-expression.ts";
import { membersOf } from "./json-path.ts";

const reasons = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];

/** Most characters of all expressions of one schema: each is compiled before the definition is answered. */
const expressionsMax = 250_000;

/** Added for each expression, even a short one. */
const expressionLength = 100;

/** Problems of the rules of a structural schema. Pure. */
export function ruleProblems(schema: CustomSchema, at: string): FieldProblem[] {
  const look = new RuleChecks();
  look.within(schema, at, undefined);
  return look.problems;
}

class RuleChecks {
  readonly problems: FieldProblem[] = [];
  #left = expressionsMax;

  /** @param uncorrelated the list whose items have no identity, so that an item has no old value */
  within(schema: CustomSchema, at: string, uncorrelated: string | undefined): void {
    const { items, additionalProperties } = schema;
    for (const [i, rule] of (schema["x-kubernetes-validations"] ?? []).entries()) {
      this.#check(rule, pathWithin(at, `.x-kubernetes-validations[${i}]`), uncorrelated);
      if (this.#left < 0) return;
    }
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      this.within(property, pathWithin(at, `.properties[${name}]`), uncorrelated);
    }
    if (items !== undefined) {
      const within = schema["x-kubernetes-list-type"] === "map" ? uncorrelated : (uncorrelated ?? at);
      this.within(items, pathWithin(at, ".items"), within);
    }
    if (typeof additionalProperties === "object") {
      this.within(additionalProperties, pathWithin(at, ".additionalProperties"), uncorrelated);
    }
  }

  #check(rule: ValidationRule, at: string, uncorrelated: string | undefined): void {
    if (this.#left < 0) return;
    this.#left -= expressionLength + (rule.rule ?? "").length;
    if (rule.messageExpression !== undefined) this.#left -= expressionLength + rule.messageExpression.length;
    if (this.#left < 0) {
      const why = `the expressions of a schema must have at most ${expressionsMax} characters together, and ${expressionLength} for each`;
      addProblems(this.problems, [forbiddenValue(at, why)]);
    } else addProblems(this.problems, problemsOf(rule, at, uncorrelated));
  }
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
