/** Where the definitions of the snapshot kinds are, as they come with this package. */

/**
 * The directory with the CustomResourceDefinitions of snapshots (YAML, one a file): `snapshot.storage.k8s.io/v1`
 * VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass, and the same three of `groupsnapshot.storage.k8s.io`.
 * Every API server from 1.20 on takes them.
 */
export const snapshotCrdsUrl: URL = new URL("../crds/", import.meta.url);
