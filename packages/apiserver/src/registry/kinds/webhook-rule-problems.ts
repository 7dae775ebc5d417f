/** Rules of webhooks: to which requests they apply (kubernetes pkg/apis/admissionregistration/validation). */
import { type FieldProblem, invalidValue, requiredValue, unsupportedValue } from "../../api/errors.ts";
import { spendTime } from "../../api/work-time.ts";
import type { Loose } from "./shaping.ts";

const operationsKnown: readonly string[] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const scopesKnown: readonly string[] = ["*", "Cluster", "Namespaced"];

/** Problems of one RuleWithOperations. */
export function webhookRuleProblems(rule: Loose, at: string): FieldProblem[] {
  spendTime();
  const { operations = [], apiGroups = [], apiVersions = [], resources = [], scope } = rule;
  const problems = [
    ...listProblems(operations, `${at}.operations`, "operations"),
    ...(operations as readonly string[]).flatMap((operation, i) =>
      operationsKnown.includes(operation)
        ? []
        : [unsupportedValue(`${at}.operations[${i}]`, operation, operationsKnown)],
    ),
    ...listProblems(apiGroups, `${at}.apiGroups`, "API groups"),
    ...listProblems(apiVersions, `${at}.apiVersions`, "API versions"),
    ...(apiVersions as readonly string[]).flatMap((version, i) =>
      version === "" ? [requiredValue(`${at}.apiVersions[${i}]`)] : [],
    ),
    ...resourceProblems(resources, `${at}.resources`),
  ];
  if (scope !== undefined && !scopesKnown.includes(scope)) {
    problems.push(unsupportedValue(`${at}.scope`, scope, scopesKnown));
  }
  return problems;
}

/** There is an item, and `*` is alone. */
function listProblems(items: readonly string[], at: string, what: string): FieldProblem[] {
  if (items.length === 0) return [requiredValue(at)];
  if (items.length === 1 || !items.includes("*")) return [];
  return [invalidValue(at, items, `if '*' is present, must not specify other ${what}`)];
}

function resourceProblems(resources: readonly string[], at: string): FieldProblem[] {
  const problems = resources.length === 0 ? [requiredValue(at)] : [];
  /** `x` of `x/*`, and `y` of `*` + `/y`. */
  const whole = new Set<string>();
  const everywhere = new Set<string>();
  let hasPlain = false;
  for (const [i, resource] of resources.entries()) {
    const here = `${at}[${i}]`;
    if (resource === "") {
      problems.push(requiredValue(here));
      continue;
    }
    const slash = resource.indexOf("/");
    if (slash < 0) {
      hasPlain = resource !== "*";
      continue;
    }
    const [of, sub] = [resource.slice(0, slash), resource.slice(slash + 1)];
    if (whole.has(of)) {
      const why = `if '${of}/*' is present, must not specify ${resource}`;
      problems.push(invalidValue(here, resource, why));
    }
    if (everywhere.has(sub)) {
      const why = `if '*/${sub}' is present, must not specify ${resource}`;
      problems.push(invalidValue(here, resource, why));
    }
    if (sub === "*") whole.add(of);
    if (of === "*") everywhere.add(sub);
  }
  if (resources.length > 1 && resources.includes("*/*")) {
    const why = "if '*/*' is present, must not specify other resources";
    problems.push(invalidValue(at, resources, why));
  }
  if (hasPlain && resources.includes("*")) {
    const why = "if '*' is present, must not specify other resources without subresources";
    problems.push(invalidValue(at, resources, why));
  }
  return problems;
}
