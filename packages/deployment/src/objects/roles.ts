/** Roles and their bindings, whose rules say why. */
import type { KubeObject } from "@longshore/kube";
import type { AccessRule, RuleScope } from "../rules/rule.ts";
import type { Rendered } from "./rendered.ts";

const rbacGroup = "rbac.authorization.k8s.io";

/** Who holds a role. */
export interface RoleHolder {
  readonly account: { readonly name: string; readonly namespace: string };
  /** Labels of role and binding. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A role for each scope of the rules: cluster, namespace of the account, and `default`; secrets are left to the caller. */
export function renderRoles(
  holder: RoleHolder,
  name: string,
  rules: readonly AccessRule[],
): readonly Rendered[] {
  const scoped = (scope: RuleScope) => rules.filter((rule) => (rule.scope ?? "cluster") === scope);
  return [
    ...renderRole(holder, name, undefined, scoped("cluster")),
    ...renderRole(holder, name, holder.account.namespace, scoped("own-namespace")),
    ...renderRole(holder, `${name}-events`, "default", scoped("default-namespace")),
  ];
}

/** A role with its binding in one namespace, or in the whole cluster; nothing where there are no rules. */
export function renderRole(
  { account, labels }: RoleHolder,
  name: string,
  namespace: string | undefined,
  rules: readonly AccessRule[],
): readonly Rendered[] {
  if (rules.length === 0) return [];
  const prefix = namespace === undefined ? "Cluster" : "";
  const apiVersion = `${rbacGroup}/v1`;
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels };
  const comments = new Map(rules.map(({ reason }, index) => [`rules.${index}`, reason] as const));
  return [
    {
      object: { apiVersion, kind: `${prefix}Role`, metadata, rules: rules.map(policyRule) } as KubeObject,
      comments,
    },
    {
      object: {
        apiVersion,
        kind: `${prefix}RoleBinding`,
        metadata,
        subjects: [{ kind: "ServiceAccount", ...account }],
        roleRef: { apiGroup: rbacGroup, kind: `${prefix}Role`, name },
      } as KubeObject,
    },
  ];
}

function policyRule({ group, resource, verbs, names }: AccessRule): object {
  return {
    apiGroups: [group],
    resources: [resource],
    ...(names === undefined ? {} : { resourceNames: [...names] }),
    verbs: [...verbs],
  };
}
