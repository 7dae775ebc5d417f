/** Which changes of objects wake which keys of the snapshot controller. */
import { type KubeEnv, type KubeObject, keyOf, type Stored, type WorkQueue } from "@longshore/kube";
import {
  snapshotClaimFinalizer,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { resync } from "../common/caches.ts";
import type { SidecarScope } from "../common/sidecar.ts";
import { contentNameOf } from "./binding.ts";
import { contentNameOfGroup } from "./group-binding.ts";
import {
  driverHandleKey,
  type GroupCaches,
  groupKeyOf,
  isPendingClaim,
  type SnapshotCaches,
  sourceClaimKey,
  sourceSnapshotKey,
} from "./snapshot-caches.ts";
import type { SnapshotMetrics } from "./snapshot-metrics.ts";

/** The queues over single snapshots. */
export interface SnapshotQueues {
  readonly snapshotQueue: WorkQueue;
  readonly contentQueue: WorkQueue;
  readonly claimQueue: WorkQueue;
}

/** The queues over group snapshots, besides. */
export interface GroupQueues extends SnapshotQueues {
  readonly groupQueue: WorkQueue;
  readonly groupContentQueue: WorkQueue;
}

interface Waking {
  readonly env: KubeEnv;
  readonly caches: SnapshotCaches;
  readonly scope: SidecarScope;
  readonly metrics: SnapshotMetrics;
  readonly resyncMs: number;
}

/** Wakes snapshots, contents and claims. */
export function wakeForSnapshots(waking: Waking, queues: SnapshotQueues): void {
  const { env, caches, scope, metrics, resyncMs } = waking;
  const { snapshots, contents } = caches;
  const { snapshotQueue, contentQueue } = queues;
  resync(env, scope, snapshots, resyncMs, (snapshot) => snapshotQueue.add(keyOf(snapshot), "background"));
  resync(env, scope, contents, resyncMs, ({ metadata }) => contentQueue.add(metadata.name, "background"));
  const wakeSnapshotsOf = ({ metadata }: Stored<VolumeSnapshotContent>) => {
    for (const snapshot of snapshots.byIndex("byContent", metadata.name)) snapshotQueue.add(keyOf(snapshot));
  };
  scope.onStop(
    snapshots.onChange({
      added: (snapshot, { initial }) => snapshotQueue.add(keyOf(snapshot), initial ? "background" : "fresh"),
      updated: (before, snapshot) => {
        if (saysMore(before, snapshot)) snapshotQueue.add(keyOf(snapshot));
        if (snapshot.status?.readyToUse === true) wakeSourceClaim(queues, snapshot);
      },
      deleted: (snapshot) => {
        metrics.gone("Snapshot", snapshot.metadata.uid);
        snapshotQueue.forget(keyOf(snapshot));
        wakeSourceClaim(queues, snapshot);
        const contentName = contentNameOf(snapshot);
        if (contentName !== undefined) contentQueue.add(contentName);
      },
    }),
    contents.onChange({
      added: (content, { initial }) => {
        contentQueue.add(content.metadata.name, initial ? "background" : "fresh");
        wakeSnapshotsOf(content);
      },
      updated: (_, content) => {
        contentQueue.add(content.metadata.name);
        wakeSnapshotsOf(content);
      },
      deleted: (content) => {
        contentQueue.forget(content.metadata.name);
        wakeSnapshotsOf(content);
      },
    }),
    wakeForClasses(caches, snapshotQueue),
    wakeForClaims(caches, queues),
  );
}

type Subject = KubeObject & { spec: object; status?: { readyToUse?: boolean; error?: object | null } };

/**
 * Whether a changed snapshot is looked at again. What the controller itself writes of failures must not wake it, or
 * one that fails each time in other words would be retried without back-off.
 */
export function saysMore(before: Subject, after: Subject): boolean {
  return withoutFailure(before) !== withoutFailure(after);
}

function withoutFailure({ metadata, spec, status }: Subject): string {
  const { resourceVersion: _, managedFields: __, ...lasting } = metadata ?? {};
  const { error: ___, readyToUse, ...known } = status ?? {};
  return JSON.stringify([lasting, spec, known, readyToUse === true]);
}

function wakeSourceClaim({ claimQueue }: SnapshotQueues, snapshot: VolumeSnapshot): void {
  const key = sourceClaimKey(snapshot);
  if (key !== undefined) claimQueue.add(key);
}

/** A class that has come may be the one that snapshots wait for. */
function wakeForClasses({ snapshots, classes }: SnapshotCaches, snapshotQueue: WorkQueue): () => void {
  const wake = (className: string) => {
    for (const snapshot of snapshots.list()) {
      const { volumeSnapshotClassName: wanted = className } = snapshot.spec;
      if (wanted === className && snapshot.status?.readyToUse !== true) snapshotQueue.add(keyOf(snapshot));
    }
  };
  return classes.onChange({
    added: ({ metadata }, { initial }) => {
      if (!initial) wake(metadata.name);
    },
    updated: (_, { metadata }) => wake(metadata.name),
  });
}

function wakeForClaims({ snapshots, claims }: SnapshotCaches, queues: SnapshotQueues): () => void {
  const { snapshotQueue, claimQueue } = queues;
  return claims.onChange({
    added: (claim) => {
      if (claim.metadata.finalizers?.includes(snapshotClaimFinalizer))
        claimQueue.add(keyOf(claim), "background");
    },
    updated: (before, claim) => {
      const restored = sourceSnapshotKey(claim);
      if (restored !== undefined && isPendingClaim(before) && !isPendingClaim(claim)) {
        snapshotQueue.add(restored);
      }
      const isSame =
        before.status?.phase === claim.status?.phase &&
        before.metadata.finalizers?.length === claim.metadata.finalizers?.length;
      if (isSame) return;
      // It was bound, so that snapshots of it can be made; or let go, which one of them may object to.
      for (const snapshot of snapshots.byIndex("bySourceClaim", keyOf(claim)))
        snapshotQueue.add(keyOf(snapshot));
    },
    deleted: (claim) => {
      const restored = sourceSnapshotKey(claim);
      if (restored !== undefined) snapshotQueue.add(restored);
    },
  });
}

/** Wakes groups and their contents, and snapshots for the sake of their groups. */
export function wakeForGroups(waking: Waking, groupCaches: GroupCaches, queues: GroupQueues): void {
  const { env, caches, scope, metrics, resyncMs } = waking;
  const { groups, contents, classes } = groupCaches;
  const { snapshotQueue, groupQueue, groupContentQueue } = queues;
  resync(env, scope, groups, resyncMs, (group) => groupQueue.add(keyOf(group), "background"));
  resync(env, scope, contents, resyncMs, ({ metadata }) =>
    groupContentQueue.add(metadata.name, "background"),
  );
  const wakeGroupsOf = (content: Stored<VolumeGroupSnapshotContent>) => {
    for (const group of groups.byIndex("byContent", content.metadata.name)) groupQueue.add(keyOf(group));
    // Snapshots whose driver says that they belong to it learn its name.
    const handle = driverHandleKey(content.spec.driver, content.status?.volumeGroupSnapshotHandle);
    for (const member of handle === undefined ? [] : caches.contents.byIndex("byGroupHandle", handle)) {
      for (const snapshot of caches.snapshots.byIndex("byContent", member.metadata.name))
        snapshotQueue.add(keyOf(snapshot));
    }
  };
  const wakeGroupOf = (snapshot: VolumeSnapshot) => {
    const key = groupKeyOf(snapshot);
    if (key !== undefined) groupQueue.add(key);
  };
  scope.onStop(
    groups.onChange({
      added: (group, { initial }) => groupQueue.add(keyOf(group), initial ? "background" : "fresh"),
      updated: (before, group) => {
        if (saysMore(before, group)) groupQueue.add(keyOf(group));
      },
      deleted: (group) => {
        metrics.gone("GroupSnapshot", group.metadata.uid);
        groupQueue.forget(keyOf(group));
        groupContentQueue.add(contentNameOfGroup(group));
        for (const member of caches.snapshots.byIndex("byGroup", keyOf(group)))
          snapshotQueue.add(keyOf(member));
      },
    }),
    contents.onChange({
      added: (content, { initial }) => {
        groupContentQueue.add(content.metadata.name, initial ? "background" : "fresh");
        wakeGroupsOf(content);
      },
      updated: (_, content) => {
        groupContentQueue.add(content.metadata.name);
        wakeGroupsOf(content);
      },
      deleted: (content) => {
        groupContentQueue.forget(content.metadata.name);
        wakeGroupsOf(content);
      },
    }),
    classes.onChange({
      added: (_, { initial }) => {
        if (initial) return;
        for (const group of groups.list())
          if (group.status?.readyToUse !== true) groupQueue.add(keyOf(group));
      },
    }),
    caches.snapshots.onChange({ added: wakeGroupOf, updated: (_, snapshot) => wakeGroupOf(snapshot) }),
    caches.claims.onChange({
      updated: (before, claim) => {
        const restored = sourceSnapshotKey(claim);
        const snapshot = restored === undefined ? undefined : caches.snapshots.get(restored);
        if (snapshot !== undefined && isPendingClaim(before)) wakeGroupOf(snapshot);
      },
      deleted: (claim) => {
        const restored = sourceSnapshotKey(claim);
        const snapshot = restored === undefined ? undefined : caches.snapshots.get(restored);
        if (snapshot !== undefined) wakeGroupOf(snapshot);
      },
    }),
  );
}
