/**
 * Deletes what has lost its owners, and carries out the wishes of foreground and orphan deletion
 * (kubernetes pkg/controller/garbagecollector). Owners of kinds that are not served are left alone.
 */
import type { KubeObject, OwnerReference, Stored } from "@longshore/kube";
import { KubeApiError } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import type { Kind } from "../registry/kind.ts";
import { resourceKey } from "../registry/kind.ts";
import type { Registry } from "../registry/registry.ts";
import { type ApiRequest, adminUser } from "../registry/request.ts";
import { followTables } from "./table-follower.ts";

interface Dependent {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

const collector = { ...adminUser, name: "system:serviceaccount:kube-system:generic-garbage-collector" };

/** Begins to collect; gives the way to end it. */
export function startGarbageCollector(env: RuntimeEnv, registry: Registry): () => void {
  const { store, kinds } = registry.context;
  /** Dependents by the uid of each of their owners. */
  const dependents = new Map<string, Map<string, Dependent>>();
  const suspects = new Map<string, Dependent>();
  const leavingOwners = new Map<string, Dependent>();

  const keyOf = ({ kind, namespace, name }: Dependent) => `${resourceKey(kind)}/${namespace}/${name}`;
  const ownersOf = (object: KubeObject | undefined): readonly OwnerReference[] =>
    object?.metadata?.ownerReferences ?? [];
  const current = ({ kind, namespace, name }: Dependent) =>
    store.table(resourceKey(kind)).get(namespace, name);

  /** Whether the owner is there; undefined when its kind is not served here. */
  function isThere(owner: OwnerReference, namespace: string): boolean | undefined {
    const [group = "", version] = owner.apiVersion.split("/");
    const kind = kinds.findKind(version === undefined ? "" : group, owner.kind);
    if (kind === undefined) return undefined;
    const found = store.table(resourceKey(kind)).get(kind.namespaced ? namespace : "", owner.name);
    return found?.metadata.uid === owner.uid;
  }

  function call(
    request: Omit<ApiRequest, "group" | "version" | "resource" | "user" | "query">,
    kind: Kind,
  ): void {
    const { group, plural, versions } = kind;
    try {
      registry.handle({
        ...request,
        group,
        version: versions[0],
        resource: plural,
        user: collector,
        query: {},
      });
    } catch (error) {
      // Gone or changed meanwhile: the change itself brings us back.
      if (!(error instanceof KubeApiError)) env.logger.error("garbage collection failed", { error });
    }
  }

  const target = ({ namespace, name }: Dependent) => ({ ...(namespace === "" ? {} : { namespace }), name });

  function setOwners(of: Dependent, object: Stored, owners: readonly OwnerReference[]): void {
    const { uid, resourceVersion } = object.metadata;
    const body = { metadata: { uid, resourceVersion, ownerReferences: owners.length === 0 ? null : owners } };
    call({ verb: "patch", patchType: "merge", body, ...target(of) }, of.kind);
  }

  function examine(suspect: Dependent): void {
    const object = current(suspect);
    const owners = ownersOf(object);
    if (object === undefined || owners.length === 0 || object.metadata.deletionTimestamp !== undefined)
      return;
    const left = owners.filter((owner) => isThere(owner, suspect.namespace) !== false);
    if (left.length === owners.length) return;
    if (left.length > 0) {
      setOwners(suspect, object, left);
      return;
    }
    const body = { propagationPolicy: "Background", preconditions: { uid: object.metadata.uid } };
    call({ verb: "delete", body, ...target(suspect) }, suspect.kind);
  }

  function finishOwner(leaving: Dependent): void {
    const owner = current(leaving);
    const finalizers = owner?.metadata.finalizers ?? [];
    if (owner?.metadata.deletionTimestamp === undefined) return void leavingOwners.delete(keyOf(leaving));
    const policy = finalizers.find((f) => f === "orphan" || f === "foregroundDeletion");
    if (policy === undefined) return void leavingOwners.delete(keyOf(leaving));
    const { uid } = owner.metadata;
    let waits = false;
    for (const dependent of dependents.get(uid)?.values() ?? []) {
      const object = current(dependent);
      const mine = ownersOf(object).find((o) => o.uid === uid);
      if (object === undefined || mine === undefined) continue;
      if (policy === "orphan") {
        setOwners(
          dependent,
          object,
          ownersOf(object).filter((o) => o.uid !== uid),
        );
        continue;
      }
      if (object.metadata.deletionTimestamp === undefined) {
        const body = { propagationPolicy: "Foreground", preconditions: { uid: object.metadata.uid } };
        call({ verb: "delete", body, ...target(dependent) }, dependent.kind);
      }
      waits ||= mine.blockOwnerDeletion === true && current(dependent) !== undefined;
    }
    if (waits) return;
    leavingOwners.delete(keyOf(leaving));
    const rest = finalizers.filter((f) => f !== policy);
    const body = { metadata: { uid, finalizers: rest.length === 0 ? null : rest } };
    call({ verb: "patch", patchType: "merge", body, ...target(leaving) }, leaving.kind);
  }

  return followTables(env.clock, store, kinds, (kind) => kind.storedAs === undefined, {
    onChange(kind, { type, object, previous }) {
      const self = { kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name };
      const key = keyOf(self);
      const now = type === "DELETED" ? [] : ownersOf(object);
      for (const { uid } of ownersOf(previous)) {
        if (now.some((owner) => owner.uid === uid)) continue;
        dependents.get(uid)?.delete(key);
        if (dependents.get(uid)?.size === 0) dependents.delete(uid);
      }
      for (const { uid } of now) {
        const all = dependents.get(uid) ?? new Map<string, Dependent>();
        dependents.set(uid, all.set(key, self));
      }
      if (now.length > 0) suspects.set(key, self);
      if (type === "DELETED") {
        for (const [k, dependent] of dependents.get(object.metadata.uid) ?? []) suspects.set(k, dependent);
      } else if (
        object.metadata.deletionTimestamp !== undefined &&
        (object.metadata.finalizers ?? []).length > 0
      ) {
        leavingOwners.set(key, self);
      }
    },
    onIdle() {
      const examined = [...suspects.values()];
      suspects.clear();
      for (const suspect of examined) examine(suspect);
      for (const leaving of [...leavingOwners.values()]) finishOwner(leaving);
    },
  });
}
