/**
 * A StatefulSet whose claim templates name other classes. Pure. Templates are immutable: the set is deleted without its pods
 * (propagation policy Orphan) and made again. Its pods go on: the new set adopts them by its selector, and since the template
 * of the pods is the same, so is their revision.
 */
import type { ObjectMeta, PersistentVolumeClaim, StatefulSet } from "@longshore/kube";
import { betaStorageClassAnnotation } from "@longshore/storage";
import type { Converted } from "../conversion-types.ts";
import { lastAppliedAnnotation } from "./controllers-marks.ts";
import { authoredMetadata, defined, differencesOf, withoutKeys } from "./differences.ts";

const dropped: ReadonlySet<string> = new Set([lastAppliedAnnotation]);

/**
 * The set with its templates changed. A class that is converted under its own name needs no change of templates.
 * @param classes the new name of each class that gets another one
 */
export function convertedTemplates(
  set: StatefulSet,
  classes: ReadonlyMap<string, string>,
): Converted<StatefulSet> {
  const templates = set.spec?.volumeClaimTemplates ?? [];
  const changed = templates.map((template) => convertedTemplate(template, classes));
  if (set.spec === undefined || changed.every((template, at) => template === templates[at])) {
    return { failure: "spec.volumeClaimTemplates: none of them names a class that gets another name" };
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

function convertedTemplate(
  template: PersistentVolumeClaim,
  classes: ReadonlyMap<string, string>,
): PersistentVolumeClaim {
  const annotated = template.metadata?.annotations?.[betaStorageClassAnnotation];
  const ofAnnotation = annotated === undefined ? undefined : classes.get(annotated);
  const ofSpec = classes.get(template.spec?.storageClassName ?? "");
  if (ofAnnotation === undefined && ofSpec === undefined) return template;
  const metadata =
    ofAnnotation === undefined
      ? template.metadata
      : {
          ...template.metadata,
          annotations: { ...template.metadata?.annotations, [betaStorageClassAnnotation]: ofAnnotation },
        };
  const spec = ofSpec === undefined ? template.spec : { ...template.spec, storageClassName: ofSpec };
  return defined<PersistentVolumeClaim>({ ...template, metadata, spec });
}
