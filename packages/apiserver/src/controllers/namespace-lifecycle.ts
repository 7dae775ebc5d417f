/** Empties namespaces that are being deleted, then lets them go (kubernetes pkg/controller/namespace). */
import { KubeApiError } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import { type Kind, resourceKey } from "../registry/kind.ts";
import type { Registry } from "../registry/registry.ts";
import { adminUser } from "../registry/request.ts";
import { followTables } from "./table-follower.ts";

const controller = { ...adminUser, name: "system:serviceaccount:kube-system:namespace-controller" };

/** Begins the work; gives the way to end it. */
export function startNamespaceLifecycle(env: RuntimeEnv, registry: Registry): () => void {
  const { store, kinds } = registry.context;
  const leaving = new Set<string>();
  const hasContent = (kind: Kind) => kind.namespaced && kind.storedAs === undefined;

  function empty(name: string): void {
    const namespace = store.table("namespaces").get("", name);
    if (namespace?.metadata.deletionTimestamp === undefined) return void leaving.delete(name);
    const namespaced = kinds.all().filter(hasContent);
    for (const kind of namespaced) {
      const { group, plural, versions } = kind;
      if (store.table(resourceKey(kind)).list(name).length === 0) continue;
      const request = { group, resource: plural, version: versions[0], namespace: name, query: {} };
      registry.handle({ ...request, verb: "deletecollection", user: controller });
    }
    if (namespaced.some((kind) => store.table(resourceKey(kind)).list(name).length > 0)) return;
    leaving.delete(name);
    const spec = (namespace as { spec?: { finalizers?: readonly string[] } }).spec ?? {};
    const finalizers = (spec.finalizers ?? []).filter((f) => f !== "kubernetes");
    registry.handle({
      verb: "update",
      group: "",
      version: "v1",
      resource: "namespaces",
      subresource: "finalize",
      name,
      query: {},
      body: { ...namespace, spec: { ...spec, finalizers } },
      user: controller,
    });
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
