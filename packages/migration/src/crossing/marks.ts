/** The marks that a driver's sidecars leave on objects of a migrated plugin. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, Stored, VolumeAttachment } from "@longshore/kube";
import { migratedToAnnotation, provisionerFinalizer, standsForInTreeFinalizer } from "@longshore/storage";
import { type CrossingSubject, sidecarFinalizers } from "./crossing-subject.ts";
import { isVolumeOfPlugin } from "./pod-facts.ts";
import type { WaitSubject } from "./wait.ts";

type Marked = Stored<PersistentVolume> | Stored<PersistentVolumeClaim>;

/** PVs and claims of the plugin that carry `migrated-to` or a finalizer of the driver's sidecars. */
export function objectsCarryingMarks(
  subject: CrossingSubject,
  volumes: readonly Stored<PersistentVolume>[],
  claims: readonly Stored<PersistentVolumeClaim>[],
): WaitSubject[] {
  const marksOf = (object: Marked): string[] => [
    ...(isHanded(subject, object) ? [`metadata.annotations[${migratedToAnnotation}]`] : []),
    ...sidecarFinalizers(subject).filter((f) => object.metadata.finalizers?.includes(f) === true),
  ];
  // On a volume that is being deleted it is the persistent-volume controller's, until the disk has been deleted in-tree.
  const marksOfVolume = (pv: Stored<PersistentVolume>) =>
    marksOf(pv).filter((mark) => mark !== provisionerFinalizer || !standsForInTreeFinalizer(pv));
  const ours = volumes.filter((pv) => isVolumeOfPlugin(subject, pv));
  const names = new Set(ours.map((pv) => pv.metadata.name));
  return [
    ...ours.map((pv) => ({ kind: "PersistentVolume", name: pv.metadata.name, marks: marksOfVolume(pv) })),
    ...claims
      // A claim that is not bound yet is known as the plugin's by the driver that it was handed to.
      .filter((claim) => names.has(claim.spec?.volumeName ?? "") || isHanded(subject, claim))
      .map((claim) => ({
        kind: "PersistentVolumeClaim",
        namespace: claim.metadata.namespace ?? "default",
        name: claim.metadata.name,
        marks: marksOf(claim),
      })),
  ]
    .filter(({ marks }) => marks.length > 0)
    .map(({ marks, ...object }) => ({ ...object, why: `still has ${marks.join(", ")} of the driver` }));
}

/** VolumeAttachments of the driver that are for volumes of the plugin: the in-tree plugin needs none. */
export function attachmentsOfPlugin(
  subject: CrossingSubject,
  volumes: readonly Stored<PersistentVolume>[],
  attachments: readonly Stored<VolumeAttachment>[],
): WaitSubject[] {
  const ours = new Set(
    volumes.filter((pv) => isVolumeOfPlugin(subject, pv)).map(({ metadata }) => metadata.name),
  );
  return attachments
    .filter(({ spec }) => spec.attacher === subject.driverName)
    .filter(({ spec: { source } }) =>
      source.persistentVolumeName === undefined
        ? source.inlineVolumeSpec != null
        : ours.has(source.persistentVolumeName),
    )
    .map(({ metadata, spec }) => ({
      kind: "VolumeAttachment",
      name: metadata.name,
      why: `still attaches a volume of the plugin to node ${spec.nodeName} through the driver`,
    }));
}

/** Names of PersistentVolumes that the driver has made: no in-tree plugin can serve them, so they cannot go back. */
export function volumesOfDriver(
  subject: CrossingSubject,
  volumes: readonly Stored<PersistentVolume>[],
): readonly string[] {
  return volumes
    .filter(({ spec }) => spec?.csi?.driver === subject.driverName)
    .map(({ metadata }) => metadata.name);
}

function isHanded(subject: CrossingSubject, object: Marked): boolean {
  return object.metadata.annotations?.[migratedToAnnotation] === subject.driverName;
}
