/** What is wrong with a HorizontalPodAutoscaler in its form of v2 (kubernetes pkg/apis/autoscaling/validation). */
import type { KubeObject } from "@longshore/kube";
import { parseQuantity } from "@longshore/kube/basics";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { pathSegmentProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import type { Loose, LooseObject } from "./shaping.ts";

/** Problems of the spec of a new or changed object. */
export function autoscalerProblems(object: KubeObject): FieldProblem[] {
  const {
    minReplicas,
    maxReplicas = 0,
    scaleTargetRef = {},
    metrics = [],
    behavior = {},
  } = (object as LooseObject).spec ?? {};
  const problems: FieldProblem[] = [];
  if (minReplicas < 1) {
    problems.push(invalidValue("spec.minReplicas", minReplicas, "must be greater than or equal to 1"));
  }
  if (maxReplicas < 1) problems.push(invalidValue("spec.maxReplicas", maxReplicas, "must be greater than 0"));
  if (maxReplicas < minReplicas) {
    problems.push(
      invalidValue("spec.maxReplicas", maxReplicas, "must be greater than or equal to `minReplicas`"),
    );
  }
  problems.push(...referenceProblems("spec.scaleTargetRef", scaleTargetRef));
  for (const [i, metric] of (metrics as Loose[]).entries()) {
    spendTime();
    problems.push(...metricProblems(`spec.metrics[${i}]`, metric));
  }
  if (minReplicas === 0 && !metrics.some(({ type }: Loose) => type === "Object" || type === "External")) {
    const why = "must specify at least one Object or External metric to support scaling to zero replicas";
    problems.push(forbiddenValue("spec.metrics", why));
  }
  for (const direction of ["scaleUp", "scaleDown"]) {
    const rules = behavior[direction];
    if (rules !== undefined) problems.push(...ruleProblems(`spec.behavior.${direction}`, rules));
  }
  return problems;
}

/** Problems of what is written to its status. */
export function autoscalerStatusProblems(object: KubeObject): FieldProblem[] {
  const status: Loose = (object as LooseObject).status ?? {};
  return ["currentReplicas", "desiredReplicas"]
    .filter((member) => status[member] < 0)
    .map((member) => invalidValue(`status.${member}`, status[member], "must be greater than or equal to 0"));
}

function referenceProblems(at: string, reference: Loose): FieldProblem[] {
  return ["kind", "name"].flatMap((member) => segmentProblems(`${at}.${member}`, reference[member]));
}

function segmentProblems(at: string, value: string | undefined, missing = ""): FieldProblem[] {
  if (!value) return [requiredValue(at, missing)];
  return pathSegmentProblems(value).map((why) => invalidValue(at, value, why));
}

/** Member of each type of source, and its rules. */
const sources: Readonly<
  Record<string, readonly [member: string, problems: (at: string, source: Loose) => FieldProblem[]]>
> = {
  Object: ["object", objectProblems],
  Pods: ["pods", podsProblems],
  Resource: ["resource", resourceProblems],
  ContainerResource: ["containerResource", containerProblems],
  External: ["external", externalProblems],
};

function metricProblems(at: string, metric: Loose): FieldProblem[] {
  const { type } = metric;
  const problems: FieldProblem[] = [];
  if (!type) problems.push(requiredValue(`${at}.type`, "must specify a metric source type"));
  const source = Object.hasOwn(sources, type) ? sources[type] : undefined;
  if (source === undefined) {
    problems.push(unsupportedValue(`${at}.type`, type ?? "", Object.keys(sources).sort()));
  }
  const expected = source?.[0];
  for (const [member, problemsOf] of Object.values(sources)) {
    const given = metric[member];
    if (given === undefined) {
      if (member === expected) {
        const why = "must populate information for the given metric source";
        problems.push(requiredValue(`${at}.${member}`, why));
      }
      continue;
    }
    problems.push(...problemsOf(`${at}.${member}`, given));
    if (expected !== undefined && member !== expected) {
      problems.push(forbiddenValue(`${at}.${member}`, "must populate the given metric source only"));
    }
  }
  return problems;
}

function objectProblems(
  at: string,
  { describedObject = {}, metric = {}, target = {} }: Loose,
): FieldProblem[] {
  const problems = [
    ...referenceProblems(`${at}.describedObject`, describedObject),
    ...identifierProblems(`${at}.metric`, metric),
    ...targetProblems(`${at}.target`, target),
  ];
  if (target.value === undefined && target.averageValue === undefined) {
    const why = "must set either a target value or averageValue";
    problems.push(requiredValue(`${at}.target.averageValue`, why));
  }
  return problems;
}

function podsProblems(at: string, { metric = {}, target = {} }: Loose): FieldProblem[] {
  const problems = [...identifierProblems(`${at}.metric`, metric), ...targetProblems(`${at}.target`, target)];
  if (target.averageValue === undefined) {
    problems.push(requiredValue(`${at}.target.averageValue`, "must specify a positive target averageValue"));
  }
  return problems;
}

function resourceProblems(at: string, { name, target = {} }: Loose): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!name) problems.push(requiredValue(`${at}.name`, "must specify a resource name"));
  problems.push(...targetProblems(`${at}.target`, target));
  const { averageUtilization, averageValue } = target;
  if (averageUtilization === undefined && averageValue === undefined) {
    const why = "must set either a target raw value or a target utilization";
    problems.push(requiredValue(`${at}.target.averageUtilization`, why));
  }
  if (averageUtilization !== undefined && averageValue !== undefined) {
    const why = "may not set both a target raw value and a target utilization";
    problems.push(forbiddenValue(`${at}.target.averageValue`, why));
  }
  return problems;
}

