/** Service accounts, roles and bindings: each component has a role of its own, whose rules say why. */
import type { KubeObject } from "@longshore/kube";
import type { DeploymentPlan } from "../deployment-plan.ts";
import { type AccessComponent, accessRules } from "../rules/index.ts";
import type { AccessNeeds, AccessRule } from "../rules/rule.ts";
import { type DeployedPart, labelsOf } from "./labels.ts";
import type { Rendered } from "./rendered.ts";
import { type RoleHolder, renderRole, renderRoles } from "./roles.ts";

/** A component and the account under which it runs. */
export interface Grantee {
  readonly component: AccessComponent;
  readonly part: DeployedPart;
  readonly account: { readonly name: string; readonly namespace: string };
}

/** What a component is given. */
export interface Grant {
  readonly grantee: Grantee;
  readonly rules: readonly AccessRule[];
}

/** The account of a part. */
export function accountOf(plan: DeploymentPlan, part: DeployedPart): { name: string; namespace: string } {
  return part === "snapshot-controller"
    ? { name: "snapshot-controller", namespace: plan.namespace }
    : { name: `${plan.base}-${part}`, namespace: plan.namespace };
}

/** Who gets rights, and under which account. */
export function granteesOf(plan: DeploymentPlan): readonly Grantee[] {
  const part: DeployedPart = plan.controller === "daemonset" ? "node" : "controller";
  const at = (component: AccessComponent, of: DeployedPart): Grantee => ({
    component,
    part: of,
    account: accountOf(plan, of),
  });
  return [
    ...plan.controllerSidecars.map((sidecar) => at(sidecar, part)),
    ...(plan.nodeDeployment ? [at("provisioner", "node")] : []),
    ...(plan.snapshotController ? [at("snapshot-controller", "snapshot-controller")] : []),
  ];
}

/** An account; its token is mounted only where something asks the API server. */
export function renderAccount(plan: DeploymentPlan, part: DeployedPart): Rendered {
  return {
    object: {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { ...accountOf(plan, part), labels: labelsOf(plan, part) },
      automountServiceAccountToken: false,
    } as KubeObject,
  };
}

/** Roles and bindings, in a stable order: of all components, with the rights that they need, unless others are given. */
export function renderAccess(
  plan: DeploymentPlan,
  grants: readonly Grant[] = granteesOf(plan).map((grantee) => ({ grantee, rules: rulesOf(plan, grantee) })),
): readonly Rendered[] {
  return [...grants.flatMap((grant) => rolesOf(plan, grant)), ...secretRoles(plan, grants)];
}

/** What a component may do in this deployment: on nodes it elects no leader, as each has work of its own. */
export function rulesOf(plan: DeploymentPlan, { component, part }: Grantee): readonly AccessRule[] {
  const onNodes = part === "node" && plan.controller !== "daemonset";
  const needs: AccessNeeds =
    part === "snapshot-controller"
      ? { ...plan.needs, leaderElection: true }
      : onNodes
        ? { ...plan.needs, leaderElection: false }
        : { ...plan.needs, nodeDeployment: false };
  return accessRules(component, needs);
}

function rolesOf(plan: DeploymentPlan, { grantee, rules }: Grant): readonly Rendered[] {
  const name =
    grantee.component === "snapshot-controller" ? grantee.component : `${plan.base}-${grantee.component}`;
  return renderRoles(holderOf(plan, grantee), name, rules);
}

/** One role for all components of an account: the same pod holds them. */
function secretRoles(plan: DeploymentPlan, grants: readonly Grant[]): readonly Rendered[] {
  const ofAccount = new Map<string, Grant>();
  for (const { grantee, rules } of grants) {
    const own = rules.filter(({ scope }) => scope === "secret-namespaces");
    const before = ofAccount.get(grantee.account.name);
    ofAccount.set(grantee.account.name, {
      grantee: before?.grantee ?? grantee,
      rules: [...(before?.rules ?? []), ...own],
    });
  }
  return [...ofAccount.values()].flatMap(({ grantee, rules }) => {
    const [first] = rules;
    if (first === undefined) return [];
    const merged: AccessRule = { ...first, reason: rules.map(({ reason }) => reason).join("; ") };
    const name = `${plan.base}-${grantee.part}-secrets`;
    const holder = holderOf(plan, grantee);
    if (plan.secretsClusterWide) return renderRole(holder, name, undefined, [merged]);
    return plan.secretNamespaces.flatMap((namespace) => renderRole(holder, name, namespace, [merged]));
  });
}

function holderOf(plan: DeploymentPlan, { account, part }: Grantee): RoleHolder {
  return { account, labels: labelsOf(plan, part) };
}
