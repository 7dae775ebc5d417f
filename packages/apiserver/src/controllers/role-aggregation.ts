/** Keeps the rules of aggregated ClusterRoles what their selectors choose (kubernetes pkg/controller/clusterroleaggregation). */
import { KubeApiError } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import { sameJson } from "../api/own.ts";
import { aggregatedRules } from "../authorization/rbac/default-roles.ts";
import { type RoleObject, rbacGroup } from "../authorization/rbac/policy-rule.ts";
import type { Registry } from "../registry/registry.ts";
import { followTables } from "./follow-tables.ts";

const controller = {
  ...adminUser,
  name: "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
};

/** Starts the controller. Returns a function that stops it. */
export function startRoleAggregation(env: RuntimeEnv, registry: Registry): () => void {
  const { store, kinds } = registry.context;
  const table = store.table(`clusterroles.${rbacGroup}`);
  let isDirty = false;
  return followTables(
    env.clock,
    store,
    kinds,
    (kind) => kind.group === rbacGroup && kind.plural === "clusterroles",
    {
      onChange() {
        isDirty = true;
      },
      onIdle() {
        if (!isDirty) return;
        isDirty = false;
        const roles = table.list();
        for (const role of roles) {
          const before = role as RoleObject;
          if (before.aggregationRule === undefined) continue;
          const rules = aggregatedRules(before, roles);
          if (sameJson(rules, before.rules ?? [])) continue;
          try {
            registry.handle({
              verb: "update",
              group: rbacGroup,
              version: "v1",
              resource: "clusterroles",
              name: role.metadata.name,
              query: {},
              body: { ...role, rules },
              user: controller,
            });
          } catch (error) {
            // Changed meanwhile: that change brings us back.
            if (!(error instanceof KubeApiError)) throw error;
            isDirty = true;
          }
        }
      },
    },
  );
}
