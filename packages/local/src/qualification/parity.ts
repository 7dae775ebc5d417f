/**
 * Whether a PersistentVolume that the driver provisioned through migration equals the one that the in-tree code
 * makes of the same claim and class. Pure.
 *
 * What must differ is left out: which disk, which claim, and what says who made, bound or serves the volume. What the
 * translation library does not carry back is found by asking it: the in-tree volume goes through it in the form
 * that the provisioner would give it, and a difference that comes of this alone is a loss, not the driver's doing.
 */
import type { PersistentVolume, SecretReference, VolumeNodeAffinity } from "@longshore/kube";
import { inTreeDeletionFinalizer, migratedToAnnotation, provisionerFinalizer } from "@longshore/storage";
import {
  translateCSIPVToInTree,
  translateInTreePVToCSI,
  translateInTreeStorageClassToCSI,
} from "@longshore/translation";
import { type ClusterPlugin, inTreeSource } from "../layout/plugins.ts";

/** How the two differ, each text with the path and both values. */
export interface VolumeParity {
  /** What the driver makes otherwise. */
  readonly differences: readonly string[];
  /** What no driver can bring back, because the translation does not carry it. */
  readonly losses: readonly string[];
}

/** Compares the in-tree volume with the migrated one. Source: docs/behaviour/volume-plugins.md 8.3 and 8.4. */
export function parityOfVolumes(
  plugin: ClusterPlugin,
  inTree: PersistentVolume,
  migrated: PersistentVolume,
): VolumeParity {
  const original = comparable(plugin, inTree);
  const carried = new Map(
    differences("", original, comparable(plugin, carriedThrough(plugin, inTree))).map(
      ({ path, migrated }) => [path, JSON.stringify(migrated)],
    ),
  );
  const found = differences("", original, comparable(plugin, migrated));
  const isLoss = (difference: Difference) =>
    carried.has(difference.path) && carried.get(difference.path) === JSON.stringify(difference.migrated);
  return {
    differences: found.filter((difference) => !isLoss(difference)).map(textOf),
    losses: found.filter(isLoss).map(textOf),
  };
}

/** The in-tree volume, had the driver's provisioner made it of the plugin's class. */
function carriedThrough(plugin: ClusterPlugin, inTree: PersistentVolume): PersistentVolume {
  const csiVolume = translateInTreePVToCSI(inTree) as PersistentVolume;
  const { labels: _, ...metadata } = csiVolume.metadata ?? {};
  const { nodeAffinity, ...spec } = csiVolume.spec ?? {};
  const placed = {
    ...csiVolume,
    metadata,
    spec: {
      ...spec,
      ...driverAffinity(plugin, nodeAffinity),
      ...(spec.csi === undefined ? {} : { csi: { ...spec.csi, ...stageSecret(plugin) } }),
    },
  };
  return translateCSIPVToInTree(placed) as PersistentVolume;
}

/** The provisioner writes the driver's topology keys and no labels. Source: docs/behaviour/sidecars.md 2.7. */
function driverAffinity(
  { topologyKey }: ClusterPlugin,
  affinity: VolumeNodeAffinity | undefined,
): { readonly nodeAffinity?: VolumeNodeAffinity } {
  if (topologyKey === undefined || affinity?.required === undefined) return {};
  const nodeSelectorTerms = affinity.required.nodeSelectorTerms.map(({ matchExpressions = [] }) => ({
    matchExpressions: matchExpressions
      .filter(({ key }) => key === topologyKey || key.endsWith("/zone"))
      .map((expression) => ({ ...expression, key: topologyKey })),
  }));
  return { nodeAffinity: { required: { nodeSelectorTerms } } };
}

/** The provisioner takes secrets from the class. Source: docs/behaviour/sidecars.md 2.5. */
function stageSecret(plugin: ClusterPlugin): { readonly nodeStageSecretRef?: SecretReference } {
  const { parameters = {} } = translateInTreeStorageClassToCSI(plugin.inTreeName, plugin.classes[0]);
  const name = parameters["csi.storage.k8s.io/node-stage-secret-name"];
  const namespace = parameters["csi.storage.k8s.io/node-stage-secret-namespace"];
  return name === undefined || namespace === undefined ? {} : { nodeStageSecretRef: { name, namespace } };
}

/** Annotations that only say who made or bound the volume, and who serves it. */
const annotationsOfOrigin = new Set([
  migratedToAnnotation,
  "kubernetes.io/createdby",
  "pv.kubernetes.io/bound-by-controller",
  "volume.kubernetes.io/provisioner-deletion-secret-name",
  "volume.kubernetes.io/provisioner-deletion-secret-namespace",
]);

/** Each side keeps a volume until it has deleted the disk. */
const deletionFinalizers = new Set([provisionerFinalizer, inTreeDeletionFinalizer]);

function comparable(plugin: ClusterPlugin, volume: PersistentVolume): unknown {
  const { metadata, spec } = volume;
  const source = inTreeSource(plugin, spec);
  const { claimRef, ...rest } = spec ?? {};
  const isOfDriver = driverAnnotations(volume);
  const annotations = Object.entries(metadata?.annotations ?? {}).filter(
    ([key, value]) => !annotationsOfOrigin.has(key) && !isOfDriver(key, value),
  );
  const finalizers = (metadata?.finalizers ?? []).filter(
    (finalizer) => !deletionFinalizers.has(finalizer) && !finalizer.startsWith("external-attacher/"),
  );
  return {
    annotations: Object.fromEntries(annotations),
    finalizers: finalizers.sort(),
    labels: metadata?.labels ?? {},
    spec: {
      ...rest,
      claimRef: { kind: claimRef?.kind, apiVersion: claimRef?.apiVersion, namespace: claimRef?.namespace },
      ...(source === undefined ? {} : { [plugin.source]: { ...source, ...unnamed(plugin) } }),
    },
  };
}

/** Annotations that only keep what the driver said of its volume, for the way back to CSI (RBD): its handle and attributes. */
function driverAnnotations(volume: PersistentVolume): (key: string, value: string) => boolean {
  if (volume.spec?.csi !== undefined) return () => false;
  const csi = (translateInTreePVToCSI(volume) as PersistentVolume).spec?.csi;
  return (key, value) => value === csi?.volumeHandle || csi?.volumeAttributes?.[key] === value;
}

/** The members that say which volume it is, empty. */
function unnamed({ identity }: ClusterPlugin): Readonly<Record<string, "">> {
  return Object.fromEntries(identity.map((member) => [member, ""] as const));
}

interface Difference {
  readonly path: string;
  readonly inTree: unknown;
  readonly migrated: unknown;
}

function differences(path: string, inTree: unknown, migrated: unknown): Difference[] {
  if (JSON.stringify(inTree) === JSON.stringify(migrated)) return [];
  if (!isRecord(inTree) || !isRecord(migrated)) return [{ path, inTree, migrated }];
  const keys = [...new Set([...Object.keys(inTree), ...Object.keys(migrated)])].sort();
  return keys.flatMap((key) => differences(path === "" ? key : `${path}.${key}`, inTree[key], migrated[key]));
}

function textOf({ path, inTree, migrated }: Difference): string {
  return `${path}: ${JSON.stringify(inTree) ?? "absent"} in-tree, ${JSON.stringify(migrated) ?? "absent"} migrated`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
