/**
 * One reading of a request's method, path and query. What is asked leave for and what is done both come from it, so that they
 * cannot be two things. The words follow apiserver endpoints/request RequestInfo; what is served follows the kind table.
 */

import type { Target, UserInfo, Verb } from "../api/api-request.ts";
import { methodNotAllowed, notFound, unknownResource } from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import { type KindTable, kindInVersion } from "../api/kind-table.ts";
import { type Attributes, attributesOf } from "../authorization/authorizer.ts";
import { servedVerbs } from "../registry/served-verbs.ts";
import { isTrue } from "./parse-query.ts";
import type { RequestTarget } from "./request-target.ts";
import { PageNotFound } from "./respond.ts";

/** What a request asks for: the target of an operation, or something with a verb that is none. */
export type Asked = Omit<Target, "verb"> & { readonly verb: string };

/** An operation on a kind that is served. */
export interface Operation {
  readonly of: Kind;
  readonly target: Target;
}

/** A request to a path that is no resource. */
export interface PathRequest {
  readonly type: "path";
  readonly method: string;
  readonly path: string;
}

/** A request for a resource. */
export interface ResourceRequest {
  readonly type: "resource";
  readonly asked: Asked;
  /** The field selector of a list, watch or deletion of many, as given. */
  readonly fieldSelector: string | undefined;
  /** The path below the sub-resource, without its first slash: what a proxied component is asked for. Empty where there is none. */
  readonly below: string;
  /** What is to be done, which is what `asked` says, or why nothing is. */
  readonly outcome: { readonly operation: Operation } | { readonly refusal: () => Error };
}

/** A request's method, path and query after parsing. */
export type ParsedRequest = PathRequest | ResourceRequest;

/** The path `/api/VERSION/…` or `/apis/GROUP/VERSION/…`, taken apart. */
interface ResourcePath {
  readonly group: string;
  readonly version: string;
  /** The verb before the resource, in the old forms that have one. */
  readonly special: "watch" | "proxy" | undefined;
  readonly namespace: string | undefined;
  readonly resource: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** What follows the sub-resource. */
  readonly below: string;
  /** Nothing is served there: there is more after the sub-resource than any path has, or a part is empty. */
  readonly isNowhere: boolean;
  /** The path does not begin with the root of the API, but with more slashes. */
  readonly isOutside: boolean;
}

