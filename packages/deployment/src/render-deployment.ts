/** All objects of a deployment, in the order in which they can be applied: each comes after what it refers to. */
import type { DeploymentPlan } from "./deployment-plan.ts";
import { renderAccess, renderAccount } from "./objects/access-objects.ts";
import {
  renderClasses,
  renderCsiDriver,
  renderNamespace,
  renderSnapshotClasses,
} from "./objects/driver-objects.ts";
import type { Rendered } from "./objects/rendered.ts";
import {
  hasController,
  renderController,
  renderNodes,
  renderSnapshotController,
} from "./objects/workloads.ts";

/** The objects by the step of an upgrade that brings them. */
export interface RenderedDeployment {
  /** Namespace, accounts and rights, the CSIDriver and the classes. */
  readonly shared: readonly Rendered[];
  /** The snapshot controller, if it is wanted. */
  readonly snapshotController: readonly Rendered[];
  readonly node: Rendered;
  /** The controller part; empty where the nodes' pods hold it. */
  readonly controller: readonly Rendered[];
}

/** Renders the objects of a plan; the same plan yields the same objects in the same order. */
export function renderDeployment(plan: DeploymentPlan): RenderedDeployment {
  return {
    shared: [
      ...renderNamespace(plan),
      ...(hasController(plan) ? [renderAccount(plan, "controller")] : []),
      renderAccount(plan, "node"),
      ...(plan.snapshotController ? [renderAccount(plan, "snapshot-controller")] : []),
      ...renderAccess(plan),
      renderCsiDriver(plan),
      ...renderClasses(plan),
      ...renderSnapshotClasses(plan),
    ],
    snapshotController: renderSnapshotController(plan),
    node: renderNodes(plan),
    controller: renderController(plan),
  };
}

/**
 * The objects one after the other: the node part before the controller, which relies on what nodes say
 * (docs/behaviour/sidecars.md 9).
 */
export function allObjects({
  shared,
  snapshotController,
  node,
  controller,
}: RenderedDeployment): readonly Rendered[] {
  return [...shared, ...snapshotController, node, ...controller];
}
