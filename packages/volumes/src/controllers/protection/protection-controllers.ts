/**
 * The protection controllers: a claim stays while a scheduled pod uses it, a volume while it is bound.
 * Source: docs/behaviour/controllers.md Part D.
 */
import {
  ComponentScope,
  type KubeEnv,
  resources,
  type SharedInformers,
  sharedInformers,
  trackWrites,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { podsByClaim } from "../pods-by-claim.ts";
import { startClaimProtection } from "./claim-protection.ts";
import { startVolumeProtection } from "./volume-protection.ts";

/** The seams of the controllers. */
export type ProtectionEnv = KubeEnv & { readonly informers?: SharedInformers };

/** Starts both controllers; they work in the background until they are stopped. */
export function startProtectionControllers(given: ProtectionEnv): Component {
  const scope = new ComponentScope((error) => given.logger.error("protection controllers failed", { error }));
  const informers = given.informers ?? sharedInformers(given);
  if (given.informers === undefined) scope.own(informers);
  const env = trackWrites(given, informers);
  const claims = informers.of(resources.persistentVolumeClaims);
  const volumes = informers.of(resources.persistentVolumes);
  const pods = informers.of(resources.pods, { indexes: podsByClaim });
  scope.own(startClaimProtection(env, { claims, pods }), startVolumeProtection(env, volumes));
  return scope;
}
