/** The objects of a distribution's controller, in the order in which they can be applied. Pure. */
import type { KubeObject } from "@longshore/kube";
import { componentLabel, managedByLabel, managedByLongshore } from "../objects/labels.ts";
import { amounts, apart, confined, podIdentity, probe, unprivilegedPod } from "../objects/pod-parts.ts";
import type { Rendered } from "../objects/rendered.ts";
import { type RoleHolder, renderRoles } from "../objects/roles.ts";
import type { AccessRule } from "../rules/rule.ts";
import type { DistributionPlan } from "./distribution-plan.ts";

const port = 8080;
/** As those of sidecars, which hold more. */
export const distributionResources = {
  requests: { cpu: "10m", memory: "64Mi" },
  limits: { memory: "384Mi" },
} as const;

/** Namespace, account, rights, Deployment, and a disruption budget where there is more than one replica. */
export function renderDistribution(plan: DistributionPlan): readonly Rendered[] {
  return [
    ...(plan.createNamespace ? [{ object: namespaceOf(plan) }] : []),
    { object: accountOf(plan) },
    ...renderDistributionAccess(plan),
    { object: deploymentOf(plan) },
    ...(plan.replicas > 1 ? [{ object: budgetOf(plan) }] : []),
  ];
}

/** Roles and bindings; with other rules than the plan's for a test that takes one away. */
export function renderDistributionAccess(
  plan: DistributionPlan,
  rules: readonly AccessRule[] = plan.rules,
): readonly Rendered[] {
  const holder: RoleHolder = {
    account: { name: plan.name, namespace: plan.namespace },
    labels: labelsOf(plan),
  };
  return renderRoles(holder, plan.name, rules);
}

function labelsOf({ name, controller }: DistributionPlan): Record<string, string> {
  return {
    "app.kubernetes.io/name": name,
    [managedByLabel]: managedByLongshore,
    [componentLabel]: controller,
  };
}

/** What selects the pods: it never changes. */
function selectorOf({ name, controller }: DistributionPlan): Record<string, string> {
  return { "app.kubernetes.io/name": name, [componentLabel]: controller };
}

function metadataOf(plan: DistributionPlan) {
  return { name: plan.name, namespace: plan.namespace, labels: labelsOf(plan) };
}

function namespaceOf(plan: DistributionPlan): KubeObject {
  // Controllers of several kinds share it, and none of them needs anything of its machine.
  const labels = { [managedByLabel]: managedByLongshore, "pod-security.kubernetes.io/enforce": "restricted" };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name: plan.namespace, labels } } as KubeObject;
}

function accountOf(plan: DistributionPlan): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: metadataOf(plan),
    automountServiceAccountToken: false,
  } as KubeObject;
}

function deploymentOf(plan: DistributionPlan): KubeObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadataOf(plan),
    spec: {
      replicas: plan.replicas,
      selector: { matchLabels: selectorOf(plan) },
      template: {
        metadata: { labels: labelsOf(plan) },
        spec: {
          serviceAccountName: plan.name,
          automountServiceAccountToken: true,
          priorityClassName: "system-cluster-critical",
          securityContext: unprivilegedPod,
          affinity: apart(selectorOf(plan)),
          containers: [
            {
              name: plan.controller,
              image: plan.image,
              args: [...fixedArgs(plan), ...plan.settings],
              env: podIdentity,
              ports: [{ name: "http", containerPort: port }],
              livenessProbe: probe("/healthz/leader-election", "http"),
              resources: amounts(distributionResources),
              securityContext: confined,
            },
          ],
        },
      },
    },
  } as KubeObject;
}

/** The command line without the settings; metrics are at `/metrics` of the same port. */
export function fixedArgs({ controller, fixedSettings }: DistributionPlan): readonly string[] {
  return [
    "run",
    controller,
    "--leader-election",
    "--leader-election-namespace=$(POD_NAMESPACE)",
    `--http-endpoint=:${port}`,
    ...fixedSettings,
  ];
}

function budgetOf(plan: DistributionPlan): KubeObject {
  return {
    // policy/v1 came with 1.21.
    apiVersion: plan.kubernetesMinor >= 21 ? "policy/v1" : "policy/v1beta1",
    kind: "PodDisruptionBudget",
    metadata: metadataOf(plan),
    spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(plan) } },
  } as KubeObject;
}
