/** Empties namespaces that are being deleted, then lets them go (kubernetes pkg/controller/namespace). */
import { apiTime, KubeApiError, type Stored } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import { type Kind, resourceKey } from "../api/kind.ts";
import type { Registry } from "../registry/registry.ts";
import { followTables } from "./follow-tables.ts";
import { namespaceConditions, type Remaining } from "./namespace-conditions.ts";

const controller = { ...adminUser, name: "system:serviceaccount:kube-system:namespace-controller" };

/** Starts the controller. Returns a function that stops it. */
export function startNamespaceLifecycle(env: RuntimeEnv, registry: Registry): () => void {
  const { store, kinds } = registry.context;
  const leaving = new Set<string>();
  const hasContent = (kind: Kind) => kind.namespaced && kind.storedAs === undefined;

  const contentOf = (kind: Kind, namespace: string) => store.table(resourceKey(kind)).list(namespace);

  /** Deletes all objects of the kind, one by one where deletecollection is not supported. */
  function deleteAll(kind: Kind, namespace: string): void {
    const { group, plural, versions } = kind;
    const request = { group, resource: plural, version: versions[0], namespace, query: {}, user: controller };
    if (kind.noDeleteCollection !== true) {
      registry.handle({ ...request, verb: "deletecollection" });
      return;
    }
    for (const { metadata } of contentOf(kind, namespace)) {
      registry.handle({ ...request, verb: "delete", name: metadata.name });
    }
  }

  function reportRemaining(namespace: Stored, remaining: readonly Remaining[]): void {
    const conditions = namespaceConditions(namespace, remaining, apiTime(env.clock.now()));
    if (conditions === undefined) return;
    const { name } = namespace.metadata;
    const target = {
      group: "",
      version: "v1",
      resource: "namespaces",
      subresource: "status",
      name,
      query: {},
    };
    const body = { status: { conditions } };
    registry.handle({ ...target, verb: "patch", patchType: "merge", body, user: controller });
  }

  function empty(name: string): void {
    const namespace = store.table("namespaces").get("", name);
    if (namespace?.metadata.deletionTimestamp === undefined) return void leaving.delete(name);
    const filled = kinds.all().filter((kind) => hasContent(kind) && contentOf(kind, name).length > 0);
    for (const kind of filled) deleteAll(kind, name);
    const remaining = filled
      .map((kind) => ({ resource: `${kind.plural}.${kind.group}`, objects: contentOf(kind, name) }))
      .filter(({ objects }) => objects.length > 0);
    if (remaining.length > 0) {
      reportRemaining(namespace, remaining);
      return;
    }
    leaving.delete(name);
    finalize(registry, namespace);
  }

  return followTables(
    env.clock,
    store,
    kinds,
    (kind) => hasContent(kind) || (kind.group === "" && kind.plural === "namespaces"),
    {
      onChange(kind, { type, object }) {
        if (kind.group !== "" || kind.plural !== "namespaces" || type === "DELETED") return;
        if (object.metadata.deletionTimestamp !== undefined) leaving.add(object.metadata.name);
      },
      onIdle() {
        for (const name of [...leaving]) {
          try {
            empty(name);
          } catch (error) {
            if (!(error instanceof KubeApiError)) throw error;
            env.logger.warn("a namespace cannot be emptied yet", { namespace: name, error });
          }
        }
      },
    },
  );
}

/** Takes off the finalizer that held the namespace until it was empty. */
function finalize(registry: Registry, namespace: Stored): void {
  const spec = (namespace as { spec?: { finalizers?: readonly string[] } }).spec ?? {};
  const finalizers = (spec.finalizers ?? []).filter((f) => f !== "kubernetes");
  registry.handle({
    verb: "update",
    group: "",
    version: "v1",
    resource: "namespaces",
    subresource: "finalize",
    name: namespace.metadata.name,
    query: {},
    body: { ...namespace, spec: { ...spec, finalizers } },
    user: controller,
  });
}
