/** ResourceQuota and LimitRange (kubernetes pkg/apis/core/validation ValidateResourceQuota, ValidateLimitRange). */
import { type KubeObject, parseQuantity } from "@longshore/kube/basics";
import { duplicateValue, type FieldProblem, forbiddenValue, invalidValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { qualifiedNameProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import {
  canonicalQuantities,
  immutable,
  type Loose,
  type LooseObject,
  mapItems,
  withMember,
} from "./shaping.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};

/** Things that are counted: half a pod is none. */
const counted: ReadonlySet<string> = new Set([
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "persistentvolumeclaims",
  "configmaps",
  "services.nodeports",
  "services.loadbalancers",
]);

/** Names that need no prefix (pkg/apis/core/helper IsStandardQuotaResourceName). */
const quotaNames: ReadonlySet<string> = new Set([
  "cpu",
  "memory",
  "ephemeral-storage",
  "requests.cpu",
  "requests.memory",
  "requests.storage",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  ...counted,
]);

function quotaNameProblems(name: string, at: string): FieldProblem[] {
  const problems = qualifiedNameProblems(name).map((why) => invalidValue(at, name, why));
  if (!name.includes("/") && !quotaNames.has(name)) {
    problems.push(invalidValue(at, name, "must be a standard resource for quota"));
  }
  return problems;
}

function wholeProblems(name: string, value: unknown, at: string): FieldProblem[] {
  const whole = !counted.has(name) || /^-?\d+([kMGTPE]i?)?$/.test(String(value));
  return whole ? [] : [invalidValue(at, String(value), "must be an integer")];
}

function amountProblems(value: unknown, at: string): FieldProblem[] {
  return parseQuantity(String(value)).sign() < 0
    ? [invalidValue(at, String(value), "must be greater than or equal to 0")]
    : [];
}

const scopes = [
  "BestEffort",
  "NotBestEffort",
  "NotTerminating",
  "PriorityClass",
  "Terminating",
  "CrossNamespacePodAffinity",
];

function validateQuota(object: KubeObject): FieldProblem[] {
  const { hard = {}, scopes: given = [] } = spec(object);
  const problems = Object.entries(hard as Loose).flatMap(([name, value]) => {
    spendTime();
    const at = `spec.hard[${name}]`;
    return [...quotaNameProblems(name, at), ...amountProblems(value, at), ...wholeProblems(name, value, at)];
  });
  return [...problems, ...scopeProblems(given, Object.keys(hard))];
}

/** Scopes choose pods, so what is limited in one must be of pods; of two that exclude each other, none is. */
function scopeProblems(given: readonly string[], names: readonly string[]): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const at = "spec.scopes";
  // Each problem shows the whole list: it is written once.
  const unknown = invalidValue(at, given, "unsupported scope");
  const unfit = invalidValue(at, given, "unsupported scope applied to resource");
  const isBeyond = (allowed: readonly string[]) => names.some((name) => !allowed.includes(name));
  const [beyondPods, beyondBestEffort] = [isBeyond(podResources), isBeyond(["pods"])];
  for (const scope of given) {
    spendTime();
    if (!scopes.includes(scope)) problems.push(unknown);
    if (scope === "BestEffort" ? beyondBestEffort : beyondPods) problems.push(unfit);
  }
  for (const [a, b] of exclusive) {
    if (given.includes(a) && given.includes(b)) problems.push(invalidValue(at, given, "conflicting scopes"));
  }
  return problems;
}

const podResources = [
  "pods",
  "cpu",
  "memory",
  "requests.cpu",
  "requests.memory",
  "limits.cpu",
  "limits.memory",
];
const exclusive: readonly (readonly [string, string])[] = [
  ["BestEffort", "NotBestEffort"],
  ["Terminating", "NotTerminating"],
];

/** ResourceQuota. */
export const resourceQuota: Kind = {
  group: "",
  versions: ["v1"],
  kind: "ResourceQuota",
  plural: "resourcequotas",
  shortNames: ["quota"],
  namespaced: true,
  statusSubresource: true,
  defaults: (object) =>
    withMember(
      withMember({ spec: {}, ...object } as LooseObject, "spec", (s) =>
        withMember(s, "hard", canonicalQuantities),
      ),
      "status",
      (s) => withMember(withMember(s, "hard", canonicalQuantities), "used", canonicalQuantities),
    ),
  prepareCreate: (object) => ({ ...object, status: {} }) as KubeObject,
  validate: validateQuota,
  validateUpdate: (next, old) =>
    sameJson(spec(next).scopes, spec(old).scopes)
      ? []
      : [invalidValue("spec.scopes", spec(next).scopes ?? null, immutable)],
};

const amounts = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] as const;

