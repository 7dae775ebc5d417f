/** What of an object is immutable and changes, and the object again around it. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { KubeObject, ObjectMeta, StatefulSet, StorageClass } from "@longshore/kube";
import {
  betaStorageClassAnnotation,
  betaStorageProvisionerAnnotation,
  storageProvisionerAnnotation,
} from "@longshore/storage";
import { lastAppliedAnnotation } from "../objects/controllers-marks.ts";
import { authoredMetadata, defined, withoutKeys } from "../objects/differences.ts";
import type { ReplacedKind } from "./replacement-types.ts";

const lastApplied: ReadonlySet<string> = new Set([lastAppliedAnnotation]);
/** Finalizers of the garbage collector: an object that has one is being deleted. */
const collectors: ReadonlySet<string> = new Set(["orphan", "foregroundDeletion"]);
/** Annotations that make a class the default of the cluster. */
const defaultMarks = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** True when the object has the form that a replacement gives it. */
export function hasForm(kind: ReplacedKind, object: KubeObject, wanted: KubeObject): boolean {
  const form = kind === "StatefulSet" ? templatesForm : classForm;
  return isDeepStrictEqual(form(object), form(wanted));
}

/** What of the templates a conversion may change. The API server fills the other fields in, and their defaults differ by version. */
function templatesForm(object: KubeObject): unknown {
  return ((object as StatefulSet).spec?.volumeClaimTemplates ?? []).map(({ metadata, spec }) => {
    const annotations = metadata?.annotations ?? {};
    const names = [
      betaStorageClassAnnotation,
      storageProvisionerAnnotation,
      betaStorageProvisionerAnnotation,
    ];
    return [
      metadata?.name,
      names.map((name) => annotations[name] ?? null),
      spec?.storageClassName ?? null,
      spec?.volumeName ?? null,
    ];
  });
}

function classForm(object: KubeObject): unknown {
  const { provisioner, parameters = {}, allowedTopologies = [], mountOptions = [] } = object as StorageClass;
  return { provisioner, parameters: { ...parameters }, allowedTopologies, mountOptions };
}

/**
 * The object to be made: as it is now, with the form that is wanted. What was changed since the plan was made stays, such as
 * replicas and labels.
 */
export function replacedObject(kind: ReplacedKind, now: KubeObject, wanted: KubeObject): KubeObject {
  const { annotations, finalizers } = now.metadata ?? {};
  const applied = wanted.metadata?.annotations?.[lastAppliedAnnotation];
  const kept = finalizers?.filter((each) => !collectors.has(each));
  const metadata = defined<ObjectMeta>({
    ...authoredMetadata(now.metadata),
    name: wanted.metadata?.name,
    annotations:
      applied === undefined
        ? withoutKeys(annotations, lastApplied)
        : { ...annotations, [lastAppliedAnnotation]: applied },
    finalizers: kept?.length ? kept : undefined,
  });
  if (kind === "StatefulSet") {
    const { spec } = now as StatefulSet;
    const volumeClaimTemplates = (wanted as StatefulSet).spec?.volumeClaimTemplates;
    return { apiVersion: "apps/v1", kind, metadata, spec: { ...spec, volumeClaimTemplates } } as KubeObject;
  }
  const { allowVolumeExpansion } = now as StorageClass;
  const { metadata: _metadata, ...fields } = wanted as StorageClass;
  return defined<StorageClass>({
    ...fields,
    apiVersion: "storage.k8s.io/v1",
    kind,
    metadata,
    allowVolumeExpansion,
  }) as KubeObject;
}

/** True for the class that claims without one get. */
export function isDefaultClass(object: KubeObject | undefined): boolean {
  return defaultMarks.some((mark) => object?.metadata?.annotations?.[mark] === "true");
}

/** The annotations of a class that is the default, or is it no more; others stay. */
export function defaultMarksPatch(isDefault: boolean): Readonly<Record<string, string | null>> {
  return Object.fromEntries(
    defaultMarks.map((mark, at) => [
      mark,
      isDefault ? (at === 0 ? "true" : null) : at === 0 ? "false" : null,
    ]),
  );
}
