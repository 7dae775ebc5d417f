/** What a pass over a snapshot or a group snapshot begins with: read from the caches, in one turn. */
import { hasFinalizer, isDeleting, keyOf, type PersistentVolume, type Stored } from "@longshore/kube";
import {
  snapshotClaimFinalizer,
  snapshotSourceProtectionFinalizer,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { contentNameOf, groupOf } from "./binding.ts";
import { contentNameOfGroup, memberNames, membersOf } from "./group-binding.ts";
import type { GroupFacts } from "./groups/group-goal.ts";
import type { ObservedMembers } from "./groups/group-members.ts";
import {
  driverHandleKey,
  type GroupCaches,
  groupKeyOf,
  isPendingClaim,
  type SnapshotCaches,
  sourceClaimKey,
} from "./snapshot-caches.ts";
import type { SnapshotFacts } from "./snapshots/snapshot-goal.ts";

/** Everything known of the snapshot of this key; undefined: there is none. */
export function observeSnapshot(caches: SnapshotCaches, key: string): SnapshotFacts | undefined {
  const snapshot = caches.snapshots.get(key);
  if (snapshot === undefined) return undefined;
  const contentName = contentNameOf(snapshot);
  const content = contentName === undefined ? undefined : caches.contents.get(contentName);
  const className = snapshot.spec.volumeSnapshotClassName;
  return {
    snapshot,
    content,
    snapshotClass: className === undefined ? undefined : caches.classes.get(className),
    isClaimFree: isClaimFree(caches, snapshot),
    isRestoring: isRestoring(caches, snapshot),
    group: groupAround(caches, snapshot),
    groupName: content === undefined ? undefined : groupNameFor(caches, content, snapshot),
  };
}

/** Everything known of the group snapshot of this key; undefined: there is none, or groups are not served. */
export function observeGroup(caches: SnapshotCaches, key: string): GroupFacts | undefined {
  const { groups: groupCaches } = caches;
  const group = groupCaches?.groups.get(key);
  if (groupCaches === undefined || group === undefined) return undefined;
  const className = group.spec.volumeGroupSnapshotClassName;
  const content = groupCaches.contents.get(contentNameOfGroup(group));
  const members = caches.snapshots
    .byIndex("byGroup", key)
    // One that names its group without a UID counts; one of an earlier group of the same name does not.
    .filter((member) => [undefined, group.metadata.uid].includes(groupOf(member)?.uid));
  return {
    group,
    content,
    groupClass: className === undefined ? undefined : groupCaches.classes.get(className),
    members,
    restoring: restoringMember(caches, members),
    ...observeMembers(caches, groupCaches, group, content),
  };
}

/** Key of a member from which a volume is being made. */
function restoringMember(
  caches: SnapshotCaches,
  members: readonly Stored<VolumeSnapshot>[],
): string | undefined {
  const found = members.find((member) => isRestoring(caches, member));
  return found === undefined ? undefined : keyOf(found);
}

/** The objects of the members as they are now: the observation does not change with the caches. */
function observeMembers(
  { snapshots, contents }: SnapshotCaches,
  { volumes }: GroupCaches,
  { metadata: { namespace = "", uid } }: Stored<VolumeGroupSnapshot>,
  content: Stored<VolumeGroupSnapshotContent> | undefined,
): ObservedMembers {
  const bySnapshot = new Map<string, Stored<VolumeSnapshot> | undefined>();
  const byContent = new Map<string, Stored<VolumeSnapshotContent> | undefined>();
  const byHandle = new Map<string, Stored<PersistentVolume> | undefined>();
  for (const { volumeHandle = "" } of content === undefined ? [] : membersOf(content)) {
    const names = memberNames(uid, volumeHandle);
    bySnapshot.set(names.snapshot, snapshots.get(`${namespace}/${names.snapshot}`));
    byContent.set(names.content, contents.get(names.content));
    const handleKey = driverHandleKey(content?.spec.driver ?? "", volumeHandle) ?? "";
    const [found, second] = volumes.byIndex("byCsiHandle", handleKey);
    // Of two volumes with one handle, it cannot be said which one was cut.
    byHandle.set(volumeHandle, second === undefined ? found : undefined);
  }
  return {
    memberSnapshot: (name) => bySnapshot.get(name),
    memberContent: (name) => byContent.get(name),
    volume: (volumeHandle) => byHandle.get(volumeHandle),
  };
}

/** Whether the claim of a snapshot exists, is not being deleted, and does not have the snapshot finalizer. */
function isClaimFree({ claims }: SnapshotCaches, snapshot: VolumeSnapshot): boolean {
  const key = sourceClaimKey(snapshot);
  const claim = key === undefined ? undefined : claims.get(key);
  if (claim === undefined || isDeleting(claim)) return false;
  return !hasFinalizer(claim, snapshotClaimFinalizer);
}

/**
 * Whether volumes are being made from the snapshot: a claim waits for it, or a provisioner holds it. A provisioner stores
 * its finalizer before it copies, and none can be added once the snapshot is being deleted: a claim that the cache does
 * not show yet is heeded, too.
 */
function isRestoring({ claims }: SnapshotCaches, snapshot: Stored<VolumeSnapshot>): boolean {
  if (hasFinalizer(snapshot, snapshotSourceProtectionFinalizer)) return true;
  return claims.byIndex("bySourceSnapshot", keyOf(snapshot)).some(isPendingClaim);
}

/** The group that a snapshot belongs to, while it exists. */
function groupAround(
  { groups }: SnapshotCaches,
  snapshot: Stored<VolumeSnapshot>,
): Stored<VolumeGroupSnapshot> | undefined {
  const named = groupOf(snapshot);
  const key = groupKeyOf(snapshot);
  const group = key === undefined ? undefined : groups?.groups.get(key);
  return named?.uid === undefined || named.uid === group?.metadata.uid ? group : undefined;
}

/** The group snapshot to whose content a content belongs by the driver's word. */
function groupNameFor(
  { groups }: SnapshotCaches,
  { spec, status }: VolumeSnapshotContent,
  { metadata }: Stored<VolumeSnapshot>,
): string | undefined | "unknown" {
  const key = driverHandleKey(spec.driver, status?.volumeGroupSnapshotHandle);
  if (groups === undefined || key === undefined) return undefined;
  const refs = groups.contents
    .byIndex("byGroupHandle", key)
    .map((content) => content.spec.volumeGroupSnapshotRef);
  if (refs.length === 0) return "unknown";
  return refs.find(({ namespace }) => namespace === metadata.namespace)?.name;
}
