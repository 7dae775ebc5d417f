/** Users with exactly the rights that a test grants, through stored roles and bindings. */
import type { KubeObject } from "@longshore/kube";
import { type PolicyRule, rbacGroup } from "../authorization/rbac/policy-rule.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import type { Right } from "./request-forms.ts";

/** Makes users. They are members of no group that has rights by itself, if they are impersonated without one. */
export interface Rights {
  /** Who has that right and no other. A right in a namespace is bound there. */
  only(right: Right): string;
  /** Who has every right of `verbs` everywhere, but that one. */
  allBut(right: Right, verbs: readonly string[]): string;
}

/** See {@link Rights}; puts roles and bindings into the store. */
export function rightsOf({ store, kinds }: Pick<RegistryContext, "store" | "kinds">): Rights {
  const users = new Map<string, string>();
  const put = (plural: string, kind: string, namespace: string, object: object) => {
    const { name } = (object as { metadata: { name: string } }).metadata;
    const whole = { apiVersion: `${rbacGroup}/v1`, kind, ...object } as KubeObject;
    store.commit([{ resource: `${plural}.${rbacGroup}`, namespace, name, object: whole }]);
  };
  const roleRef = (name: string) => ({ apiGroup: rbacGroup, kind: "ClusterRole", name });
  function give(user: string, id: string, rules: readonly PolicyRule[], namespace: string | undefined): void {
    const metadata = { name: id, uid: id, ...(namespace === undefined ? {} : { namespace }) };
    put("clusterroles", "ClusterRole", "", { metadata: { name: id, uid: id }, rules });
    const plural = namespace === undefined ? "clusterrolebindings" : "rolebindings";
    const kind = namespace === undefined ? "ClusterRoleBinding" : "RoleBinding";
    const subjects = [{ kind: "User", apiGroup: rbacGroup, name: user }];
    put(plural, kind, namespace ?? "", { metadata, roleRef: roleRef(id), subjects });
  }
  /** The user of that description, made once. */
  function user(description: object, make: (name: string) => void): string {
    const key = JSON.stringify(description);
    let name = users.get(key);
    if (name === undefined) {
      name = `user-${users.size}`;
      users.set(key, name);
      make(name);
    }
    return name;
  }
  return {
    only: (right) => user({ right }, (name) => give(name, name, [ruleOf(right)], right.namespace)),
    allBut: ({ name: _, ...right }, verbs) =>
      user({ right, verbs }, (name) => {
        const { group, resource } = right;
        const groups = new Set(["", "other", ...kinds.all().map((kind) => kind.group)]);
        groups.delete(group);
        const resources = new Set(
          kinds
            .all()
            .flatMap((kind) => [
              kind.plural,
              `${kind.plural}/status`,
              ...Object.keys(kind.subresources ?? {}).map((sub) => `${kind.plural}/${sub}`),
            ]),
        );
        resources.delete(resource);
        const rules: PolicyRule[] = [
          { verbs: ["*"], apiGroups: [...groups], resources: ["*"] },
          { verbs: ["*"], apiGroups: [group], resources: [...resources] },
          { verbs: verbs.filter((verb) => verb !== right.verb), apiGroups: [group], resources: [resource] },
        ];
        give(name, name, rules, undefined);
        // The right itself, but elsewhere.
        if (right.namespace !== undefined) give(name, `${name}-elsewhere`, [ruleOf(right)], "elsewhere");
      }),
  };
}

function ruleOf({ verb, group, resource, name }: Right): PolicyRule {
  return {
    verbs: [verb],
    apiGroups: [group],
    resources: [resource],
    // What is created has no name yet, and what is deleted by the dozen has many.
    ...(name === undefined || verb === "create" ? {} : { resourceNames: [name] }),
  };
}
