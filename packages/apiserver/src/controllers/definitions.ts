/**
 * The controller of the definitions: accepts their names, serves the kinds of established definitions, and removes a
 * deleted definition when its last object is gone (apiextensions-apiserver controllers and finalizer).
 *
 * Invariants
 *  - The kinds that are served follow from the stored definitions alone, so a restart serves the same ones before its
 *    first request.
 *  - Runs after a change of any definition, or of an object of one that is being deleted; each pass checks all.
 */
import type { KubeObject } from "@longshore/kube";
import { apiTime, KubeApiError } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import { sameJson } from "../api/own.ts";
import { customKind } from "../custom/custom-kind.ts";
import {
  cleanupFinalizer,
  type Definition,
  definitionsResource,
  isTrue,
  type StoredDefinition,
} from "../custom/definition.ts";
import { definitionStatus, withCondition } from "../custom/definition-status.ts";
import type { Registry } from "../registry/registry.ts";

const finalizer = { ...adminUser, name: "system:apiserver" };

/** Serves the kinds of the definitions in the store, and those that come. */
export class Definitions {
  readonly #env: RuntimeEnv;
  readonly #registry: Registry;
  /** The definition from which each kind that is served was made. */
  readonly #served = new Map<string, StoredDefinition>();
  /** Subscriptions to the objects of definitions that are being deleted. */
  readonly #waiting = new Map<string, () => void>();
  readonly #unsubscribe: () => void;
  #isWoken = false;
  /** Requests that wait go first, see #letOthersGoFirst. */
  #isWaiting = false;
  #isStopped = false;

  constructor(env: RuntimeEnv, registry: Registry) {
    this.#env = env;
    this.#registry = registry;
    const table = registry.context.store.table(definitionsResource);
    this.#unsubscribe = table.onAppend(() => this.#wake());
    this.#serve();
    if (table.size > 0) this.#wake();
  }

  /** Stops the controller. */
  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    for (const end of this.#waiting.values()) end();
  }