/** Parses the request. Pure; a malformed request is refused only after authorization. */
export function parseRequest(method: string, to: RequestTarget, kinds: KindTable): ParsedRequest {
  const at = resourcePath(to.path);
  if (at === undefined) return { type: "path", method, path: to.path };
  const { group, version, resource, namespace, name } = at;
  // The words before a proxied resource say nothing of sub-resources.
  const subresource = at.special === "proxy" ? undefined : at.subresource;
  const asked: Asked = {
    verb: verbOf(method, at, to.params),
    group,
    version,
    resource,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
  // The old form of a watch selects nothing that a right could be for.
  const fieldSelector = at.special === undefined ? (to.params.get("fieldSelector") ?? undefined) : undefined;
  const { below } = at;
  return { type: "resource", asked, fieldSelector, below, outcome: outcomeOf(method, at, asked, kinds) };
}

/** The attributes that the request is authorized with. */
export function attributesOfParsed(user: UserInfo, request: ParsedRequest): Attributes {
  if (request.type === "path") return { user, verb: request.method.toLowerCase(), path: request.path };
  return attributesOf(user, request.asked, request.fieldSelector);
}

const specials: ReadonlySet<string | undefined> = new Set(["watch", "proxy"]);

function resourcePath(path: string): ResourcePath | undefined {
  let from = 0;
  let to = path.length;
  while (path[from] === "/") from++;
  while (to > from && path[to - 1] === "/") to--;
  const parts = path.slice(from, to).split("/");
  const isCore = parts[0] === "api";
  let at = isCore ? 1 : 2;
  if ((!isCore && parts[0] !== "apis") || parts.length < at + 2) return undefined;
  const group = isCore ? "" : (parts[1] as string);
  const version = parts[at++] as string;
  const isSpecial = specials.has(parts[at]) && parts.length > at + 1;
  const special = isSpecial ? (parts[at++] as "watch" | "proxy") : undefined;
  let namespace: string | undefined;
  // `namespaces/NAME`, its sub-resources, and everything in one.
  if (parts[at] === "namespaces" && parts.length > at + 2 && !isNamespaceSubresource(parts[at + 2])) {
    namespace = parts[at + 1];
    at += 2;
  }
  const [resource = "", name, subresource, ...rest] = parts.slice(at);
  return {
    group,
    version,
    special,
    // What is left empty is left out: all namespaces, no name.
    namespace: namespace || undefined,
    resource,
    name: name || undefined,
    subresource: subresource || undefined,
    below: rest.join("/"),
    isNowhere: rest.length > 0 || parts.includes(""),
    isOutside: from > 1,
  };
}

function isNamespaceSubresource(part: string | undefined): boolean {
  return part === "status" || part === "finalize";
}

function verbOf(method: string, { special, name }: ResourcePath, params: URLSearchParams): string {
  if (special !== undefined) return special;
  switch (method) {
    case "GET":
    case "HEAD":
      return name !== undefined ? "get" : wantsWatch(params) ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === undefined ? "deletecollection" : "delete";
    default:
      return "";
  }
}

/** The first value counts where there are several. */
function wantsWatch(params: URLSearchParams): boolean {
  const watch = params.get("watch");
  return watch !== null && isTrue(watch);
}

/** Whether the kind is served there with that verb: first the path is looked for (404), then the method (405). */
function outcomeOf(
  method: string,
  at: ResourcePath,
  asked: Asked,
  kinds: KindTable,
): ResourceRequest["outcome"] {
  if (at.isOutside) return { refusal: () => new PageNotFound() };
  const found = kinds.find(asked.group, asked.resource);
  if (found === undefined || !found.versions.includes(asked.version)) {
    return { refusal: () => unknownKind(kinds, asked.group) };
  }
  const of = kindInVersion(found, asked.version);
  const verbs = at.isNowhere || at.special === "proxy" ? [] : servedVerbs(of, asked);
  if (verbs.length === 0 || (at.special === "watch" && !verbs.includes("watch"))) {
    return { refusal: () => nothingThere(of, asked) };
  }
  if (!(verbs as readonly string[]).includes(asked.verb) || !goesWith(method, of, at, asked)) {
    return { refusal: () => (isInScope(of, asked) ? methodNotAllowed() : nothingThere(of, asked)) };
  }
  return { operation: { of, target: asked as Target & { readonly verb: Verb } } };
}

/** A watch is a GET. HEAD is one where the reference answers by the verb alone: of custom resources. */
function goesWith(method: string, of: Kind, { special, name }: ResourcePath, { verb }: Asked): boolean {
  if (method === "HEAD") return of.custom !== undefined && verb !== "watch";
  if (verb !== "watch") return true;
  return method === "GET" && (special === "watch" || name === undefined);
}

function unknownKind(kinds: KindTable, group: string): Error {
  const isBuiltIn = kinds.all().some((kind) => kind.group === group && kind.custom === undefined);
  return isBuiltIn ? unknownResource() : new PageNotFound();
}

/** For built-in kinds the collection across all namespaces is a path like any other. */
function isInScope(of: Kind, { namespace }: Asked): boolean {
  return of.custom === undefined || of.namespaced === (namespace !== undefined);
}

function nothingThere(of: Kind, asked: Asked): Error {
  if (of.custom === undefined) return unknownResource();
  if (asked.subresource === undefined || !isInScope(of, asked)) return new PageNotFound();
  return notFound({ group: of.group, resource: of.plural }, asked.name ?? "");
}
