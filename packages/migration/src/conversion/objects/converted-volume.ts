/**
 * The native CSI PersistentVolume that takes the place of another one for the same disk. Pure.
 *
 * It is pre-bound to the name of the claim, without a UID, so that the persistent-volume controller gives it to that claim
 * and to no other, by which client it may be made; and its policy is Retain until the claim is bound (decision record 0031).
 */
import type { ObjectMeta, PersistentVolume } from "@longshore/kube";
import { inTreeDeletionFinalizer, provisionedByAnnotation, provisionerFinalizer } from "@longshore/storage";
import { checkInTreePV, isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";
import type { Converted, HandleRule } from "../conversion-types.ts";
import {
  bindingAnnotations,
  lastAppliedAnnotation,
  mountOptionsAnnotation,
  volumeProtectionFinalizer,
} from "./controllers-marks.ts";
import { authoredMetadata, defined, differencesOf, type Reasons, withoutKeys } from "./differences.ts";
import { failureOf } from "./failure.ts";

/** How a volume is converted. */
export interface ConvertedVolumeOptions {
  readonly newName: string;
  /** For a volume of a CSI driver: how the other driver calls its disk. */
  readonly rule?: HandleRule;
}

/**
 * The new object, without what the API server writes, and every field in which it differs; or why there is none. Labels,
 * annotations, owner references and finalizers of others, volume mode, capacity, class and mount options are carried over.
 */
export function convertedVolume(
  volume: PersistentVolume,
  { newName, rule }: ConvertedVolumeOptions,
): Converted<PersistentVolume> {
  const source = sourceOf(volume, rule);
  if ("failure" in source) return source;
  const { accessModes, csi, nodeAffinity } = source.object.spec ?? {};
  const { claimRef } = volume.spec ?? {};
  if (csi === undefined) return { failure: "spec.csi: the translation made no CSI source" };
  const object: PersistentVolume = {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: metadataOf(volume, newName, csi.driver),
    spec: defined<NonNullable<PersistentVolume["spec"]>>({
      ...withoutSource(volume),
      accessModes: accessModes ?? [],
      csi,
      nodeAffinity,
      mountOptions: mountOptionsOf(volume),
      persistentVolumeReclaimPolicy: "Retain",
      claimRef: claimRef && {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        namespace: claimRef.namespace ?? "",
        name: claimRef.name ?? "",
      },
    }),
  };
  return { object, differences: differencesOf(volume, object, reasonsOf(volume)) };
}

/**
 * An in-tree volume of RBD may leave out the namespace of its secret: that of the claim counts then (upstream rbd.go,
 * getSecretNameAndNamespace). Of a CSI volume the API server demands it.
 */
export function withSecretNamespace(volume: PersistentVolume): PersistentVolume {
  const { spec } = volume;
  const rbd = spec?.rbd;
  const secret = rbd?.secretRef;
  const namespace = spec?.claimRef?.namespace;
  if (rbd == null || !secret?.name || secret.namespace || namespace === undefined) return volume;
  return { ...volume, spec: { ...spec, rbd: { ...rbd, secretRef: { ...secret, namespace } } } };
}

function sourceOf(volume: PersistentVolume, rule: HandleRule | undefined): Converted<PersistentVolume> {
  if (rule !== undefined) return rule.convert(volume);
  if (volume.spec?.csi !== undefined) {
    const failure = `spec.csi: it is a volume of the driver ${volume.spec.csi.driver} already; give rules to convert it to another driver`;
    return { failure };
  }
  try {
    if (!isPVMigratable(volume)) {
      return { failure: "spec: it has no source of an in-tree plugin that a CSI driver takes over" };
    }
    checkInTreePV(volume);
    return {
      object: translateInTreePVToCSI(withSecretNamespace(volume)) as PersistentVolume,
      differences: [],
    };
  } catch (error) {
    return { failure: failureOf(error) };
  }
}

/** The spec without its source: the same disk has one source only. */
function withoutSource(volume: PersistentVolume): NonNullable<PersistentVolume["spec"]> {
  const name = sourceNameOf(volume);
  return Object.fromEntries(Object.entries(volume.spec ?? {}).filter(([member]) => member !== name));
}

/** The members of the API's PersistentVolumeSpec that are no source: what is left of a volume is its source. */
const noSources: ReadonlySet<string> = new Set([
  ...["accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"],
  ...["storageClassName", "volumeMode", "volumeAttributesClassName"],
]);

function sourceNameOf({ spec }: PersistentVolume): string {
  return Object.keys(spec ?? {}).find((name) => !noSources.has(name)) ?? "";
}

/** CSI drivers are given `spec.mountOptions` alone; in-tree plugins read the annotation first (upstream MountOptionFromSpec). */
function mountOptionsOf({ metadata, spec }: PersistentVolume): string[] | undefined {
  const annotation = metadata?.annotations?.[mountOptionsAnnotation];
  return annotation === undefined
    ? spec?.mountOptions
    : annotation.split(",").filter((option) => option !== "");
}

const controllersFinalizers: ReadonlySet<string> = new Set([
  volumeProtectionFinalizer,
  inTreeDeletionFinalizer,
  provisionerFinalizer,
]);

/** Finalizers of controllers, which give the new object theirs. */
function isControllers(finalizer: string): boolean {
  return controllersFinalizers.has(finalizer) || finalizer.startsWith("external-attacher/");
}

const droppedAnnotations: ReadonlySet<string> = new Set([
  ...bindingAnnotations,
  lastAppliedAnnotation,
  mountOptionsAnnotation,
]);

function metadataOf(volume: PersistentVolume, name: string, driver: string): ObjectMeta {
  const { metadata, spec } = volume;
  const annotations = { ...withoutKeys(metadata?.annotations, droppedAnnotations) };
  const isDeleted = spec?.persistentVolumeReclaimPolicy === "Delete";
  if (annotations[provisionedByAnnotation] !== undefined || isDeleted) {
    annotations[provisionedByAnnotation] = driver;
  }
  const finalizers = metadata?.finalizers?.filter((finalizer) => !isControllers(finalizer));
  return defined<ObjectMeta>({
    ...authoredMetadata(metadata),
    name,
    annotations: Object.keys(annotations).length === 0 ? undefined : annotations,
    finalizers: finalizers?.length ? finalizers : undefined,
  });
}

function reasonsOf(volume: PersistentVolume): Reasons {
  const source = sourceNameOf(volume);
  const isStatic = volume.metadata?.annotations?.[provisionedByAnnotation] === undefined;
  return {
    "metadata.name": "a PersistentVolume's source is immutable, and both objects are there for a moment",
    "metadata.finalizers":
      "those of controllers: the API server, the driver's attacher and its provisioner set theirs on the new object",
    [annotation(provisionedByAnnotation)]: isStatic
      ? "without it no component deletes the disk of a CSI volume with policy Delete; the in-tree plugin did"
      : "who deletes the disk: with the in-tree name, a controller manager without the plugin fails to delete, and one with it hands the volume over again; with the driver's, external-provisioner does",
    [annotation(mountOptionsAnnotation)]: "CSI drivers are given spec.mountOptions only",
    [annotation(lastAppliedAnnotation)]: "it describes the object with the in-tree source",
    ...Object.fromEntries(
      bindingAnnotations.map((name) => [annotation(name), "the controllers' own note about the old object"]),
    ),
    "spec.mountOptions": "from the annotation, which CSI drivers do not read",
    "spec.accessModes": "the translation keeps what a CSI driver of this kind serves",
    "spec.nodeAffinity": "the topology keys of the driver",
    "spec.claimRef":
      "pre-bound to the claim by name: a claim of that name binds this volume, by which client it may be made",
    "spec.persistentVolumeReclaimPolicy":
      "Retain until the claim is bound; then the policy is what it was before",
    "spec.csi": "the same disk as its CSI driver calls it",
    [`spec.${source}`]: "its place is taken by spec.csi",
  };
}

const annotation = (name: string): string => `metadata.annotations[${name}]`;
