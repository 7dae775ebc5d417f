/** Who may do what: the cluster's own components everything, others discovery and health only. */
import type { Authorizer } from "../authorization/authorizer.ts";
import type { UserInfo } from "../registry/request.ts";

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

/** See the file's header. */
export const groupAuthorizer: Authorizer = {
  authorize({ user, path }) {
    const allowed = path === undefined ? mayDoAll(user) : mayReadPath(user, path);
    return { allowed, reason: "" };
  },
};
