/**
 * The heart of the server: takes one request after the other, each from its beginning to its
 * commit without a pause, and gives the answer or throws the failure.
 *
 * Invariants
 *  - Nothing is awaited: what a request has read is still true when it commits.
 *  - Every answer is frozen and shared with the store.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Clock, Random } from "@longshore/runtime";
import type { Admission } from "../admission/admission.ts";
import { methodNotSupported, notFound, unknownResource } from "../api/errors.ts";
import type { ObjectTable, Store } from "../storage/store.ts";
import type { WatchHub } from "../watch/watch-hub.ts";
import { deleteCollection, deleteObject } from "./delete.ts";
import type { Kind } from "./kind.ts";
import { resourceKey } from "./kind.ts";
import { listPage, startWatch } from "./list.ts";
import type { ApiAnswer, ApiRequest } from "./request.ts";
import { subresourceHandler } from "./subresources.ts";
import { createObject, patchObject, updateObject } from "./write.ts";

/** What all parts of the registry share. */
export interface RegistryContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly kinds: KindTable;
  readonly admission: Admission;
  readonly watches: WatchHub;
}

/** A request whose kind is known. */
export interface KindRequest extends ApiRequest {
  readonly of: Kind;
  readonly table: ObjectTable;
}

/** The kinds that are served, by group and plural name. */
export class KindTable {
  readonly #byResource = new Map<string, Kind>();
  readonly #byKind = new Map<string, Kind>();

  constructor(kinds: readonly Kind[]) {
    for (const kind of kinds) {
      this.#byResource.set(resourceKey(kind), kind);
      this.#byKind.set(`${kind.group}/${kind.kind}`, kind);
    }
  }

  all(): readonly Kind[] {
    return [...this.#byResource.values()];
  }

  find(group: string, plural: string): Kind | undefined {
    return this.#byResource.get(group === "" ? plural : `${plural}.${group}`);
  }

  findKind(group: string, kind: string): Kind | undefined {
    return this.#byKind.get(`${group}/${kind}`);
  }
}

/** Answers requests. */
export class Registry {
  readonly context: RegistryContext;

  constructor(context: RegistryContext) {
    this.context = context;
  }

  /** The answer. @throws KubeApiError with the Status that the client is to see */
  handle(request: ApiRequest): ApiAnswer {
    const { kinds, store } = this.context;
    const of = kinds.find(request.group, request.resource);
    if (of === undefined || !of.versions.includes(request.version)) throw unknownResource();
    const asked: KindRequest = { ...request, of, table: store.table(resourceKey(of)) };
    const handler = request.subresource === undefined ? mainHandler : subresourceHandler(asked);
    return handler(this.context, asked);
  }

  /** The object, without the making of a request: for the server's own parts. */
  read(of: Kind, namespace: string, name: string): Stored | undefined {
    return this.context.store.table(resourceKey(of)).get(namespace, name);
  }
}

function mainHandler(context: RegistryContext, request: KindRequest): ApiAnswer {
  switch (request.verb) {
    case "get":
      return { type: "object", code: 200, object: existing(request) };
    case "list":
      return listPage(context, request);
    case "watch":
      return startWatch(context, request);
    case "create":
      return createObject(context, request);
    case "update":
      return updateObject(context, request);
    case "patch":
      return patchObject(context, request);
    case "delete":
      return deleteObject(context, request);
    case "deletecollection":
      if (request.of.noDeleteCollection === true)
        throw methodNotSupported(groupResource(request.of), "delete");
      return deleteCollection(context, request);
  }
}

/** How the kind is named in messages. */
export function groupResource(of: Kind): { readonly group: string; readonly resource: string } {
  return { group: of.group, resource: of.plural };
}

/** The object that the request names. @throws KubeApiError 404 */
export function existing(request: KindRequest): Stored {
  const object = request.table.get(request.namespace ?? "", request.name ?? "");
  if (object === undefined) throw notFound(groupResource(request.of), request.name ?? "");
  return object;
}

/** Commits one object (or, with `undefined`, its removal) and gives it as stored; a dry run only shapes it. */
export function commitOne(
  context: RegistryContext,
  request: KindRequest,
  identity: { readonly namespace: string; readonly name: string },
  object: KubeObject | undefined,
): Stored {
  const change = { resource: resourceKey(request.of), ...identity };
  const { objects } = context.store.commit([object === undefined ? change : { ...change, object }]);
  return objects[0] as Stored;
}

/** True when the request must leave no trace. */
export function isDryRun(request: ApiRequest): boolean {
  return request.query.dryRun?.includes("All") ?? false;
}
