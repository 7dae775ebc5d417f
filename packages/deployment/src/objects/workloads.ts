/** The workloads of a deployment (docs/behaviour/sidecars.md 9). */
import type { KubeObject } from "@longshore/kube";
import type { DeploymentPlan } from "../deployment-plan.ts";
import { type DeployedPart, labelsOf, selectorOf } from "./labels.ts";
import { controllerPod, nodePod, snapshotControllerPod } from "./pods.ts";
import type { Rendered } from "./rendered.ts";

/** The node part: on every node, one node's volumes. */
export function renderNodes(plan: DeploymentPlan): Rendered {
  return workload(plan, "node", "DaemonSet", {
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
    template: nodePod(plan),
  });
}

/** The controller part; none where nothing runs in it, or where the nodes' pods hold it. */
export function renderController(plan: DeploymentPlan): readonly Rendered[] {
  if (!hasController(plan)) return [];
  const template = controllerPod(plan);
  if (plan.controller === "statefulset") {
    // At most one at any time: an unreachable node keeps the next from starting.
    const spec = { replicas: 1, serviceName: `${plan.base}-controller`, template };
    return [workload(plan, "controller", "StatefulSet", spec)];
  }
  return [
    workload(plan, "controller", "Deployment", { replicas: plan.replicas, template }),
    ...(plan.replicas > 1 ? [disruptionBudget(plan, "controller", `${plan.base}-controller`)] : []),
  ];
}

/** Whether there is a controller part of its own. */
export function hasController({ controller, controllerSidecars }: DeploymentPlan): boolean {
  return controller !== "daemonset" && controllerSidecars.length > 0;
}

/** The snapshot controller, which is one per cluster. */
export function renderSnapshotController(plan: DeploymentPlan): readonly Rendered[] {
  if (!plan.snapshotController) return [];
  const spec = { replicas: 2, template: snapshotControllerPod(plan) };
  return [
    workload(plan, "snapshot-controller", "Deployment", spec),
    disruptionBudget(plan, "snapshot-controller", "snapshot-controller"),
  ];
}

function workload(
  plan: DeploymentPlan,
  part: DeployedPart,
  kind: "StatefulSet" | "Deployment" | "DaemonSet",
  spec: Readonly<Record<string, unknown>>,
): Rendered {
  const { replicas, ...rest } = spec;
  return {
    object: {
      apiVersion: "apps/v1",
      kind,
      metadata: metadataOf(plan, part),
      spec: {
        ...(replicas === undefined ? {} : { replicas }),
        selector: { matchLabels: selectorOf(plan, part) },
        ...rest,
      },
    } as KubeObject,
  };
}

/** One of several replicas may be evicted at a time: the others take over at once. */
function disruptionBudget(plan: DeploymentPlan, part: DeployedPart, name: string): Rendered {
  return {
    object: {
      // policy/v1 came with 1.21.
      apiVersion: plan.kubernetesMinor >= 21 ? "policy/v1" : "policy/v1beta1",
      kind: "PodDisruptionBudget",
      metadata: { ...metadataOf(plan, part), name },
      spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(plan, part) } },
    } as KubeObject,
  };
}

function metadataOf(plan: DeploymentPlan, part: DeployedPart) {
  const name = part === "snapshot-controller" ? part : `${plan.base}-${part}`;
  return { name, namespace: plan.namespace, labels: labelsOf(plan, part) };
}
