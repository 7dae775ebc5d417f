/**
 * ResourceQuota: what would exceed a quota of its namespace is refused, and what is stored is added to the quota's status
 * in the same request (kubernetes pkg/quota/v1, apiserver admission/plugin/resourcequota). What is released is counted by
 * the controller (`controllers/quota-status.ts`, or that of a controller manager).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import { parseQuantity, type Quantity } from "@longshore/kube/basics";
import { forbidden } from "../api/errors.ts";
import { spendTime } from "../api/work-time.ts";
import type { LooseObject } from "../registry/kinds/shaping.ts";
import { isInScope, type Quota, type Usage, usageOf } from "../registry/quota-usage.ts";
import { groupResource, type KindRequest, type RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

/** Refuses what exceeds a quota, and counts what is stored. */
export const resourceQuota: AdmissionPlugin = {
  name: "ResourceQuota",
  onCreate(context, request, object) {
    charges(context, request, object, undefined);
    return object;
  },
  onUpdate(context, request, next, old) {
    charges(context, request, next, old);
    return next;
  },
  beforeCommit(context, request, next, old) {
    for (const { quota, used } of charges(context, request, next, old)) {
      const { namespace = "", name } = quota.metadata;
      const object = { ...quota, status: { ...quota.status, used: { ...quota.status?.used, ...used } } };
      context.store.commit([{ resource: "resourcequotas", namespace, name, object: object as KubeObject }]);
    }
  },
};

interface Charge {
  readonly quota: Stored<Quota>;
  /** What its status is to show then. */
  readonly used: Readonly<Record<string, string>>;
}

/** The quotas that the write is charged to. @throws KubeApiError 403 when it exceeds one */
function charges(
  { store }: RegistryContext,
  request: KindRequest,
  next: KubeObject,
  old: Stored | undefined,
): readonly Charge[] {
  const { of, subresource } = request;
  const namespace = next.metadata?.namespace ?? "";
  if (!of.namespaced || subresource !== undefined || namespace === "") return [];
  const quotas = store.table("resourcequotas").list(namespace) as readonly Stored<Quota>[];
  if (quotas.length === 0) return [];
  const more = increase(usageOf(of, next), old === undefined ? new Map() : usageOf(of, old));
  const refuse = (why: string) => forbidden(groupResource(of), next.metadata?.name ?? "", why);
  return quotas.flatMap((quota) => {
    spendTime();
    const { hard = {}, used = {} } = quota.status ?? {};
    if (!isInScope(quota, of, next)) return [];
    const { name } = quota.metadata;
    if (old === undefined && of.group === "" && of.plural === "pods") {
      const missing = missingAmounts(next as LooseObject, Object.keys(hard));
      if (missing.length > 0) throw refuse(`failed quota: ${name}: must specify ${missing.join(",")}`);
    }
    const names = [...more.keys()].filter((resource) => hard[resource] !== undefined).sort();
    if (names.length === 0) return [];
    const unknown = names.filter((resource) => used[resource] === undefined);
    if (unknown.length > 0) {
      throw refuse(`status unknown for quota: ${name}, resources: ${unknown.join(",")}`);
    }
    const amountOf = (resource: string) => more.get(resource) as Quantity;
    const sum = (resource: string) => parseQuantity(String(used[resource])).add(amountOf(resource));
    const exceeded = names.filter(
      (resource) => sum(resource).compare(parseQuantity(String(hard[resource]))) > 0,
    );
    if (exceeded.length > 0) {
      const list = (amount: (resource: string) => unknown) =>
        exceeded.map((resource) => `${resource}=${amount(resource)}`).join(",");
      throw refuse(
        `exceeded quota: ${name}, requested: ${list(amountOf)}, used: ${list((r) => used[r])}, limited: ${list((r) => hard[r])}`,
      );
    }
    return [
      { quota, used: Object.fromEntries(names.map((resource) => [resource, sum(resource).toString()])) },
    ];
  });
}

/** What is used more than before. */
function increase(now: Usage, before: Usage): Usage {
  const more = new Map<string, Quantity>();
  for (const [name, amount] of now) {
    const was = before.get(name);
    const difference = was === undefined ? amount : amount.sub(was);
    if (difference.sign() > 0) more.set(name, difference);
  }
  return more;
}

const limitedOfContainers: readonly string[] = [
  "cpu",
  "limits.cpu",
  "limits.memory",
  "memory",
  "requests.cpu",
  "requests.memory",
];

/** What every container must say, and one of the pod's does not. */
function missingAmounts({ spec = {} }: LooseObject, hard: readonly string[]): readonly string[] {
  const containers: readonly LooseObject[] = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return limitedOfContainers.filter((name) => {
    if (!hard.includes(name)) return false;
    const [key, resource] = name.includes(".") ? name.split(".") : ["requests", name];
    return containers.some(({ resources = {} }) => {
      spendTime();
      return resources[key as string]?.[resource as string] === undefined;
    });
  });
}
