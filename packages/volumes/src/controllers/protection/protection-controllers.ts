/**
 * The protection controllers: a claim stays while a scheduled pod uses it, a volume while it is bound, a
 * VolumeAttributesClass while a claim or volume names it. Source: docs/behaviour/controllers.md Part D.
 */
import { type ControllerEnv, controllerScope, resources, untilServed } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { podsByClaim } from "../pods-by-claim.ts";
import {
  claimsByAttributesClass,
  startAttributesClassProtection,
  volumesByAttributesClass,
} from "./attributes-class-protection.ts";
import { startClaimProtection } from "./claim-protection.ts";
import { startVolumeProtection } from "./volume-protection.ts";

/** The seams of the controllers. */
export type ProtectionEnv = ControllerEnv;

/** Starts the controllers; they work in the background until they are stopped. */
export function startProtectionControllers(given: ProtectionEnv): Component {
  const { scope, env } = controllerScope(given, "protection controllers");
  const claims = env.informers.of(resources.persistentVolumeClaims, { indexes: claimsByAttributesClass });
  const volumes = env.informers.of(resources.persistentVolumes, { indexes: volumesByAttributesClass });
  const pods = env.informers.of(resources.pods, { indexes: podsByClaim });
  scope.own(startClaimProtection(env, { claims, pods }), startVolumeProtection(env, volumes));
  scope.spawn(async (signal) => {
    // They came with Kubernetes 1.29.
    if (!(await untilServed(env, resources.volumeAttributesClasses, signal))) return;
    const attributesClasses = env.informers.of(resources.volumeAttributesClasses);
    scope.own(startAttributesClassProtection(env, { attributesClasses, claims, volumes }));
  });
  return scope;
}
