/** The objects that stand for the single snapshots of a group: what of them is yet to be written. Pure. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import {
  contentFinalizer,
  groupHandleAnnotation,
  snapshotInGroupFinalizer,
  snapshotSecretNameAnnotation,
  snapshotSecretNamespaceAnnotation,
  snapshotSecretReference,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  type VolumeSnapshotInfo,
} from "@longshore/storage";
import { memberNames, membersOf } from "../group-binding.ts";

/** One write for a member. Each needs those before it, in this order. */
export type MemberWrite =
  | { readonly kind: "createSnapshot"; readonly snapshot: VolumeSnapshot }
  | { readonly kind: "createContent"; readonly content: VolumeSnapshotContent }
  | {
      readonly kind: "storeContentStatus";
      readonly content: Stored<VolumeSnapshotContent>;
      readonly status: Readonly<Record<string, unknown>>;
    }
  | {
      readonly kind: "bindSnapshot";
      readonly snapshot: Stored<VolumeSnapshot>;
      readonly contentName: string;
    };

/** What is known of the members of a group. */
export interface ObservedMembers {
  readonly memberSnapshot: (name: string) => Stored<VolumeSnapshot> | undefined;
  readonly memberContent: (name: string) => Stored<VolumeSnapshotContent> | undefined;
  /** The volume that a driver knows by this handle. */
  readonly volume: (volumeHandle: string) => Stored<PersistentVolume> | undefined;
}

/**
 * The next write of each member that lacks one.
 * @throws ParameterError, TemplateError for a class that names no usable secret
 */
export function missingMemberWrites(
  group: Stored<VolumeGroupSnapshot>,
  content: Stored<VolumeGroupSnapshotContent>,
  groupClass: VolumeGroupSnapshotClass,
  observed: ObservedMembers,
): readonly MemberWrite[] {
  const writes: MemberWrite[] = [];
  for (const info of membersOf(content)) {
    const write = nextWrite(group, content, groupClass, info, observed);
    if (write !== undefined) writes.push(write);
  }
  return writes;
}

function nextWrite(
  group: Stored<VolumeGroupSnapshot>,
  groupContent: Stored<VolumeGroupSnapshotContent>,
  groupClass: VolumeGroupSnapshotClass,
  info: VolumeSnapshotInfo,
  observed: ObservedMembers,
): MemberWrite | undefined {
  const { volumeHandle = "" } = info;
  const names = memberNames(group.metadata.uid, volumeHandle);
  const volume = observed.volume(volumeHandle);
  const snapshot = observed.memberSnapshot(names.snapshot);
  // Before its content, which names the UID that the server gives the snapshot.
  if (snapshot === undefined) {
    return { kind: "createSnapshot", snapshot: memberSnapshot(group, names.snapshot, volume) };
  }
  const content = observed.memberContent(names.content);
  if (content === undefined) {
    const made = memberContent(groupContent, groupClass, snapshot, names.content, volumeHandle, volume);
    return { kind: "createContent", content: made };
  }
  const status = memberStatus(content, groupContent, info);
  if (status !== undefined) return { kind: "storeContentStatus", content, status };
  if (snapshot.status?.boundVolumeSnapshotContentName) return undefined;
  return { kind: "bindSnapshot", snapshot, contentName: names.content };
}

function memberSnapshot(
  group: Stored<VolumeGroupSnapshot>,
  name: string,
  volume: Stored<PersistentVolume> | undefined,
): VolumeSnapshot {
  const { apiVersion = "groupsnapshot.storage.k8s.io/v1", metadata } = group;
  const owner = { apiVersion, kind: "VolumeGroupSnapshot", name: metadata.name, uid: metadata.uid };
  return {
    metadata: {
      name,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      ownerReferences: [owner],
      finalizers: [snapshotInGroupFinalizer],
    },
    // A volume that is gone has left its snapshot behind; the source is nothing then, but must be there.
    spec: { source: { persistentVolumeClaimName: volume?.spec?.claimRef?.name ?? "" } },
  };
}

function memberContent(
  groupContent: Stored<VolumeGroupSnapshotContent>,
  groupClass: VolumeGroupSnapshotClass,
  snapshot: Stored<VolumeSnapshot>,
  name: string,
  volumeHandle: string,
  volume: Stored<PersistentVolume> | undefined,
): VolumeSnapshotContent {
  const { spec, status, metadata } = groupContent;
  const contentName = metadata.name;
  const secret = snapshotSecretReference("group-snapshotter", groupClass.parameters ?? {}, {
    contentName,
    snapshot: {
      name: spec.volumeGroupSnapshotRef.name ?? "",
      namespace: spec.volumeGroupSnapshotRef.namespace ?? "",
    },
  });
  const mode = volume?.spec?.volumeMode;
  return {
    metadata: {
      name,
      finalizers: [contentFinalizer],
      annotations: {
        [groupHandleAnnotation]: status?.volumeGroupSnapshotHandle ?? "",
        ...(secret === undefined
          ? {}
          : {
              [snapshotSecretNameAnnotation]: secret.name,
              [snapshotSecretNamespaceAnnotation]: secret.namespace,
            }),
      },
    },
    spec: {
      volumeSnapshotRef: {
        apiVersion: "snapshot.storage.k8s.io/v1",
        kind: "VolumeSnapshot",
        name: snapshot.metadata.name,
        namespace: snapshot.metadata.namespace ?? "",
        uid: snapshot.metadata.uid,
      },
      deletionPolicy: spec.deletionPolicy,
      driver: spec.driver,
      source: { volumeHandle },
      ...(mode ? { sourceVolumeMode: mode } : {}),
    },
  };
}

/** What the driver said of a member when it made the group. That it is ready may also come from a look at it. */
function memberStatus(
  { status }: VolumeSnapshotContent,
  groupContent: VolumeGroupSnapshotContent,
  info: VolumeSnapshotInfo,
): Readonly<Record<string, unknown>> | undefined {
  const patch: Record<string, unknown> = {};
  const ready = info.readyToUse ?? groupContent.status?.readyToUse ?? false;
  if (status?.snapshotHandle === undefined) patch.snapshotHandle = info.snapshotHandle;
  if (status?.volumeGroupSnapshotHandle === undefined) {
    patch.volumeGroupSnapshotHandle = groupContent.status?.volumeGroupSnapshotHandle;
  }
  if (status?.creationTime === undefined && info.creationTime !== undefined) {
    patch.creationTime = info.creationTime;
  }
  if (!status?.restoreSize && info.restoreSize) patch.restoreSize = info.restoreSize;
  if (status?.readyToUse === undefined || (ready && !status.readyToUse)) patch.readyToUse = ready;
  return Object.keys(patch).length === 0 ? undefined : patch;
}
