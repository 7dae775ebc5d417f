/** The authorizers of a server, built from the requested modes (`--authorization-mode`). */
import type { UserInfo } from "../api/api-request.ts";
import type { Store } from "../storage/store.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { type Authorizer, anyOf, mastersAuthorizer } from "./authorizer.ts";
import { nodeAuthorizer } from "./node/node-authorizer.ts";
import { NodeGraph } from "./node/node-graph.ts";
import { RbacAuthorizer, type UserRules } from "./rbac/rbac-authorizer.ts";

/** The modes there are. */
export const authorizationModes = ["Node", "RBAC", "AlwaysAllow", "AlwaysDeny"] as const;

/** One of {@link authorizationModes}. */
export type AuthorizationMode = (typeof authorizationModes)[number];

/** Authorization of one server. */
export interface Access {
  readonly authorizer: Authorizer;
  readonly rules: { rulesFor(user: UserInfo, namespace: string): UserRules };
}

/** The authorizers of `modes`, in that order, after the one that lets `system:masters` do everything. */
export function createAccess(
  store: Store,
  version: EmulatedVersion,
  modes: readonly AuthorizationMode[],
): Access {
  const rbac = new RbacAuthorizer(store);
  const ofMode: Readonly<Record<AuthorizationMode, () => Authorizer>> = {
    Node: () => nodeAuthorizer(new NodeGraph(store), version),
    RBAC: () => rbac,
    AlwaysAllow: () => ({ authorize: () => ({ allowed: true, reason: "" }) }),
    AlwaysDeny: () => ({ authorize: () => ({ allowed: false, reason: "Everything is forbidden." }) }),
  };
  return {
    authorizer: anyOf([mastersAuthorizer, ...modes.map((mode) => ofMode[mode]())]),
    rules: rbac,
  };
}
