/** What a request asks leave for, read from its method and path alone (apiserver endpoints/request RequestInfo). */
import { type Attributes, nameSelected } from "../authorization/authorizer.ts";
import type { UserInfo } from "../registry/request.ts";
import type { ResourcePath } from "./path.ts";
import { isTrue } from "./query.ts";

const verbOfMethod: Readonly<Record<string, string>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** The attributes of a request of `user`; `path` is that of `url` where it names a resource. */
export function attributesOf(
  user: UserInfo,
  method: string,
  url: URL,
  path: ResourcePath | undefined,
): Attributes {
  if (path === undefined) return { user, verb: method.toLowerCase(), path: url.pathname };
  const { group, version, resource, subresource } = path;
  const params = url.searchParams;
  const fieldSelector = params.get("fieldSelector");
  // A namespace is itself in that namespace.
  const namespace = path.namespace ?? (group === "" && resource === "namespaces" ? path.name : undefined);
  const isOfOne = method === "GET" || method === "HEAD" || method === "DELETE";
  const name = path.name ?? (isOfOne ? nameSelected(fieldSelector) : undefined);
  return {
    user,
    verb: verbOf(method, path, params),
    group,
    version,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(fieldSelector === null ? {} : { fieldSelector }),
  };
}

function verbOf(method: string, path: ResourcePath, params: URLSearchParams): string {
  if (path.watch === true) return "watch";
  const verb = verbOfMethod[method] ?? "";
  if (path.name !== undefined) return isWatchOfOne(method, path, params) ? "watch" : verb;
  if (verb === "get") return wantsWatch(params) ? "watch" : "list";
  return verb === "delete" ? "deletecollection" : verb;
}

/** `GET …/NAME?watch=1` is answered with a watch here, so it must be allowed as one. */
function isWatchOfOne(method: string, path: ResourcePath, params: URLSearchParams): boolean {
  return method === "GET" && path.subresource === undefined && wantsWatch(params);
}

function wantsWatch(params: URLSearchParams): boolean {
  const watch = params.get("watch");
  return watch !== null && isTrue(watch);
}
