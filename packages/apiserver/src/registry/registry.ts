/**
 * The heart of the server: handles one request after the other, each from its beginning to its
 * commit without a pause, and returns the answer or throws the failure.
 *
 * Invariants
 *  - Nothing is awaited: what a request has read is still true when it commits.
 *  - Every answer is frozen and shared with the store.
 *  - A request takes this thread for a time that is bounded, and changes nothing when it runs out (api/work-time.ts).
 */
import type { Stored } from "@longshore/kube";
import type { ApiAnswer, ApiRequest } from "../api/api-request.ts";
import { methodNotSupported, unknownResource } from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import { tableKey } from "../api/kind.ts";
import { kindInVersion } from "../api/kind-table.ts";
import { withinWorkTime } from "../api/work-time.ts";
import { type Attributes, assertAllowed } from "../authorization/authorizer.ts";
import { answerReview } from "./answer-review.ts";
import { bindNamed } from "./bind-pod.ts";
import { bodyThroughWebhooks } from "./body-through-webhooks.ts";
import { checkReached } from "./check-list-options.ts";
import { deleteCollection, deleteMember, deleteObject, membersToDelete } from "./delete-object.ts";
import { listPage } from "./list-page.ts";
import { existing, groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";
import { servedAnswer } from "./served-form.ts";
import { servedVerbs } from "./served-verbs.ts";
import { subresourceHandler } from "./subresource-handler.ts";
import { startWatch } from "./watch.ts";
import { createObject, patchObject, updateObject } from "./write.ts";

/**
 * Answers requests: finds the kind, admits, validates, and reads or commits. Synchronous, so requests never interleave; one that
 * takes longer than the limit ends with 504. Called by `webhooks/`, for the HTTP server and the in-process
 * client, and by the server's own controllers. An answer to a write may be sent only once the store's `durable` has resolved.
 */
export class Registry {
  readonly context: RegistryContext;

  constructor(context: RegistryContext) {
    this.context = context;
  }

  /**
   * Every request from outside passes here, over HTTP before its body is read, and only then reaches {@link handle}.
   * @throws KubeApiError 403 when its user may not
   */
  authorize(attributes: Attributes): void {
    assertAllowed(this.context.authorizer, attributes);
  }

  /**
   * The answer to a request that is authorized, or is the server's own.
   * @param context with the webhooks of the request, where some may concern it (`webhooks/`); they are not asked without
   * @throws KubeApiError with the Status that the client is to see; 504 when it takes too long
   */
  handle(request: ApiRequest, context: RegistryContext = this.context): ApiAnswer {
    // Reading one object is short, and so is the beginning of a watch, which lasts.
    const isShort = request.verb === "get" || request.verb === "watch";
    return isShort ? this.#answer(request, context) : this.inTime(() => this.#answer(request, context));
  }

  /**
   * Does the work of one request, or a part of it, in the time that one may take.
   * @param ms what is left of it @throws KubeApiError 504
   */
  inTime<T>(work: () => T, ms: number = this.context.workMsMax): T {
    return withinWorkTime(this.context.clock, ms, work);
  }

  /** What the deletion of a collection would delete. @throws KubeApiError as {@link handle} */
  membersToDelete(request: ApiRequest): readonly Stored[] {
    return membersToDelete(this.#asked(request, this.context));
  }

  /** Deletes one of {@link membersToDelete}. @throws KubeApiError as {@link handle}; 404 when it is gone */
  deleteMember(request: ApiRequest, member: Stored, context: RegistryContext): ApiAnswer {
    return deleteMember(context, this.#asked(request, context), member);
  }

  #answer(request: ApiRequest, context: RegistryContext): ApiAnswer {
    const asked = this.#asked(request, context);
    const handler = request.subresource === undefined ? mainHandler : subresourceHandler(asked);
    return servedAnswer(asked.of, request.version, handler(context, throughWebhooks(context, asked)));
  }

  /** The request with its kind, once it is known to be served. @throws KubeApiError 404, 405, and of admission */
  #asked(request: ApiRequest, context: RegistryContext): KindRequest {
    const { kinds, store } = context;
    const found = kinds.find(request.group, request.resource);
    if (found === undefined || !found.versions.includes(request.version)) throw unknownResource();
    const of = kindInVersion(found, request.version);
    checkServed(of, request);
    const asked: KindRequest = { ...request, of, table: store.table(tableKey(of)) };
    context.admission.onRequest(context, asked);
    return asked;
  }

  /** The object, without the making of a request: for the server's own parts. */
  read(of: Kind, namespace: string, name: string): Stored | undefined {
    return this.context.store.table(tableKey(of)).get(namespace, name);
  }
}

/** Only what is served there is done, for every caller and every way in. @throws KubeApiError 404, 405 */
function checkServed(of: Kind, request: ApiRequest): void {
  const verbs = servedVerbs(of, request);
  if (verbs.includes(request.verb)) return;
  throw verbs.length === 0 ? unknownResource() : methodNotSupported(groupResource(of), request.verb);
}

/** Bodies that are answered or carried out, and not stored as they are, pass the webhooks before anything is done. */
function throughWebhooks(context: RegistryContext, request: KindRequest): KindRequest {
  const isOwnBody = request.subresource !== undefined || request.of.virtual === true || isBinding(request);
  return context.webhooks !== undefined && request.verb === "create" && isOwnBody
    ? bodyThroughWebhooks(context, request)
    : request;
}

const isBinding = ({ of }: KindRequest) => of.kind === "Binding" && of.group === "";

function mainHandler(context: RegistryContext, request: KindRequest): ApiAnswer {
  if (isBinding(request)) return bindNamed(context, request);
  if (request.of.virtual === true) return answerReview(context, request);
  switch (request.verb) {
    case "get":
      if (request.query.resourceVersion !== undefined) {
        checkReached(context.store.revision, request.query.resourceVersion);
      }
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
      return deleteCollection(context, request);
  }
}
