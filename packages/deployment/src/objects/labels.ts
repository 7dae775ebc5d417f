/** Labels of everything that is deployed for a driver. */
import type { DeploymentPlan } from "../deployment-plan.ts";

/** On every object: the driver that it is there for. By it an upgrade and a removal find what there is. */
export const driverLabel = "longshore.dev/driver";
/** Who made the object. */
export const managedByLabel = "app.kubernetes.io/managed-by";
/** The part of a deployment: `controller` or `node`. */
export const componentLabel = "app.kubernetes.io/component";
/** Value of {@link managedByLabel} of what we made ourselves. */
export const managedByLongshore = "longshore";
/** On the CSIDriver: what the deployment was asked for, as JSON, for the next upgrade. */
export const deployOptionsAnnotation = "longshore.dev/deploy-options";

/** Parts whose pods have different labels. */
export type DeployedPart = "controller" | "node" | "snapshot-controller";

/** Labels of an object. */
export function labelsOf(
  plan: Pick<DeploymentPlan, "driver" | "base">,
  part?: DeployedPart,
): Record<string, string> {
  return {
    "app.kubernetes.io/name": plan.base,
    [managedByLabel]: managedByLongshore,
    ...(part === undefined ? {} : { [componentLabel]: part }),
    [driverLabel]: plan.driver,
  };
}

/** What selects the pods of a part; it never changes, as workloads' selectors may not. */
export function selectorOf(plan: Pick<DeploymentPlan, "driver">, part: DeployedPart): Record<string, string> {
  return { [componentLabel]: part, [driverLabel]: plan.driver };
}
