/** The claim protection: a claim stays while a scheduled pod uses it. Source: docs/behaviour/controllers.md Part D. */
import {
  type Actions,
  forResource,
  type Informer,
  isDeleting,
  type KubeEnv,
  keyOf,
  type PersistentVolumeClaim,
  type Pod,
  refOf,
  resources,
  type Source,
  settled,
  startController,
  watches,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { hasPodStopped } from "../attach-detach/build-pod-volume.ts";
import { claimKeysOf, podsByClaimIndex } from "../pods-by-claim.ts";
import { isUsed } from "./claim-users.ts";
import {
  type ClaimProtectionObservation,
  type ClaimProtectionStep,
  decideClaimProtection,
  pvcProtectionFinalizer,
} from "./decide-claim-protection.ts";

/** Time for the cache to show a pod that a live list has shown, in milliseconds. */
const cacheLagMs = 5_000;

/** The caches of the claim protection; that of pods has the index of `pods-by-claim.ts`. */
export interface ClaimProtectionCaches {
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly pods: Informer<Pod>;
}

/** Starts the controller; it works in the background until it is stopped. */
export function startClaimProtection(env: KubeEnv, { claims, pods }: ClaimProtectionCaches): Component {
  return startController<ClaimProtectionObservation, ClaimProtectionStep>(env, {
    name: "pvcprotection",
    // A pass over a claim that is deleted may list all pods of its namespace.
    workers: 3,
    sources: [forResource(claims), podsThatEnd(pods, claims)],
    observe(key) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      return { claim, isUsed: isUsed(claim, pods.byIndex(podsByClaimIndex, keyOf(claim))) };
    },
    decide: decideClaimProtection,
    actions: claimProtectionActions(env),
  });
}

/** A pod that ends or goes may have been the last that kept a deleted claim; one that begins keeps it nevertheless. */
function podsThatEnd(pods: Informer<Pod>, claims: Informer<PersistentVolumeClaim>): Source {
  const deletingClaimsOf = (pod: Pod) => claimKeysOf(pod).filter((key) => isDeleting(claims.get(key) ?? {}));
  return watches(pods, (pod) => (hasPodStopped(pod) ? deletingClaimsOf(pod) : []), {
    deleted: deletingClaimsOf,
  });
}

type ClaimProtectionActions = Actions<ClaimProtectionObservation, ClaimProtectionStep>;

function claimProtectionActions(env: KubeEnv): ClaimProtectionActions {
  return {
    ...finalizerWrites(env),
    ...liveReads(env),
    waitForCache: () => ({ requeueAfterMs: cacheLagMs }),
    settle: () => settled,
  };
}

function finalizerWrites({
  kube,
}: KubeEnv): Pick<ClaimProtectionActions, "addFinalizer" | "removeFinalizer"> {
  const claims = resources.persistentVolumeClaims;
  return {
    async addFinalizer(_step, { claim }, { signal }) {
      await kube.update(claims, withFinalizer(claim, pvcProtectionFinalizer), { signal });
      return settled;
    },
    async removeFinalizer({ claim }, _observed, { signal }) {
      await kube.update(claims, withoutFinalizer(claim, pvcProtectionFinalizer), { signal });
      return settled;
    },
  };
}

function liveReads({ kube }: KubeEnv): Pick<ClaimProtectionActions, "listPods" | "readClaim"> {
  return {
    async listPods(_step, observed, { signal }) {
      const namespace = observed.claim.metadata.namespace ?? "";
      const { items } = await kube.list(resources.pods, { namespace, signal });
      return { observed: { ...observed, isUsedLive: isUsed(observed.claim, items) } };
    },
    async readClaim(_step, observed, { signal }) {
      const claim = await kube.get(resources.persistentVolumeClaims, refOf(observed.claim), { signal });
      return { observed: { ...observed, live: { claim } } };
    },
  };
}
