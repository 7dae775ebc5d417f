/**
 * What the disk cloud remembers of snapshots and their groups, as pure functions of its state.
 *
 *     creating ──> ready ──> deleting ──> gone
 *
 * A group has the state of its snapshots, which are changed together in one write.
 */
import { CloudError } from "@longshore/volumes";
import type { CloudState, GroupRecord, SnapshotRecord } from "./cloud-state.ts";
import { diskOf } from "./find-disk.ts";
import type { DiskSnapshot, SnapshotGroup } from "./provider-cloud.ts";
import { type Provider, providerOf } from "./providers/index.ts";

/** The snapshots of the state, in no order. */
export function snapshotsOf(state: CloudState): readonly SnapshotRecord[] {
  return Object.values(state.snapshots ?? {});
}

/** The groups of the state, in no order. */
export function groupsOf(state: CloudState): readonly GroupRecord[] {
  return Object.values(state.groups ?? {});
}

/** The members of the group in its order. */
export function membersOf(state: CloudState, group: GroupRecord): readonly SnapshotRecord[] {
  const members = snapshotsOf(state).filter(({ groupId }) => groupId === group.id);
  return group.diskIds.flatMap((diskId) => members.filter((member) => member.diskId === diskId));
}

/** The state with these snapshots in it. */
export function withSnapshots(state: CloudState, snapshots: readonly SnapshotRecord[]): CloudState {
  const byId = Object.fromEntries(snapshots.map((snapshot) => [snapshot.id, snapshot]));
  return { ...state, snapshots: { ...state.snapshots, ...byId } };
}

/** The state without these snapshots. */
export function withoutSnapshots(state: CloudState, ids: readonly string[]): CloudState {
  const kept = snapshotsOf(state).filter(({ id }) => !ids.includes(id));
  return { ...state, snapshots: Object.fromEntries(kept.map((snapshot) => [snapshot.id, snapshot])) };
}

/** The state with this group in it. */
export function withGroup(state: CloudState, group: GroupRecord): CloudState {
  return { ...state, groups: { ...state.groups, [group.id]: group } };
}

/** The state without this group. */
export function withoutGroup(state: CloudState, groupId: string): CloudState {
  const { [groupId]: _gone, ...groups } = state.groups ?? {};
  return { ...state, groups };
}

/** The snapshot that already has this name. @throws CloudError AlreadyExists when it is of another disk */
export function existingSnapshot(
  state: CloudState,
  provider: Provider,
  name: string,
  diskId: string,
): SnapshotRecord | undefined {
  const snapshot = snapshotsOf(state).find(
    (s) => s.name === name && providerOf(s) === provider && s.groupId === undefined && s.state !== "deleting",
  );
  if (snapshot !== undefined && snapshot.diskId !== diskId) {
    throw new CloudError(
      "AlreadyExists",
      `snapshot ${snapshot.id} has the name ${name} but is of disk ${snapshot.diskId}, not ${diskId}: choose another name`,
    );
  }
  if (snapshot === undefined) diskOf(state, provider, diskId);
  return snapshot;
}

/** The group that already has this name. @throws CloudError AlreadyExists when it is of other disks */
export function existingGroup(
  state: CloudState,
  provider: Provider,
  name: string,
  diskIds: readonly string[],
): GroupRecord | undefined {
  const group = groupsOf(state).find(
    (g) => g.name === name && providerOf(g) === provider && !isBeingDeleted(state, g),
  );
  if (group !== undefined && !isSameSet(group.diskIds, diskIds)) {
    throw new CloudError(
      "AlreadyExists",
      `group ${group.id} has the name ${name} but is of disks ${group.diskIds.join(", ")}: choose another name`,
    );
  }
  if (group === undefined) for (const diskId of diskIds) diskOf(state, provider, diskId);
  return group;
}

/** @throws CloudError InvalidArgument when it is of a group, which is deleted as a whole */
export function decideDeleteSnapshot(
  state: CloudState,
  provider: Provider,
  snapshotId: string,
): SnapshotRecord | undefined {
  const snapshot = ownSnapshot(state, provider, snapshotId);
  if (snapshot?.groupId !== undefined) {
    throw new CloudError(
      "InvalidArgument",
      `snapshot ${snapshotId} is of group ${snapshot.groupId}: delete the group`,
    );
  }
  return snapshot;
}

function ownSnapshot(state: CloudState, provider: Provider, snapshotId: string): SnapshotRecord | undefined {
  const { snapshots = {} } = state;
  const snapshot = Object.hasOwn(snapshots, snapshotId) ? snapshots[snapshotId] : undefined;
  return snapshot !== undefined && providerOf(snapshot) === provider ? snapshot : undefined;
}

/** The provider's group with this id. */
export function ownGroup(state: CloudState, provider: Provider, groupId: string): GroupRecord | undefined {
  const { groups = {} } = state;
  const group = Object.hasOwn(groups, groupId) ? groups[groupId] : undefined;
  return group !== undefined && providerOf(group) === provider ? group : undefined;
}

/** @throws CloudError NotFound unless the snapshot is ready */
export function readySnapshot(state: CloudState, provider: Provider, snapshotId: string): SnapshotRecord {
  const snapshot = ownSnapshot(state, provider, snapshotId);
  if (snapshot?.state !== "ready") throw new CloudError("NotFound", `there is no snapshot ${snapshotId}`);
  return snapshot;
}

/**
 * The snapshots of the two ends of a change, the earlier one first.
 * @throws CloudError NotFound, or InvalidArgument unless both are of one disk and in this order
 */
export function decideChange(
  state: CloudState,
  provider: Provider,
  baseId: string,
  targetId: string,
): readonly [SnapshotRecord, SnapshotRecord] {
  const [base, target] = [readySnapshot(state, provider, baseId), readySnapshot(state, provider, targetId)];
  if (base.diskId !== target.diskId) {
    throw new CloudError(
      "InvalidArgument",
      `snapshot ${baseId} is of disk ${base.diskId} and ${targetId} of ${target.diskId}: name two of one disk`,
    );
  }
  if ((base.createdAt ?? "") > (target.createdAt ?? "")) {
    throw new CloudError("InvalidArgument", `snapshot ${baseId} is later than ${targetId}: exchange them`);
  }
  return [base, target];
}

/** The snapshot as callers see it. */
export function toSnapshot(record: SnapshotRecord): DiskSnapshot {
  const { id, name, diskId, createdAt = "", groupId } = record;
  const snapshot = { id, name, diskId, createdAt, sizeBytes: BigInt(record.sizeBytes) };
  return groupId === undefined ? snapshot : { ...snapshot, groupId };
}

/** The group as callers see it; undefined until all its snapshots are ready. */
export function toGroup(state: CloudState, group: GroupRecord): SnapshotGroup | undefined {
  const members = membersOf(state, group);
  if (members.length === 0 || members.some((member) => member.state !== "ready")) return undefined;
  const { id, name } = group;
  return { id, name, createdAt: members[0]?.createdAt ?? "", snapshots: members.map(toSnapshot) };
}

/** Whether the group is on its way out. */
export function isBeingDeleted(state: CloudState, group: GroupRecord): boolean {
  const members = membersOf(state, group);
  return members.length === 0 || members.some(({ state: s }) => s === "deleting");
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((entry) => b.includes(entry));
}
