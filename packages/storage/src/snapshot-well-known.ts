/** Annotations, labels and finalizers of snapshots (external-snapshotter, pkg/utils; docs/behaviour/sidecars.md 5). */

const prefix = "snapshot.storage.kubernetes.io/";
const groupPrefix = "groupsnapshot.storage.kubernetes.io/";

/** On a VolumeSnapshot: volumes may be made from it just now. */
export const snapshotSourceFinalizer = `${prefix}volumesnapshot-as-source-protection`;
/** On a VolumeSnapshot whose content is deleted with it, until that content is gone. */
export const snapshotBoundFinalizer = `${prefix}volumesnapshot-bound-protection`;
/** On a VolumeSnapshot that belongs to a group, until the group is gone. */
export const snapshotInGroupFinalizer = `${prefix}volumesnapshot-in-group-protection`;
/** On a VolumeSnapshotContent, until its snapshot at the driver is deleted or released. */
export const contentFinalizer = `${prefix}volumesnapshotcontent-bound-protection`;
/** On a claim while a snapshot of it is being made. */
export const snapshotClaimFinalizer = `${prefix}pvc-as-source-protection`;
/** On a VolumeGroupSnapshot, until its content is gone or released. */
export const groupSnapshotFinalizer = `${groupPrefix}volumegroupsnapshot-bound-protection`;
/** On a VolumeGroupSnapshotContent, until its snapshots at the driver are deleted or released. */
export const groupContentFinalizer = `${groupPrefix}volumegroupsnapshotcontent-bound-protection`;

/** On a VolumeSnapshotContent: CreateSnapshot was called and its outcome is not known for certain. */
export const beingCreatedAnnotation = `${prefix}volumesnapshot-being-created`;
/** On a VolumeSnapshotContent: its VolumeSnapshot is being deleted. */
export const beingDeletedAnnotation = `${prefix}volumesnapshot-being-deleted`;
/** On a VolumeGroupSnapshotContent: CreateVolumeGroupSnapshot was called, likewise. */
export const groupBeingCreatedAnnotation = `${groupPrefix}volumegroupsnapshot-being-created`;
/** On a VolumeGroupSnapshotContent: its VolumeGroupSnapshot is being deleted. */
export const groupBeingDeletedAnnotation = `${groupPrefix}volumegroupsnapshot-being-deleted`;
/** On a VolumeSnapshotContent of a group: the driver's name of the group. */
export const groupHandleAnnotation = `${groupPrefix}volumegroupsnapshot-handle`;

/** On a VolumeSnapshotContent: the secret for calls about it. */
export const snapshotSecretNameAnnotation = `${prefix}deletion-secret-name`;
/** Namespace of {@link snapshotSecretNameAnnotation}. */
export const snapshotSecretNamespaceAnnotation = `${prefix}deletion-secret-namespace`;
/** On a VolumeGroupSnapshotContent: the secret for calls about it. */
export const groupSnapshotSecretNameAnnotation = `${groupPrefix}deletion-secret-name`;
/** Namespace of {@link groupSnapshotSecretNameAnnotation}. */
export const groupSnapshotSecretNamespaceAnnotation = `${groupPrefix}deletion-secret-namespace`;

/** On a VolumeSnapshotClass: snapshots that name no class get it, if it is of their driver. */
export const defaultSnapshotClassAnnotation = `${prefix}is-default-class`;
/** On a VolumeGroupSnapshotClass, likewise. */
export const defaultGroupSnapshotClassAnnotation = `${groupPrefix}is-default-class`;
/** On a VolumeSnapshotContent: a volume of another mode may be made from it. */
export const allowVolumeModeChangeAnnotation = `${prefix}allow-volume-mode-change`;
/** Label on a VolumeSnapshotContent of a volume that is local to this node. */
export const managedByLabel = `${prefix}managed-by`;
