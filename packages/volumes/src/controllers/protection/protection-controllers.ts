/**
 * The protection controllers: a claim stays while a scheduled pod uses it, a volume while it is bound.
 * Source: docs/behaviour/controllers.md Part D.
 */
import { type ControllerEnv, controllerScope, resources } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { podsByClaim } from "../pods-by-claim.ts";
import { startClaimProtection } from "./claim-protection.ts";
import { startVolumeProtection } from "./volume-protection.ts";

/** The seams of the controllers. */
export type ProtectionEnv = ControllerEnv;

/** Starts both controllers; they work in the background until they are stopped. */
export function startProtectionControllers(given: ProtectionEnv): Component {
  const { scope, env } = controllerScope(given, "protection controllers");
  const claims = env.informers.of(resources.persistentVolumeClaims);
  const volumes = env.informers.of(resources.persistentVolumes);
  const pods = env.informers.of(resources.pods, { indexes: podsByClaim });
  scope.own(startClaimProtection(env, { claims, pods }), startVolumeProtection(env, volumes));
  return scope;
}
