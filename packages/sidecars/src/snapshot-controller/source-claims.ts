/** Removes the finalizer from source claims once their snapshots are finished. */
import {
  type Actions,
  type Controller,
  type ControllerOptions,
  hasFinalizer,
  isNotFound,
  type KubeEnv,
  keyOf,
  resources,
  type Source,
  settled,
  source,
  startController,
  withoutFinalizer,
} from "@longshore/kube";
import { snapshotClaimFinalizer, type VolumeSnapshot } from "@longshore/storage";
import { decideSourceClaim, type ObservedSourceClaim, type SourceClaimStep } from "./decide-source-claim.ts";
import { type SnapshotCaches, sourceClaimKey } from "./snapshot-caches.ts";

/**
 * Starts the controller of source claims, by `namespace/name`. It removes the finalizer and never adds it: the passes of
 * snapshots do. It reads the index `bySourceClaim` of the snapshots.
 */
export function startSourceClaims(
  env: KubeEnv,
  caches: SnapshotCaches,
  queue: Pick<ControllerOptions<never, never>, "workers" | "backoff">,
): Controller {
  const { claims, snapshots } = caches;
  return startController<ObservedSourceClaim, SourceClaimStep>(env, {
    ...queue,
    name: "snapshot-controller-claim",
    sources: [sourceClaims(caches)],
    caches: [claims, snapshots],
    observe(key) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const made = snapshots.byIndex("bySourceClaim", key);
      return { claim, isInUse: made.some(({ status }) => status?.readyToUse !== true) };
    },
    decide: decideSourceClaim,
    actions: sourceClaimActions(env),
  });
}

function sourceClaimActions({ kube }: KubeEnv): Actions<ObservedSourceClaim, SourceClaimStep> {
  return {
    settle: () => settled,
    async removeFinalizer(_, { claim }, { signal }) {
      // Written whole: the reference's rights have no patch of claims.
      const released = withoutFinalizer(claim, snapshotClaimFinalizer);
      try {
        await kube.update(resources.persistentVolumeClaims, released, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return settled;
    },
  };
}

/** Claims that are held when they come into sight, and those of snapshots that became ready or are gone. */
function sourceClaims({ claims, snapshots }: SnapshotCaches): Source {
  return source((wake) => {
    const wakeFor = (snapshot: VolumeSnapshot) => {
      const key = sourceClaimKey(snapshot);
      if (key !== undefined) wake(key);
    };
    const ends = [
      claims.onChange({
        added(claim) {
          if (hasFinalizer(claim, snapshotClaimFinalizer)) wake(keyOf(claim), "background");
        },
      }),
      snapshots.onChange({
        updated(_, snapshot) {
          if (snapshot.status?.readyToUse === true) wakeFor(snapshot);
        },
        deleted: wakeFor,
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  });
}
