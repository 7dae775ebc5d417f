/**
 * Prevents privilege escalation: a user who writes or binds a role must hold all rights of that role, or
 * be allowed to `escalate` or `bind` (kubernetes registry/rbac, policybased).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import { apiError, forbidden } from "../api/errors.ts";
import { sameJson } from "../api/own.ts";
import { mastersGroup } from "../authorization/authorizer.ts";
import { TooManyRightsError, type Uncovered, uncovered } from "../authorization/rbac/cover.ts";
import {
  type BindingObject,
  compacted,
  type PolicyRule,
  type RoleObject,
  rbacGroup,
  shownList,
  shownRule,
} from "../authorization/rbac/policy-rule.ts";
import { groupResource, type KindRequest, type RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

/** Refuses roles and bindings that grant rights which their author does not have. */
export const rbacEscalation: AdmissionPlugin = {
  name: "RBACEscalation",
  onCreate: (context, request, object) => {
    if (request.of.group === rbacGroup) check(context, request, object, undefined);
    return object;
  },
  onUpdate: (context, request, next, old) => {
    if (request.of.group === rbacGroup) check(context, request, next, old);
    return next;
  },
};

function check(
  context: RegistryContext,
  request: KindRequest,
  next: KubeObject,
  old: Stored | undefined,
): void {
  // Nothing is withheld from them (registry/rbac, EscalationAllowed).
  if (request.user.groups.includes(mastersGroup)) return;
  if (old !== undefined && changesOnlyOwnership(next, old)) return;
  if (request.of.plural.endsWith("bindings")) checkBinding(context, request, next as BindingObject);
  else checkRole(context, request, next as RoleObject, old as RoleObject | undefined);
}

/** True when only owners and finalizers change: the garbage collector may do that on any role or binding. */
function changesOnlyOwnership(next: KubeObject, old: Stored): boolean {
  const rest = (object: KubeObject) => {
    const { ownerReferences: _o, finalizers: _f, resourceVersion: _r, ...metadata } = object.metadata ?? {};
    return { ...object, metadata };
  };
  return sameJson(rest(next), rest(old));
}

const everything: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

function checkRole(
  context: RegistryContext,
  request: KindRequest,
  next: RoleObject,
  old: RoleObject | undefined,
): void {
  const { of, user } = request;
  const namespace = next.metadata?.namespace ?? "";
  const name = next.metadata?.name ?? "";
  const attributes = { user, verb: "escalate", group: rbacGroup, resource: of.plural, namespace, name };
  if (context.authorizer.authorize(attributes).allowed) return;
  if (old === undefined || !sameJson(next.rules ?? [], old.rules ?? [])) {
    confirm(context, request, name, namespace, next.rules ?? []);
  }
  const aggregates = next.aggregationRule ?? old?.aggregationRule;
  if (aggregates === undefined || sameJson(next.aggregationRule, old?.aggregationRule)) return;
  const { rules } = context.rules.rulesFor(user, "");
  if (missingOf(request, name, rules, everything).rules.length === 0) return;
  throw forbidden(groupResource(of), name, "must have cluster-admin privileges to use the aggregationRule");
}

function checkBinding(context: RegistryContext, request: KindRequest, next: BindingObject): void {
  const { user } = request;
  const namespace = next.metadata?.namespace ?? "";
  const { kind, name } = next.roleRef ?? { kind: "", name: "" };
  const isOfCluster = kind === "ClusterRole";
  const resource = isOfCluster ? "clusterroles" : "roles";
  const attributes = { user, verb: "bind", group: rbacGroup, resource, namespace, name };
  if (context.authorizer.authorize(attributes).allowed) return;
  const table = context.store.table(`${resource}.${rbacGroup}`);
  const role = table.get(isOfCluster ? "" : namespace, name) as RoleObject | undefined;
  if (role === undefined) {
    const details = { name, group: rbacGroup, kind: resource };
    throw apiError(404, "NotFound", `${resource}.${rbacGroup} "${name}" not found`, details);
  }
  confirm(context, request, next.metadata?.name ?? "", namespace, role.rules ?? []);
}

function confirm(
  context: RegistryContext,
  request: KindRequest,
  name: string,
  namespace: string,
  asked: readonly PolicyRule[],
): void {
  const { of, user } = request;
  const { rules, problems } = context.rules.rulesFor(user, namespace);
  const missing = missingOf(request, name, rules, asked);
  if (missing.rules.length === 0) return;
  const lines = [...new Set(compacted(missing.rules).map(shownRule))].sort();
  const shown = [...lines, ...(missing.isMore ? ["and others"] : [])].join("\n");
  const unresolved = problems.length === 0 ? "" : `; resolution errors: ${shownList(problems)}`;
  throw forbidden(
    groupResource(of),
    name,
    `user "${user.name}" (groups=${shownList(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${shown}${unresolved}`,
  );
}

/** @throws KubeApiError 403 when the comparison takes too long */
function missingOf(
  { of }: KindRequest,
  name: string,
  held: readonly PolicyRule[],
  asked: readonly PolicyRule[],
): Uncovered {
  try {
    return uncovered(held, asked);
  } catch (error) {
    if (!(error instanceof TooManyRightsError)) throw error;
    throw forbidden(groupResource(of), name, error.message);
  }
}
