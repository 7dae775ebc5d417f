/** Who may do what: the cluster's own components everything, others discovery and health only. */
import { apiError, forbidden } from "../api/errors.ts";
import type { UserInfo } from "../registry/request.ts";
import type { ResourcePath } from "./path.ts";

/** Groups whose members may do everything. */
const mighty: ReadonlySet<string> = new Set(["system:masters", "system:nodes", "longshore:components"]);

const openToAll: ReadonlySet<string> = new Set(["/healthz", "/livez", "/readyz", "/version", "/version/"]);

/** True for a user who may do everything. */
export function mayDoAll(user: UserInfo): boolean {
  return user.groups.some((group) => mighty.has(group));
}

/** True when the user may read a path that is no resource. */
export function mayReadPath(user: UserInfo, path: string): boolean {
  if (mayDoAll(user) || openToAll.has(path) || /^\/(healthz|livez|readyz)\//.test(path)) return true;
  const discovery = /^\/(api|apis|openapi)(\/|$)/.test(path);
  return discovery && user.groups.includes("system:authenticated");
}

/** 403 for a path that is no resource. */
export function pathForbidden(user: UserInfo, verb: string, path: string): Error {
  return apiError(403, "Forbidden", `forbidden: User "${user.name}" cannot ${verb} path "${path}"`, {});
}

/** 403 for a resource. */
export function resourceForbidden(user: UserInfo, verb: string, path: ResourcePath): Error {
  const resource = path.subresource === undefined ? path.resource : `${path.resource}/${path.subresource}`;
  const where =
    path.namespace === undefined ? "at the cluster scope" : `in the namespace "${path.namespace}"`;
  return forbidden(
    { group: path.group, resource: path.resource },
    verb === "create" && path.subresource === undefined ? "" : (path.name ?? ""),
    `User "${user.name}" cannot ${verb} resource "${resource}" in API group "${path.group}" ${where}`,
  );
}
