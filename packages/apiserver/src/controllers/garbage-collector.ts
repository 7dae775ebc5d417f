/**
 * Deletes objects that have lost their owners, and carries out foreground and orphan deletion
 * (kubernetes pkg/controller/garbagecollector). Owners of kinds that are not served are left alone.
 *
 * Invariants
 *  - An event only names the object to check; the action depends on the state of the objects at that time.
 *  - Each pass may fail at any object: the write that caused the conflict queues the object again.
 */
import type { KubeObject, OwnerReference, Stored } from "@longshore/kube";
import { KubeApiError } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { type ApiRequest, adminUser } from "../api/api-request.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import type { Registry } from "../registry/registry.ts";
import { type Followed, followTables } from "./follow-tables.ts";

/** An object, by what it is and its name. */
interface Named {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

const collector = { ...adminUser, name: "system:serviceaccount:kube-system:generic-garbage-collector" };

/** Starts the garbage collector. Returns a function that stops it. */
export function startGarbageCollector(env: RuntimeEnv, registry: Registry): () => void {
  const { store, kinds } = registry.context;
  // The objects of a kind that is kept in another one's table come with that one.
  const wanted = (kind: Kind) => kind.storedAs === undefined;
  return followTables(env.clock, store, kinds, wanted, new GarbageCollector(env, registry));
}

const keyOf = ({ kind, namespace, name }: Named) => `${tableKey(kind)}/${namespace}/${name}`;
const ownersOf = (object: KubeObject | undefined): readonly OwnerReference[] =>
  object?.metadata?.ownerReferences ?? [];
const target = ({ namespace, name }: Named) => ({ ...(namespace === "" ? {} : { namespace }), name });

/** The finalizers that select the treatment of dependents. */
const isPolicy = (finalizer: string) => finalizer === "orphan" || finalizer === "foregroundDeletion";

class GarbageCollector implements Followed {
  readonly #env: RuntimeEnv;
  readonly #registry: Registry;
  /** Dependents by the uid of each of their owners. */
  readonly #dependents = new Map<string, Map<string, Named>>();
  readonly #suspects = new Map<string, Named>();
  readonly #leavingOwners = new Map<string, Named>();

  constructor(env: RuntimeEnv, registry: Registry) {
    this.#env = env;
    this.#registry = registry;
  }

