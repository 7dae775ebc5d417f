/** The VolumeSnapshotContent that is made for a new VolumeSnapshot. Pure. */
import { involvedObject, type Stored } from "@longshore/kube";
import {
  contentFinalizer,
  managedByLabel,
  snapshotContentName,
  snapshotResources,
  snapshotSecretNameAnnotation,
  snapshotSecretNamespaceAnnotation,
  snapshotSecretReference,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { SnapshotSourceError, type SourceVolume } from "../source-volume.ts";

/** How contents are made. */
export interface ContentSettings {
  /** The content records the mode of the volume, so that no volume of another mode is made from it. */
  readonly preventVolumeModeConversion: boolean;
}

/**
 * The content for a snapshot of `volume`. It has its finalizer from the first moment, so that it cannot go while its
 * snapshot is being made.
 * @param managedBy the node whose snapshotter is to make the snapshot, where each node has its own
 * @throws SnapshotSourceError when the class is of another driver than the volume
 * @throws ParameterError, TemplateError for a class that names no usable secret
 */
export function contentOfSnapshot(
  snapshot: Stored<VolumeSnapshot>,
  snapshotClass: Stored<VolumeSnapshotClass>,
  volume: SourceVolume,
  settings: ContentSettings,
  managedBy?: string,
): VolumeSnapshotContent {
  const { name, namespace = "", uid } = snapshot.metadata;
  if (snapshotClass.driver !== volume.driver) {
    throw new SnapshotSourceError(
      `VolumeSnapshotClass "${snapshotClass.metadata.name}" is of driver ${snapshotClass.driver}, ` +
        `but PersistentVolume "${volume.pv.metadata.name}" of ${volume.driver}`,
    );
  }
  const contentName = snapshotContentName(uid);
  const secret = snapshotSecretReference("snapshotter", snapshotClass.parameters ?? {}, {
    contentName,
    snapshot: { name, namespace },
  });
  const annotations =
    secret === undefined
      ? undefined
      : {
          [snapshotSecretNameAnnotation]: secret.name,
          [snapshotSecretNamespaceAnnotation]: secret.namespace,
        };
  const volumeMode = volume.pv.spec?.volumeMode;
  return {
    metadata: {
      name: contentName,
      finalizers: [contentFinalizer],
      ...(annotations === undefined ? {} : { annotations }),
      ...(managedBy === undefined ? {} : { labels: { [managedByLabel]: managedBy } }),
    },
    spec: {
      volumeSnapshotRef: involvedObject(snapshotResources.volumeSnapshots, snapshot),
      source: { volumeHandle: volume.volumeHandle },
      volumeSnapshotClassName: snapshotClass.metadata.name,
      deletionPolicy: snapshotClass.deletionPolicy,
      driver: snapshotClass.driver,
      ...(settings.preventVolumeModeConversion && volumeMode ? { sourceVolumeMode: volumeMode } : {}),
    },
  };
}
