/**
 * Brings VolumeSnapshots together with their VolumeSnapshotContents.
 *
 * Invariants
 *  - Names follow from uids, so a content made by a pass that died is found, never made twice.
 *  - Several snapshots are worked on at the same time: each has a content of its own, and no two passes run for one.
 *  - A snapshot that was taken once is never taken again under the same name.
 */
import {
  type Controller,
  type ControllerOptions,
  forResource,
  isDeleting,
  keyOf,
  type Source,
  type Stored,
  source,
  startController,
  watches,
} from "@longshore/kube";
import type { VolumeSnapshotContent } from "@longshore/storage";
import { isPreProvisioned } from "./binding.ts";
import { observeSnapshot } from "./observe-snapshot.ts";
import { saysMore } from "./says-more.ts";
import { isPendingClaim, type SnapshotCaches, sourceClaimKey, sourceSnapshotKey } from "./snapshot-caches.ts";
import type { MeasuredState, SnapshotMetrics } from "./snapshot-metrics.ts";
import { decideSnapshot } from "./snapshots/decide-snapshot.ts";
import { type SnapshotContext, snapshotActions } from "./snapshots/snapshot-actions.ts";
import type { SnapshotFacts } from "./snapshots/snapshot-goal.ts";
import type { ObservedSnapshot, SnapshotStep } from "./snapshots/snapshot-step.ts";

/**
 * Starts the controller of snapshots, by `namespace/name`; the caches may still be filling. Its first pass begins once they
 * have synced. It calls no driver: it makes contents, which the snapshotter of the driver serves.
 */
export function startSnapshots(
  context: SnapshotContext & { readonly metrics: SnapshotMetrics },
  caches: SnapshotCaches,
  queue: Pick<ControllerOptions<never, never>, "workers" | "backoff" | "resyncMs">,
): Controller {
  const { snapshots } = caches;
  const ofContent = ({ metadata }: Stored<VolumeSnapshotContent>) =>
    snapshots.byIndex("byContent", metadata.name).map(keyOf);
  return startController<ObservedSnapshot, SnapshotStep>(context.env, {
    ...queue,
    name: "snapshot-controller-snapshot",
    sources: [
      forResource(snapshots, { changed: saysMore, deleted: "forget" }),
      watches(caches.contents, ofContent),
      classChanges(caches),
      claimChanges(caches),
    ],
    caches: [caches.classes, caches.claims, ...(caches.nodes === undefined ? [] : [caches.nodes])],
    observe: (key) => observed(context, caches, key),
    decide: decideSnapshot,
    actions: snapshotActions(context),
  });
}

function observed(
  { metrics }: { readonly metrics: SnapshotMetrics },
  caches: SnapshotCaches,
  key: string,
): ObservedSnapshot | undefined {
  const facts = observeSnapshot(caches, key);
  if (facts === undefined) return undefined;
  metrics.look(measured(facts));
  const claimKey = sourceClaimKey(facts.snapshot);
  const claim = claimKey === undefined ? undefined : caches.claims.get(claimKey);
  return { key, facts, claim, work: {}, failure: undefined };
}

function measured({ snapshot, content, snapshotClass, isRestoring }: SnapshotFacts): MeasuredState {
  const { status } = snapshot;
  return {
    kind: "Snapshot",
    uid: snapshot.metadata.uid,
    driver: content?.spec.driver ?? snapshotClass?.driver,
    isPreProvisioned: isPreProvisioned(snapshot),
    isCut: status?.creationTime !== undefined,
    isReady: status?.readyToUse === true,
    isGoing: isDeleting(snapshot) && !isRestoring,
  };
}

/** A class that has come may be the one that snapshots wait for. */
function classChanges({ snapshots, classes }: SnapshotCaches): Source {
  return source((wake) => {
    const wakeFor = (className: string) => {
      for (const snapshot of snapshots.list()) {
        const { volumeSnapshotClassName: wanted = className } = snapshot.spec;
        if (wanted === className && snapshot.status?.readyToUse !== true) wake(keyOf(snapshot));
      }
    };
    return classes.onChange({
      added({ metadata }, { initial }) {
        if (!initial) wakeFor(metadata.name);
      },
      updated: (_, { metadata }) => wakeFor(metadata.name),
    });
  });
}

/** A claim that was bound can have snapshots; one that was let go may be needed; one that was restored sets free. */
function claimChanges({ snapshots, claims }: SnapshotCaches): Source {
  return source((wake) =>
    claims.onChange({
      updated(before, claim) {
        const restored = sourceSnapshotKey(claim);
        if (restored !== undefined && isPendingClaim(before) && !isPendingClaim(claim)) wake(restored);
        const isSame =
          before.status?.phase === claim.status?.phase &&
          before.metadata.finalizers?.length === claim.metadata.finalizers?.length;
        if (isSame) return;
        for (const snapshot of snapshots.byIndex("bySourceClaim", keyOf(claim))) wake(keyOf(snapshot));
      },
      deleted(claim) {
        const restored = sourceSnapshotKey(claim);
        if (restored !== undefined) wake(restored);
      },
    }),
  );
}