  /** Soon, and once for all that happens until then; never within the request that has woken us. */
  #wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    void Promise.resolve().then(() => {
      this.#isWoken = false;
      if (!this.#isStopped) this.#pass();
    });
  }

  /** Puts definitions in the store, in the place of those of their names, and serves them at once. @throws KubeApiError */
  install(given: readonly KubeObject[]): void {
    for (const definition of given) {
      const name = definition.metadata?.name ?? "";
      const there = this.#get(name);
      const request = {
        group: "apiextensions.k8s.io",
        version: "v1",
        resource: "customresourcedefinitions",
        query: {},
        user: finalizer,
        fromWire: true,
      };
      if (there === undefined) this.#registry.handle({ ...request, verb: "create", body: definition });
      else {
        const { resourceVersion } = there.metadata;
        const body = { ...definition, metadata: { ...definition.metadata, resourceVersion } };
        this.#registry.handle({ ...request, verb: "update", name, body });
      }
    }
    this.#pass();
  }

  #pass(): void {
    if (this.#isWaiting) return;
    try {
      for (const { metadata } of this.#all()) this.#settle(metadata.name);
      this.#serve();
    } catch (error) {
      // The store has failed: the next write reports that, and starts this again.
      this.#env.logger.error("the definitions of custom resources could not be looked after", { error });
    }
  }

  #all(): readonly StoredDefinition[] {
    return this.#registry.context.store.table(definitionsResource).list() as readonly StoredDefinition[];
  }

  #get(name: string): StoredDefinition | undefined {
    return this.#registry.context.store.table(definitionsResource).get("", name) as
      | StoredDefinition
      | undefined;
  }

  #settle(name: string): void {
    const definition = this.#get(name);
    if (definition === undefined) return;
    const { deletionTimestamp, finalizers = [] } = definition.metadata;
    if (deletionTimestamp !== undefined) {
      if (finalizers.includes(cleanupFinalizer)) this.#cleanUp(definition);
      return;
    }
    const others = this.#all().filter(
      (d) => d.spec.group === definition.spec.group && d.metadata.name !== name,
    );
    const status = definitionStatus(definition, others, this.#now());
    this.#commit(definition, { ...definition, status });
  }

  /** Deletes the objects of a definition that is being deleted, and removes its finalizer when none is left. */
  #cleanUp(definition: StoredDefinition): void {
    const { name } = definition.metadata;
    const { store } = this.#registry.context;
    const terminating: Definition = {
      ...definition,
      status: {
        acceptedNames: { plural: "", kind: "" },
        storedVersions: [],
        ...definition.status,
        conditions: withCondition(
          definition.status?.conditions ?? [],
          {
            type: "Terminating",
            status: "True",
            reason: "InstanceDeletionInProgress",
            message: "CustomResource deletion is in progress",
          },
          this.#now(),
        ),
      },
    };
    // Served as terminating first, so that no new objects come while the old ones go.
    this.#commit(definition, terminating);
    this.#serve();
    // The table of the objects has the name of their definition: plural and group.
    const objects = store.table(name);
    if (objects.size > 0) this.#deleteObjects(definition);
    if (objects.size > 0) {
      if (!this.#waiting.has(name))
        this.#waiting.set(
          name,
          objects.onAppend(() => this.#wake()),
        );
      return;
    }
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
    const current = this.#get(name);
    if (current === undefined) return;
    const finalizers = (current.metadata.finalizers ?? []).filter((f) => f !== cleanupFinalizer);
    if (finalizers.length === 0) store.commit([{ resource: definitionsResource, namespace: "", name }]);
    else this.#commit(current, { ...current, metadata: { ...current.metadata, finalizers } });
  }

  #deleteObjects({ metadata, spec }: StoredDefinition): void {
    const { kinds, store } = this.#registry.context;
    const kind = kinds.find(spec.group, spec.names.plural);
    if (kind === undefined) {
      // The kind was never served, or is no longer: its objects cannot be deleted by requests.
      for (const object of [...store.table(metadata.name).list()]) {
        const { namespace = "", name } = object.metadata;
        store.commit([{ resource: metadata.name, namespace, name }]);
      }
      return;
    }
    const { group, versions, plural: resource } = kind;
    const request = { group, version: versions[0], resource, query: {}, user: finalizer } as const;
    const namespaces = new Set(
      store
        .table(metadata.name)
        .list()
        .map((one) => one.metadata.namespace),
    );
    try {
      for (const namespace of namespaces) {
        const where = namespace === undefined ? {} : { namespace };
        this.#registry.handle({ ...request, verb: "deletecollection", ...where });
      }
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      this.#env.logger.warn("objects of a definition that is being deleted cannot be deleted yet", {
        definition: metadata.name,
        error,
      });
      if (error.code === 504) this.#letOthersGoFirst();
    }
  }

  /** Too many objects for the time of one request: the rest is deleted after the requests that wait. */
  #letOthersGoFirst(): void {
    this.#isWaiting = true;
    this.#env.clock.timer(0, () => {
      this.#isWaiting = false;
      this.#wake();
    });
  }

  /** Brings the kinds that are served in line with the definitions. */
  #serve(): void {
    const { kinds, version } = this.#registry.context;
    const there = new Set<string>();
    for (const definition of this.#all()) {
      const { name } = definition.metadata;
      if (!isTrue(definition, "Established")) continue;
      const served = this.#served.get(name);
      const found = kinds.find(definition.spec.group, definition.spec.names.plural);
      if (found !== undefined && found.custom === undefined) continue; // A built-in kind has that name.
      there.add(name);
      if (served !== undefined && servesTheSame(served, definition)) continue;
      const kind = customKind(definition, version);
      this.#served.set(name, definition);
      if (kind !== undefined) kinds.add(kind);
      else kinds.remove(definition.spec.group, definition.spec.names.plural);
    }
    for (const [name, { spec }] of this.#served) {
      if (there.has(name)) continue;
      this.#served.delete(name);
      kinds.remove(spec.group, spec.names.plural);
    }
  }

  #commit(old: StoredDefinition, next: Definition): void {
    if (sameJson(old, next)) return;
    const { store } = this.#registry.context;
    const { name } = old.metadata;
    store.commit([{ resource: definitionsResource, namespace: "", name, object: next as KubeObject }]);
  }

  #now(): string {
    return apiTime(this.#env.clock.now());
  }
}

function servesTheSame(a: StoredDefinition, b: StoredDefinition): boolean {
  return (
    sameJson(a.spec, b.spec) &&
    sameJson(a.status?.acceptedNames, b.status?.acceptedNames) &&
    isTrue(a, "Terminating") === isTrue(b, "Terminating")
  );
}
