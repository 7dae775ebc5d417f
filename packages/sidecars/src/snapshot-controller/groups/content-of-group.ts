/** The VolumeGroupSnapshotContent that is made for a new VolumeGroupSnapshot. Pure. */
import { involvedObject, type Stored } from "@longshore/kube";
import {
  groupContentFinalizer,
  groupSnapshotSecretNameAnnotation,
  groupSnapshotSecretNamespaceAnnotation,
  snapshotResources,
  snapshotSecretReference,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import { groupContentName } from "../group-binding.ts";
import { SnapshotSourceError, type SourceVolume } from "../source-volume.ts";

/**
 * The content for a group of `volumes`.
 * @throws SnapshotSourceError when one of them is of another driver than the class
 * @throws ParameterError, TemplateError for a class that names no usable secret
 */
export function contentOfGroup(
  group: Stored<VolumeGroupSnapshot>,
  groupClass: Stored<VolumeGroupSnapshotClass>,
  volumes: readonly SourceVolume[],
): VolumeGroupSnapshotContent {
  for (const { pv, driver } of volumes) {
    if (driver === groupClass.driver) continue;
    throw new SnapshotSourceError(
      `VolumeGroupSnapshotClass "${groupClass.metadata.name}" is of driver ${groupClass.driver}, ` +
        `but PersistentVolume "${pv.metadata.name}" of ${driver}`,
    );
  }
  const { name, namespace = "", uid } = group.metadata;
  const contentName = groupContentName(uid);
  const secret = snapshotSecretReference("group-snapshotter", groupClass.parameters ?? {}, {
    contentName,
    snapshot: { name, namespace },
  });
  const annotations =
    secret === undefined
      ? undefined
      : {
          [groupSnapshotSecretNameAnnotation]: secret.name,
          [groupSnapshotSecretNamespaceAnnotation]: secret.namespace,
        };
  return {
    metadata: {
      name: contentName,
      finalizers: [groupContentFinalizer],
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: {
      volumeGroupSnapshotRef: involvedObject(snapshotResources.volumeGroupSnapshots, group),
      source: { volumeHandles: volumes.map(({ volumeHandle }) => volumeHandle) },
      volumeGroupSnapshotClassName: groupClass.metadata.name,
      deletionPolicy: groupClass.deletionPolicy,
      driver: groupClass.driver,
    },
  };
}
