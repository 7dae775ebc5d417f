/**
 * The provisioning controller: makes the volumes of claims with in-tree plugins, and removes what was made for a claim
 * that is being deleted. Its keys are those of claims, and the claims controller wakes them. Source:
 * docs/behaviour/controllers.md B6.
 *
 * Several volumes at a time: a claim runs in one pass at a time, and its disk has a name of its own.
 */
import { type Controller, startController } from "@longshore/kube";
import { decideProvisioningStep, type ProvisioningStep } from "./decide-provisioning-step.ts";
import { observeProvisioning } from "./observe-provisioning.ts";
import { operationsAtOnce } from "./operation-attempts.ts";
import type { PersistentVolumeContext } from "./persistent-volume-context.ts";
import { provisioningActions } from "./provisioning-actions.ts";
import type { ProvisioningObservation } from "./provisioning-observation.ts";

/** Starts the controller; it works in the background until it is stopped. */
export function startProvisioningController(context: PersistentVolumeContext): Controller {
  return startController<ProvisioningObservation, ProvisioningStep>(context.env, {
    name: "volume_provisioning",
    workers: operationsAtOnce,
    sources: [],
    caches: [context.caches.classes],
    // Five attempts to store and five to delete, with a pause after each, and what is around them.
    stepsMax: 40,
    observe: (key, pass) => observeProvisioning(context, key, pass),
    decide: decideProvisioningStep,
    actions: provisioningActions(context),
  });
}