/** A container's limit is what may be asked for at most, so it is the default too. */
function limitDefaults(limit: Loose): Loose {
  let result = limit;
  for (const key of amounts) result = withMember(result, key, canonicalQuantities);
  if (limit.type !== "Container") return result;
  const limits = { ...result.max, ...result.default };
  const requests = { ...result.min, ...limits, ...result.min, ...result.defaultRequest };
  for (const key of Object.keys(limits)) {
    spendTime();
    if (result.defaultRequest?.[key] === undefined)
      requests[key] = result.default?.[key] ?? result.min?.[key] ?? limits[key];
  }
  return {
    ...result,
    ...(Object.keys(limits).length === 0 ? {} : { default: limits }),
    ...(Object.keys(requests).length === 0 ? {} : { defaultRequest: requests }),
  };
}

function validateLimits(object: KubeObject): FieldProblem[] {
  const limits: readonly Loose[] = spec(object).limits ?? [];
  const seen = new Set<string>();
  return limits.flatMap((limit, i) => {
    spendTime();
    const at = `spec.limits[${i}]`;
    const problems: FieldProblem[] = [];
    if (seen.has(limit.type)) problems.push(duplicateValue(`${at}.type`, limit.type));
    seen.add(limit.type);
    if (limit.type === "Pod") {
      if (Object.keys(limit.default ?? {}).length > 0) {
        problems.push(forbiddenValue(`${at}.default`, "may not be specified when `type` is 'Pod'"));
      }
      if (Object.keys(limit.defaultRequest ?? {}).length > 0) {
        problems.push(forbiddenValue(`${at}.defaultRequest`, "may not be specified when `type` is 'Pod'"));
      }
    }
    const names = new Set(amounts.flatMap((key) => Object.keys(limit[key] ?? {})));
    return [...problems, ...[...names].flatMap((name) => rangeProblems(limit, name, at))];
  });
}

/** The order that the amounts of one resource must be in. */
const notAbove: readonly (readonly [low: string, high: string])[] = [
  ["min", "max"],
  ["defaultRequest", "max"],
  ["default", "max"],
  ["defaultRequest", "default"],
];

function rangeProblems(limit: Loose, name: string, at: string): FieldProblem[] {
  const amount = (key: string) => {
    const value = limit[key]?.[name];
    return value === undefined ? undefined : parseQuantity(String(value));
  };
  return notAbove.flatMap(([low, high]) => {
    const [a, b] = [amount(low), amount(high)];
    if (a === undefined || b === undefined || a.compare(b) <= 0) return [];
    const lowText = low === "min" ? "min" : low === "default" ? "default" : "default request";
    const highText = high === "max" ? "max" : "default limit";
    return [
      invalidValue(
        `${at}.${low}[${name}]`,
        a.toString(),
        `${lowText} value ${a} is greater than ${highText} value ${b}`,
      ),
    ];
  });
}

/** LimitRange. */
export const limitRange: Kind = {
  group: "",
  versions: ["v1"],
  kind: "LimitRange",
  plural: "limitranges",
  shortNames: ["limits"],
  namespaced: true,
  createsOnUpdate: true,
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (s) =>
      withMember(s, "limits", (limits) => mapItems(limits, limitDefaults)),
    ),
  validate: validateLimits,
};
