/**
 * What every verb works with: the parts of the server, the request whose kind is known, and the few steps that
 * all of them take. It knows no verb, so verbs may use each other.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Clock, Random } from "@longshore/runtime";
import type { ApiRequest, UserInfo } from "../api/api-request.ts";
import { notFound } from "../api/errors.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import type { KindTable } from "../api/kind-table.ts";
import type { ManagedFieldsEntry } from "../apply/managers.ts";
import type { IssuedToken, TokenParameters } from "../authentication/service-account-tokens.ts";
import type { TokenIdentity, TokenProblem } from "../authentication/token-authenticator.ts";
import type { Authorizer } from "../authorization/authorizer.ts";
import type { UserRules } from "../authorization/rbac/rbac-authorizer.ts";
import type { ObjectTable, Store } from "../storage/store.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import type { WatchHub } from "../watch/watch-hub.ts";
import { storable } from "./stored-size.ts";

/** What all parts of the registry share. */
export interface RegistryContext {
  readonly clock: Clock;
  /** Most milliseconds of work for one request, see `api/work-time.ts`. */
  readonly workMsMax: number;
  readonly random: Random;
  readonly store: Store;
  readonly kinds: KindTable;
  readonly admission: Admission;
  readonly watches: WatchHub;
  /** The version of Kubernetes whose behaviour is shown. */
  readonly version: EmulatedVersion;
  /** Authorizes requests. */
  readonly authorizer: Authorizer;
  /** Finds the RBAC rules that apply to a user; other authorizers have no rules. */
  readonly rules: RuleResolver;
  readonly tokens: TokenService;
  /** The webhooks of the request that is being handled; left out where none can concern it. */
  readonly webhooks?: RequestWebhooks;
}

/** What a webhook is asked about. */
export type WebhookOperation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/** What is about to be done, as webhooks are asked about it. */
export interface WebhookWrite {
  readonly operation: WebhookOperation;
  readonly request: KindRequest;
  /** As it is to be stored, or the body of a sub-resource that has another kind; left out for a deletion. */
  readonly object?: KubeObject;
  /** As it is; for a sub-resource of another kind, in that kind. */
  readonly old?: KubeObject;
  /** The objects are of the sub-resource's kind, in the one form that it has. */
  readonly isBody?: true;
  /** The options of a deletion, where they are not those of the query. */
  readonly options?: KubeObject;
}

/**
 * The admission webhooks of one request, as the registry sees them: answers that are there already. Where one is missing,
 * its functions throw, with nothing changed; the webhook is called, and the request is handled again, from its beginning
 * (`webhooks/`). What they answer is always about the very objects that are then committed.
 */
export interface RequestWebhooks {
  /**
   * The object as the mutating webhooks leave it; the same one when they change nothing.
   * @param isAgain for those that want to see what has changed after them
   * @throws KubeApiError with the answer of a webhook that refuses, or cannot be called
   */
  mutate(write: WebhookWrite, isAgain?: boolean): KubeObject | undefined;
  /** @throws KubeApiError as {@link mutate} */
  validate(write: WebhookWrite): void;
}

/** See {@link RegistryContext.rules}. */
export interface RuleResolver {
  /** @param namespace "" for the rules of the whole cluster only */
  rulesFor(user: UserInfo, namespace: string): UserRules;
}

/**
 * Authenticates tokens for TokenReview, and issues those of service accounts for TokenRequest. Synchronous. A token that is
 * not accepted is a {@link TokenProblem}, not an error.
 */
export interface TokenService {
  /** The audience of the API itself. */
  readonly audience: string;
  authenticateToken(token: string, audiences: readonly string[]): TokenIdentity | TokenProblem;
  issue(parameters: TokenParameters): IssuedToken;
}

/** A request whose kind is known. */
export interface KindRequest extends ApiRequest {
  readonly of: Kind;
  readonly table: ObjectTable;
  /** Who manages which fields of the object after an apply, which is then written like any other. */
  readonly applied?: { readonly managedFields: readonly ManagedFieldsEntry[] | undefined };
}

/**
 * All admission plugins as one, in their order. Called by the registry after authorization: `onRequest` before anything
 * else, `onCreate` and `onUpdate` with an object that is defaulted but not yet validated or stored; each plugin gets what the
 * one before it returned. A refusal is a thrown KubeApiError: nothing is stored. Synchronous.
 */
export interface Admission {
  /** @throws KubeApiError when the request is refused as a whole */
  onRequest(context: RegistryContext, request: KindRequest): void;
  /** @throws KubeApiError when the change of the status is refused */
  onStatusUpdate(context: RegistryContext, request: KindRequest, next: KubeObject, old: Stored): void;
  onCreate(context: RegistryContext, request: KindRequest, object: KubeObject): KubeObject;
  onUpdate(context: RegistryContext, request: KindRequest, next: KubeObject, old: Stored): KubeObject;
  /** The write is about to be stored; not called for a dry run. @throws KubeApiError when it is refused nevertheless */
  beforeCommit(
    context: RegistryContext,
    request: KindRequest,
    next: KubeObject,
    old: Stored | undefined,
  ): void;
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

/** Commits one object (or, with `undefined`, its removal) and returns it as stored; a dry run does not store it. */
export function commitOne(
  context: RegistryContext,
  request: KindRequest,
  identity: { readonly namespace: string; readonly name: string },
  object: KubeObject | undefined,
): Stored {
  const change = { resource: tableKey(request.of), ...identity };
  const { objects } = context.store.commit([
    object === undefined ? change : { ...change, object: storable(request, object) },
  ]);
  return objects[0] as Stored;
}

/** True for a dry run: the request changes nothing. */
export function isDryRun(request: ApiRequest): boolean {
  return request.query.dryRun?.includes("All") ?? false;
}
