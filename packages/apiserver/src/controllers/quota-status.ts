/**
 * Keeps the status of ResourceQuotas: counts a namespace when a quota of it is new or changed, and when something that is
 * counted goes (kubernetes pkg/controller/resourcequota). What comes is counted by the write itself (`admission/resource-quota.ts`).
 */
import type { KubeObject, Pod, Stored } from "@longshore/kube";
import { isPodTerminal, KubeApiError, type Quantity } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import { sameJson } from "../api/own.ts";
import { isInScope, type Quota, resourceOfName, usageOf } from "../registry/quota-usage.ts";
import type { Registry } from "../registry/registry.ts";
import { followTables } from "./follow-tables.ts";

const controller = { ...adminUser, name: "system:serviceaccount:kube-system:resourcequota-controller" };

/** Starts the controller. Returns a function that stops it. */
export function startQuotaStatus(env: RuntimeEnv, registry: Registry): () => void {
  const { store, kinds } = registry.context;
  const quotas = store.table("resourcequotas");
  const dirty = new Set<string>();
  const wanted = (kind: Kind) => kind.namespaced && kind.virtual !== true && kind.storedAs === undefined;
  return followTables(env.clock, store, kinds, wanted, {
    onChange(kind, { type, object, previous }) {
      const namespace = object?.metadata.namespace ?? previous?.metadata.namespace ?? "";
      const isQuota = kind.group === "" && kind.plural === "resourcequotas";
      const counts = isQuota
        ? type === "DELETED" || !sameJson((object as Quota).spec?.hard, (object as Quota).status?.hard)
        : type === "DELETED" || hasEnded(kind, object, previous);
      if (counts) dirty.add(namespace);
    },
    onIdle() {
      for (const namespace of [...dirty]) {
        dirty.delete(namespace);
        for (const quota of quotas.list(namespace)) count(registry, quota, () => dirty.add(namespace));
      }
    },
  });
}

function hasEnded(kind: Kind, now: KubeObject | undefined, before: KubeObject | undefined): boolean {
  if (kind.group !== "" || kind.plural !== "pods" || now === undefined || before === undefined) return false;
  return isPodTerminal(now as Pod) && !isPodTerminal(before as Pod);
}

function count(registry: Registry, quota: Stored<Quota>, again: () => void): void {
  const { store, kinds } = registry.context;
  const hard = quota.spec?.hard ?? {};
  const { namespace = "", name } = quota.metadata;
  const wanted = new Set(Object.keys(hard).flatMap((resource) => resourceOfName(resource) ?? []));
  const sums = new Map<string, Quantity>();
  for (const kind of kinds.all()) {
    if (!wanted.has(kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`)) continue;
    for (const object of store.table(tableKey(kind)).list(namespace)) {
      if (!isInScope(quota, kind, object)) continue;
      for (const [resource, amount] of usageOf(kind, object)) {
        const sum = sums.get(resource);
        sums.set(resource, sum === undefined ? amount : sum.add(amount));
      }
    }
  }
  const used = Object.fromEntries(
    Object.keys(hard).flatMap((resource) =>
      resourceOfName(resource) === undefined ? [] : [[resource, String(sums.get(resource) ?? "0")]],
    ),
  );
  const status = { hard, used };
  if (sameJson(status, quota.status)) return;
  try {
    registry.handle({
      verb: "update",
      group: "",
      version: "v1",
      resource: "resourcequotas",
      subresource: "status",
      namespace,
      name,
      query: {},
      body: { ...quota, status },
      user: controller,
    });
  } catch (error) {
    // Changed meanwhile: counted again with what is next.
    if (!(error instanceof KubeApiError)) throw error;
    again();
  }
}
