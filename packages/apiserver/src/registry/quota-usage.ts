/** What objects use of a ResourceQuota (kubernetes pkg/quota/v1/evaluator/core). Pure. */
import type { KubeObject, Pod } from "@longshore/kube";
import { isPodTerminal, parseQuantity, type Quantity } from "@longshore/kube/basics";
import type { Kind } from "../api/kind.ts";
import { resourceKey } from "../api/kind.ts";
import { spendTime } from "../api/work-time.ts";
import { podUsage } from "./kinds/pod-resources.ts";
import type { LooseObject } from "./kinds/shaping.ts";

/** Amounts by the names that quotas have for them. */
export type Usage = ReadonlyMap<string, Quantity>;

interface ScopeRequirement {
  readonly scopeName?: string;
  readonly operator?: string;
  readonly values?: readonly string[];
}

/** A quota, as far as it limits. */
export interface Quota extends KubeObject {
  readonly spec?: {
    readonly hard?: Readonly<Record<string, string>>;
    readonly scopes?: readonly string[];
    readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeRequirement[] };
  };
  readonly status?: {
    readonly hard?: Readonly<Record<string, string>>;
    readonly used?: Readonly<Record<string, string>>;
  };
}

const one = parseQuantity("1");

/** Resources of pods that have a short name of their requests. */
const plainNames: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);

/** Kinds of the core group that are counted under their own name. */
const countedKinds: ReadonlySet<string> = new Set([
  "configmaps",
  "persistentvolumeclaims",
  "pods",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "services",
]);

/** What the object uses; nothing once it is a pod that has ended. */
export function usageOf(of: Kind, object: KubeObject): Usage {
  const used = new Map<string, Quantity>([[`count/${resourceKey(of)}`, one]]);
  if (of.group !== "" || !countedKinds.has(of.plural)) return used;
  const { spec = {} } = object as LooseObject;
  if (of.plural === "pods") {
    if (isPodTerminal(object as Pod)) return new Map();
    const { requests = {}, limits = {} } = podUsage(spec);
    for (const [name, text] of Object.entries(requests)) {
      if (plainNames.has(name)) used.set(name, parseQuantity(text));
      used.set(`requests.${name}`, parseQuantity(text));
    }
    for (const [name, text] of Object.entries(limits)) used.set(`limits.${name}`, parseQuantity(text));
  }
  used.set(of.plural, one);
  if (of.plural === "persistentvolumeclaims") {
    const storage = parseQuantity(String(spec.resources?.requests?.storage ?? "0"));
    used.set("requests.storage", storage);
    if (spec.storageClassName) {
      const ofClass = `${spec.storageClassName}.storageclass.storage.k8s.io`;
      used.set(`${ofClass}/requests.storage`, storage).set(`${ofClass}/persistentvolumeclaims`, one);
    }
  }
  if (of.plural === "services") {
    const isBalanced = spec.type === "LoadBalancer";
    if (isBalanced) used.set("services.loadbalancers", one);
    if (isBalanced || spec.type === "NodePort") {
      used.set("services.nodeports", parseQuantity(String((spec.ports ?? []).length)));
    }
  }
  return used;
}

/** The resource whose objects use what a quota calls so; undefined when none does. `count/deployments.apps` is of Deployments. */
export function resourceOfName(name: string): string | undefined {
  if (name.startsWith("count/")) return name.slice("count/".length);
  if (name === "requests.storage" || name.includes(".storageclass.storage.k8s.io/"))
    return "persistentvolumeclaims";
  if (name.startsWith("services.")) return "services";
  if (countedKinds.has(name)) return name;
  return plainNames.has(name) || name.startsWith("requests.") || name.startsWith("limits.")
    ? "pods"
    : undefined;
}

/** True when the quota is about the object: the scopes of a quota choose pods. */
export function isInScope(quota: Quota, of: Kind, object: KubeObject): boolean {
  const { scopes = [], scopeSelector } = quota.spec ?? {};
  const required: readonly ScopeRequirement[] = [
    ...scopes.map((scopeName) => ({ scopeName, operator: "Exists" })),
    ...(scopeSelector?.matchExpressions ?? []),
  ];
  if (required.length === 0) return true;
  if (of.group !== "" || of.plural !== "pods") return false;
  return required.every((requirement) => {
    spendTime();
    return matches(requirement, object as LooseObject);
  });
}

function matches({ scopeName, operator, values = [] }: ScopeRequirement, pod: LooseObject): boolean {
  const { spec = {}, status = {} } = pod;
  switch (scopeName) {
    case "Terminating":
      return spec.activeDeadlineSeconds !== undefined;
    case "NotTerminating":
      return spec.activeDeadlineSeconds === undefined;
    case "BestEffort":
      return status.qosClass === "BestEffort";
    case "NotBestEffort":
      return status.qosClass !== "BestEffort";
    case "PriorityClass": {
      const { priorityClassName = "" } = spec;
      if (operator === "Exists") return priorityClassName !== "";
      if (operator === "DoesNotExist") return priorityClassName === "";
      return values.includes(priorityClassName) === (operator === "In");
    }
    default:
      return false;
  }
}
