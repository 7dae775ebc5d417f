/** Brings VolumeGroupSnapshots together with their contents, and makes the objects of their members. */
import {
  type Controller,
  type ControllerOptions,
  forResource,
  isDeleting,
  keyOf,
  type PersistentVolumeClaim,
  type Source,
  type Stored,
  source,
  startController,
  watches,
} from "@longshore/kube";
import type { VolumeGroupSnapshotContent, VolumeSnapshot } from "@longshore/storage";
import { decideGroup } from "./groups/decide-group.ts";
import { type GroupContext, groupActions } from "./groups/group-actions.ts";
import type { GroupFacts } from "./groups/group-goal.ts";
import type { GroupStep, ObservedGroup } from "./groups/group-step.ts";
import { observeGroup } from "./observe-snapshot.ts";
import { saysMore } from "./says-more.ts";
import {
  type GroupCaches,
  groupKeyOf,
  isPendingClaim,
  type SnapshotCaches,
  sourceSnapshotKey,
} from "./snapshot-caches.ts";
import type { MeasuredState, SnapshotMetrics } from "./snapshot-metrics.ts";

/**
 * Starts the controller of group snapshots, by `namespace/name`; the caches may still be filling. Its first pass begins once
 * they have synced. What is wrong with a group is stored in its status and reported as an event.
 */
export function startGroups(
  context: GroupContext & { readonly metrics: SnapshotMetrics },
  caches: SnapshotCaches & { readonly groups: GroupCaches },
  queue: Pick<ControllerOptions<never, never>, "workers" | "backoff" | "resyncMs">,
): Controller {
  const { groups, contents, volumes } = caches.groups;
  const ofContent = ({ metadata }: Stored<VolumeGroupSnapshotContent>) =>
    groups.byIndex("byContent", metadata.name).map(keyOf);
  return startController<ObservedGroup, GroupStep>(context.env, {
    ...queue,
    name: "snapshot-controller-group-snapshot",
    sources: [
      forResource(groups, { changed: saysMore, deleted: "forget" }),
      watches(contents, ofContent),
      classAdditions(caches.groups),
      memberChanges(caches),
    ],
    caches: [caches.snapshots, caches.contents, caches.claims, caches.groups.classes, volumes],
    observe(key) {
      const facts = observeGroup(caches, key);
      if (facts === undefined) return undefined;
      context.metrics.look(measured(facts));
      return { key, facts, work: {}, failure: undefined };
    },
    decide: decideGroup,
    actions: groupActions(context),
  });
}

function measured({ group, content, groupClass, restoring }: GroupFacts): MeasuredState {
  const { status, spec } = group;
  return {
    kind: "GroupSnapshot",
    uid: group.metadata.uid,
    driver: content?.spec.driver ?? groupClass?.driver,
    isPreProvisioned: spec.source.volumeGroupSnapshotContentName !== undefined,
    isCut: status?.creationTime !== undefined,
    isReady: status?.readyToUse === true,
    isGoing: isDeleting(group) && restoring === undefined,
  };
}

/** A class that has come may be the one that groups wait for. */
function classAdditions({ groups, classes }: GroupCaches): Source {
  return source((wake) =>
    classes.onChange({
      added(_, { initial }) {
        if (initial) return;
        for (const group of groups.list()) if (group.status?.readyToUse !== true) wake(keyOf(group));
      },
    }),
  );
}

/** Members as they are made and change, and claims that are restored from them. */
function memberChanges({ snapshots, claims }: SnapshotCaches): Source {
  return source((wake) => {
    const wakeFor = (snapshot: VolumeSnapshot | undefined) => {
      const key = snapshot === undefined ? undefined : groupKeyOf(snapshot);
      if (key !== undefined) wake(key);
    };
    const wakeForSource = (claim: PersistentVolumeClaim) => {
      const restored = sourceSnapshotKey(claim);
      if (restored !== undefined) wakeFor(snapshots.get(restored));
    };
    const ends = [
      snapshots.onChange({ added: wakeFor, updated: (_, snapshot) => wakeFor(snapshot) }),
      claims.onChange({
        updated(before, claim) {
          if (isPendingClaim(before)) wakeForSource(claim);
        },
        deleted: wakeForSource,
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  });
}
