/** Empties namespaces that are being deleted, then lets them go (kubernetes pkg/controller/namespace). */
import { apiTime, isDeleting, KubeApiError, type Stored } from "@longshore/kube/basics";
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
  return followTables(env.clock, store, kinds, (kind) => isContent(kind) || isNamespaces(kind), {
    onChange(kind, { type, object }) {
      if (isNamespaces(kind) && type !== "DELETED" && isDeleting(object)) leaving.add(object.metadata.name);
    },
    onIdle() {
      for (const name of [...leaving]) {
        try {
          emptyNamespace(env, registry, leaving, name);
        } catch (error) {
          if (!(error instanceof KubeApiError)) throw error;
          env.logger.warn("a namespace cannot be emptied yet", { namespace: name, error });
        }
      }
    },
  });
}

function isNamespaces({ group, plural }: Kind): boolean {
  return group === "" && plural === "namespaces";
}

/** True for a kind whose objects go with their namespace. */
function isContent(kind: Kind): boolean {
  return kind.namespaced && kind.storedAs === undefined;
}

/** Takes a namespace as far as it gets now. It stays among the `leaving` ones while it waits for some of its objects. */
function emptyNamespace(env: RuntimeEnv, registry: Registry, leaving: Set<string>, name: string): void {
  const namespace = registry.context.store.table("namespaces").get("", name);
  if (namespace === undefined || !isDeleting(namespace)) {
    leaving.delete(name);
    return;
  }
  const remaining = deleteContent(registry, name);
  if (remaining.length > 0) {
    reportRemaining(registry, namespace, remaining, apiTime(env.clock.now()));
    return;
  }
  leaving.delete(name);
  removeFinalizer(registry, namespace);
}

/** Deletes the objects of a namespace. Returns those that are still there, since their finalizers hold them. */
function deleteContent(registry: Registry, namespace: string): readonly Remaining[] {
  const filled = registry.context.kinds
    .all()
    .filter((kind) => isContent(kind) && contentOf(registry, kind, namespace).length > 0);
  for (const kind of filled) deleteAll(registry, kind, namespace);
  return filled
    .map((kind) => ({
      resource: `${kind.plural}.${kind.group}`,
      objects: contentOf(registry, kind, namespace),
    }))
    .filter(({ objects }) => objects.length > 0);
}

function contentOf({ context }: Registry, kind: Kind, namespace: string): readonly Stored[] {
  return context.store.table(resourceKey(kind)).list(namespace);
}

/** Deletes all objects of the kind, one by one where deletecollection is not supported. */
function deleteAll(registry: Registry, kind: Kind, namespace: string): void {
  const { group, plural, versions } = kind;
  const request = { group, resource: plural, version: versions[0], namespace, query: {}, user: controller };
  if (kind.noDeleteCollection !== true) {
    registry.handle({ ...request, verb: "deletecollection" });
    return;
  }
  for (const { metadata } of contentOf(registry, kind, namespace)) {
    registry.handle({ ...request, verb: "delete", name: metadata.name });
  }
}

/** Writes into the status what the namespace waits for, unless it says so already. */
function reportRemaining(
  registry: Registry,
  namespace: Stored,
  remaining: readonly Remaining[],
  now: string,
): void {
  const conditions = namespaceConditions(namespace, remaining, now);
  if (conditions === undefined) return;
  const body = { status: { conditions } };
  registry.handle({ ...requestFor(namespace, "status"), verb: "patch", patchType: "merge", body });
}

/** Takes off the finalizer that held the namespace until it was empty. */
function removeFinalizer(registry: Registry, namespace: Stored): void {
  const { spec = {} } = namespace as { spec?: { finalizers?: readonly string[] } };
  const finalizers = (spec.finalizers ?? []).filter((finalizer) => finalizer !== "kubernetes");
  const body = { ...namespace, spec: { ...spec, finalizers } };
  registry.handle({ ...requestFor(namespace, "finalize"), verb: "update", body });
}

function requestFor({ metadata: { name } }: Stored, subresource: string) {
  return {
    group: "",
    version: "v1",
    resource: "namespaces",
    subresource,
    name,
    query: {},
    user: controller,
  } as const;
}
