/**
 * A StatefulSet whose claim templates name other classes. Pure. Templates are immutable: the set is deleted without its pods
 * (propagation policy Orphan) and made again. Its pods go on: the new set adopts them by its selector, and since the template
 * of the pods is the same, so is their revision.
 */
import type { ObjectMeta, PersistentVolumeClaim, StatefulSet } from "@longshore/kube";
import {
  betaStorageClassAnnotation,
  betaStorageProvisionerAnnotation,
  storageProvisionerAnnotation,
} from "@longshore/storage";
import { getCSINameFromInTreeName, isMigratableIntreePluginByName } from "@longshore/translation";
import type { Converted } from "../conversion-types.ts";
import { lastAppliedAnnotation } from "./controllers-marks.ts";
import { authoredMetadata, defined, differencesOf, withoutKeys } from "./differences.ts";

const dropped: ReadonlySet<string> = new Set([lastAppliedAnnotation]);

/**
 * The set with its templates changed. A class that is converted under its own name needs no change of templates.
 * @param classes the new name of each class that gets another one
 * @param volumes the new name of each PersistentVolume that gets another one
 */
export function convertedTemplates(
  set: StatefulSet,
  classes: ReadonlyMap<string, string>,
  volumes: ReadonlyMap<string, string> = new Map(),
): Converted<StatefulSet> {
  const templates = set.spec?.volumeClaimTemplates ?? [];
  const changed = templates.map((template) => convertedTemplate(template, classes, volumes));
  if (set.spec === undefined || changed.every((template, at) => template === templates[at])) {
    return {
      failure:
        "spec.volumeClaimTemplates: none of them names a class or a volume that gets another name, or an in-tree provisioner",
    };
  }
  const deleted = set.spec.persistentVolumeClaimRetentionPolicy as { whenDeleted?: string } | undefined;
  if (deleted?.whenDeleted === "Delete") {
    const field = "spec.persistentVolumeClaimRetentionPolicy.whenDeleted";
    return {
      failure: `${field}: Delete: the claims are deleted with the set; set it to Retain until the set is made again`,
    };
  }
  const object: StatefulSet = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: defined<ObjectMeta>({
      ...authoredMetadata(set.metadata),
      annotations: withoutKeys(set.metadata?.annotations, dropped),
    }),
    spec: { ...set.spec, volumeClaimTemplates: changed },
  };
  const reasons = {
    "spec.volumeClaimTemplates": "claims of further replicas are made with the converted class",
    [`metadata.annotations[${lastAppliedAnnotation}]`]: "it describes the set with its old templates",
  };
  return { object, differences: differencesOf(set, object, reasons) };
}

const provisionerAnnotations = [storageProvisionerAnnotation, betaStorageProvisionerAnnotation];

function convertedTemplate(
  template: PersistentVolumeClaim,
  classes: ReadonlyMap<string, string>,
  volumes: ReadonlyMap<string, string>,
): PersistentVolumeClaim {
  const old = template.metadata?.annotations ?? {};
  const annotations: Record<string, string> = {};
  const ofAnnotation = classes.get(old[betaStorageClassAnnotation] ?? "");
  if (ofAnnotation !== undefined) annotations[betaStorageClassAnnotation] = ofAnnotation;
  for (const name of provisionerAnnotations) {
    const provisioner = old[name];
    if (provisioner === undefined || !isMigratableIntreePluginByName(provisioner)) continue;
    annotations[name] = getCSINameFromInTreeName(provisioner);
  }
  const storageClassName = classes.get(template.spec?.storageClassName ?? "");
  const volumeName = volumes.get(template.spec?.volumeName ?? "");
  const isAnnotated = Object.keys(annotations).length > 0;
  if (!isAnnotated && storageClassName === undefined && volumeName === undefined) return template;
  return defined<PersistentVolumeClaim>({
    ...template,
    metadata: isAnnotated
      ? { ...template.metadata, annotations: { ...old, ...annotations } }
      : template.metadata,
    spec: {
      ...template.spec,
      ...(storageClassName === undefined ? {} : { storageClassName }),
      ...(volumeName === undefined ? {} : { volumeName }),
    },
  });
}