  readonly onChange: Followed["onChange"] = (kind, { type, object, previous }) => {
    const self = { kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name };
    const key = keyOf(self);
    const now = type === "DELETED" ? [] : ownersOf(object);
    this.#remember(self, now, ownersOf(previous));
    if (now.length > 0) this.#suspects.set(key, self);
    if (type === "DELETED") {
      for (const [k, dependent] of this.#dependents.get(object.metadata.uid) ?? [])
        this.#suspects.set(k, dependent);
    } else if (
      object.metadata.deletionTimestamp !== undefined &&
      (object.metadata.finalizers ?? []).length > 0
    ) {
      this.#leavingOwners.set(key, self);
    }
  };

  readonly onIdle = (): void => {
    const examined = [...this.#suspects.values()];
    this.#suspects.clear();
    for (const suspect of examined) this.#examine(suspect);
    for (const leaving of [...this.#leavingOwners.values()]) this.#finishOwner(leaving);
  };

  #remember(self: Named, now: readonly OwnerReference[], before: readonly OwnerReference[]): void {
    const key = keyOf(self);
    const kept = new Set(now.map(({ uid }) => uid));
    for (const { uid } of before) {
      if (kept.has(uid)) continue;
      this.#dependents.get(uid)?.delete(key);
      if (this.#dependents.get(uid)?.size === 0) this.#dependents.delete(uid);
    }
    for (const { uid } of now) {
      const all = this.#dependents.get(uid) ?? new Map<string, Named>();
      this.#dependents.set(uid, all.set(key, self));
    }
  }

  #current({ kind, namespace, name }: Named): Stored | undefined {
    return this.#registry.read(kind, namespace, name);
  }

  /** Whether the owner is there; undefined when its kind is not served here. */
  #isThere(owner: OwnerReference, namespace: string): boolean | undefined {
    const [group = "", version] = owner.apiVersion.split("/");
    const kind = this.#registry.context.kinds.findKind(version === undefined ? "" : group, owner.kind);
    if (kind === undefined) return undefined;
    const found = this.#registry.read(kind, kind.namespaced ? namespace : "", owner.name);
    return found?.metadata.uid === owner.uid;
  }

  /** Removes references to owners that no longer exist; deletes an object that has no owner left. */
  #examine(suspect: Named): void {
    const object = this.#current(suspect);
    const owners = ownersOf(object);
    if (object === undefined || owners.length === 0 || object.metadata.deletionTimestamp !== undefined)
      return;
    const left = owners.filter((owner) => this.#isThere(owner, suspect.namespace) !== false);
    if (left.length === owners.length) return;
    if (left.length > 0) this.#setOwners(suspect, object, left);
    else this.#delete(suspect, object, "Background");
  }

  /** Deletes or orphans the dependents of an owner that is being deleted, then removes the owner's finalizer. */
  #finishOwner(leaving: Named): void {
    const owner = this.#current(leaving);
    const finalizers = owner?.metadata.finalizers ?? [];
    const policy = finalizers.find(isPolicy);
    if (owner?.metadata.deletionTimestamp === undefined || policy === undefined) {
      this.#leavingOwners.delete(keyOf(leaving));
      return;
    }
    const waits = policy === "orphan" ? this.#orphan(owner) : this.#deleteDependents(owner);
    if (waits) return;
    this.#leavingOwners.delete(keyOf(leaving));
    const rest = finalizers.filter((finalizer) => finalizer !== policy);
    const { uid } = owner.metadata;
    // With the UID: another object may have the name by now.
    const body = { metadata: { uid, finalizers: rest.length === 0 ? null : rest } };
    this.#call({ verb: "patch", patchType: "merge", body, ...target(leaving) }, leaving.kind);
  }

  /** The dependents stay, without the reference to this owner. */
  #orphan({ metadata: { uid } }: Stored): false {
    for (const [dependent, object] of this.#dependentsOf(uid)) {
      this.#setOwners(
        dependent,
        object,
        ownersOf(object).filter((o) => o.uid !== uid),
      );
    }
    return false;
  }

  /** Deletes the dependents first; true while one exists that the owner waits for. */
  #deleteDependents({ metadata: { uid } }: Stored): boolean {
    let waits = false;
    for (const [dependent, object] of this.#dependentsOf(uid)) {
      if (object.metadata.deletionTimestamp === undefined) this.#delete(dependent, object, "Foreground");
      const blocks = ownersOf(object).some((o) => o.uid === uid && o.blockOwnerDeletion === true);
      waits ||= blocks && this.#current(dependent) !== undefined;
    }
    return waits;
  }

  *#dependentsOf(uid: string): Iterable<readonly [Named, Stored]> {
    for (const dependent of [...(this.#dependents.get(uid)?.values() ?? [])]) {
      const object = this.#current(dependent);
      if (object !== undefined && ownersOf(object).some((owner) => owner.uid === uid))
        yield [dependent, object];
    }
  }

  #setOwners(of: Named, object: Stored, owners: readonly OwnerReference[]): void {
    const { uid, resourceVersion } = object.metadata;
    const body = { metadata: { uid, resourceVersion, ownerReferences: owners.length === 0 ? null : owners } };
    this.#call({ verb: "patch", patchType: "merge", body, ...target(of) }, of.kind);
  }

  #delete(of: Named, object: Stored, propagationPolicy: string): void {
    const body = { propagationPolicy, preconditions: { uid: object.metadata.uid } };
    this.#call({ verb: "delete", body, ...target(of) }, of.kind);
  }

  #call(
    request: Omit<ApiRequest, "group" | "version" | "resource" | "user" | "query">,
    { group, plural, versions }: Kind,
  ): void {
    const where = { group, version: versions[0], resource: plural };
    try {
      this.#registry.handle({ ...request, ...where, user: collector, query: {} });
    } catch (error) {
      // Deleted or changed meanwhile: that change queues the object again.
      if (!(error instanceof KubeApiError)) this.#env.logger.error("garbage collection failed", { error });
    }
  }
}