function containerProblems(at: string, source: Loose): FieldProblem[] {
  const problems = resourceProblems(at, source);
  if (!source.container) problems.push(requiredValue(`${at}.container`, "must specify a container"));
  return problems;
}

function externalProblems(at: string, { metric = {}, target = {} }: Loose): FieldProblem[] {
  const problems = [...identifierProblems(`${at}.metric`, metric), ...targetProblems(`${at}.target`, target)];
  if (target.value === undefined && target.averageValue === undefined) {
    const why = "must set either a target value for metric or a per-pod target";
    problems.push(requiredValue(`${at}.target.averageValue`, why));
  }
  if (target.value !== undefined && target.averageValue !== undefined) {
    const why = "may not set both a target value for metric and a per-pod target";
    problems.push(forbiddenValue(`${at}.target.value`, why));
  }
  return problems;
}

function identifierProblems(at: string, { name }: Loose): FieldProblem[] {
  return segmentProblems(`${at}.name`, name, "must specify a metric name");
}

const targetTypes: readonly string[] = ["Utilization", "Value", "AverageValue"];

function targetProblems(
  at: string,
  { type, value, averageValue, averageUtilization }: Loose,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!type) problems.push(requiredValue(`${at}.type`, "must specify a metric target type"));
  if (!targetTypes.includes(type)) {
    const why = "must be either Utilization, Value, or AverageValue";
    problems.push(invalidValue(`${at}.type`, type ?? "", why));
  }
  for (const [member, amount] of Object.entries({ value, averageValue })) {
    if (amount !== undefined && sign(amount) !== 1) {
      problems.push(invalidValue(`${at}.${member}`, amount, "must be positive"));
    }
  }
  if (averageUtilization < 1) {
    problems.push(invalidValue(`${at}.averageUtilization`, averageUtilization, "must be greater than 0"));
  }
  return problems;
}

/** 1 for an amount above zero, 0 for none, -1 below. */
function sign(amount: string): number {
  const text = parseQuantity(amount).toString();
  return text === "0" ? 0 : text.startsWith("-") ? -1 : 1;
}

const selectPolicies: readonly string[] = ["Max", "Min", "Disabled"];
const policyTypes: readonly string[] = ["Pods", "Percent"];
const maxWindowSeconds = 3600;
const maxPeriodSeconds = 1800;

function ruleProblems(at: string, rules: Loose): FieldProblem[] {
  const { stabilizationWindowSeconds: window, selectPolicy, policies = [] } = rules;
  const problems: FieldProblem[] = [];
  if (window < 0) {
    const why = "must be greater than or equal to zero";
    problems.push(invalidValue(`${at}.stabilizationWindowSeconds`, window, why));
  }
  if (window > maxWindowSeconds) {
    const why = `must be less than or equal to ${maxWindowSeconds}`;
    problems.push(invalidValue(`${at}.stabilizationWindowSeconds`, window, why));
  }
  if (selectPolicy !== undefined && !selectPolicies.includes(selectPolicy)) {
    problems.push(unsupportedValue(`${at}.selectPolicy`, selectPolicy, [...selectPolicies].sort()));
  }
  if (policies.length === 0) {
    problems.push(requiredValue(`${at}.policies`, "must specify at least one Policy"));
  }
  for (const [i, { type, value = 0, periodSeconds = 0 }] of (policies as Loose[]).entries()) {
    spendTime();
    const policy = `${at}.policies[${i}]`;
    if (!policyTypes.includes(type)) {
      problems.push(unsupportedValue(`${policy}.type`, type ?? "", [...policyTypes].sort()));
    }
    if (value <= 0) problems.push(invalidValue(`${policy}.value`, value, "must be greater than zero"));
    if (periodSeconds <= 0) {
      problems.push(invalidValue(`${policy}.periodSeconds`, periodSeconds, "must be greater than zero"));
    }
    if (periodSeconds > maxPeriodSeconds) {
      const why = `must be less than or equal to ${maxPeriodSeconds}`;
      problems.push(invalidValue(`${policy}.periodSeconds`, periodSeconds, why));
    }
  }
  return problems;
}
