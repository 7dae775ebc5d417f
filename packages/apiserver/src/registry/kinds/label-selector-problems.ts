/** Rules of selectors: of labels (apimachinery meta/v1/validation) and of nodes (pkg/apis/core/validation). */
import { type FieldProblem, forbiddenValue, invalidValue, requiredValue } from "../../api/errors.ts";
import { labelValueProblems, qualifiedNameProblems, subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import type { Loose } from "./shaping.ts";

/** A map of labels: keys are qualified names, values label values. Problems are reported at the path of the map. */
export function labelsProblems(labels: Loose | undefined, at: string): FieldProblem[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...qualifiedNameProblems(key).map((why) => invalidValue(at, key, why)),
    ...labelValueProblems(String(value)).map((why) => invalidValue(at, value, why)),
  ]);
}

const keyProblems = (key: unknown, at: string): FieldProblem[] =>
  qualifiedNameProblems(String(key ?? "")).map((why) => invalidValue(at, key ?? "", why));

/** A meta/v1 LabelSelector. */
export function labelSelectorProblems(selector: Loose | undefined, at: string): FieldProblem[] {
  if (selector === undefined) return [];
  const problems = labelsProblems(selector.matchLabels, `${at}.matchLabels`);
  for (const [i, expression] of ((selector.matchExpressions ?? []) as readonly Loose[]).entries()) {
    spendTime();
    const here = `${at}.matchExpressions[${i}]`;
    const { operator = "", values = [], key } = expression;
    if (operator === "In" || operator === "NotIn") {
      if (values.length === 0) {
        problems.push(
          requiredValue(`${here}.values`, "must be specified when `operator` is 'In' or 'NotIn'"),
        );
      }
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (values.length > 0) {
        const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        problems.push(forbiddenValue(`${here}.values`, why));
      }
    } else problems.push(invalidValue(`${here}.operator`, operator, "not a valid selector operator"));
    problems.push(...keyProblems(key, `${here}.key`));
  }
  return problems;
}

/** A core/v1 NodeSelector: at least one term. */
export function nodeSelectorProblems(selector: Loose, at: string): FieldProblem[] {
  const terms: readonly Loose[] = selector.nodeSelectorTerms ?? [];
  if (terms.length === 0) {
    return [requiredValue(`${at}.nodeSelectorTerms`, "must have at least one node selector term")];
  }
  return terms.flatMap((term, i) => nodeSelectorTermProblems(term, `${at}.nodeSelectorTerms[${i}]`));
}

/** One term of a NodeSelector. */
export function nodeSelectorTermProblems(term: Loose, at: string): FieldProblem[] {
  const list = (key: string): readonly Loose[] => term[key] ?? [];
  return [
    ...list("matchExpressions").flatMap((e, i) => nodeExpressionProblems(e, `${at}.matchExpressions[${i}]`)),
    ...list("matchFields").flatMap((e, i) => nodeFieldProblems(e, `${at}.matchFields[${i}]`)),
  ];
}

function nodeExpressionProblems({ operator = "", values = [], key }: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) {
        problems.push(requiredValue(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) {
        const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        problems.push(forbiddenValue(`${at}.values`, why));
      }
      break;
    case "Gt":
    case "Lt":
      if (values.length !== 1) {
        const why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
        problems.push(requiredValue(`${at}.values`, why));
      }
      break;
    default:
      problems.push(invalidValue(`${at}.operator`, operator, "not a valid selector operator"));
  }
  return [...problems, ...keyProblems(key, `${at}.key`)];
}

function nodeFieldProblems({ operator = "", values = [], key = "" }: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (operator !== "In" && operator !== "NotIn") {
    problems.push(invalidValue(`${at}.operator`, operator, "not a valid selector operator"));
  } else if (values.length !== 1) {
    const why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    problems.push(requiredValue(`${at}.values`, why));
  }
  if (key !== "metadata.name") {
    return [...problems, invalidValue(`${at}.key`, key, "not a valid field selector key")];
  }
  for (const [i, value] of (values as readonly string[]).entries()) {
    spendTime();
    problems.push(...subdomainProblems(value).map((why) => invalidValue(`${at}.values[${i}]`, value, why)));
  }
  return problems;
}
