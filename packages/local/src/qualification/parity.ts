/**
 * Whether a PersistentVolume that the driver provisioned through migration equals the one that the in-tree code
 * makes of the same claim and class. Pure.
 *
 * What must differ is left out: which disk, which claim, and what says who made, bound or serves the volume.
 */
import type { PersistentVolume } from "@longshore/kube";
import { migratedToAnnotation, provisionerFinalizer } from "@longshore/storage";
import { inTreeDeletionFinalizer } from "@longshore/volumes";
import { type ClusterPlugin, inTreeSource } from "../layout/plugins.ts";

/** The paths at which the two differ, with both values; none: they are equal. */
export function differencesOfVolumes(
  plugin: ClusterPlugin,
  inTree: PersistentVolume,
  migrated: PersistentVolume,
): string[] {
  return differences("", comparable(plugin, inTree), comparable(plugin, migrated));
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

function comparable(plugin: ClusterPlugin, { metadata, spec }: PersistentVolume): unknown {
  const source = inTreeSource(plugin, spec);
  const { claimRef, ...rest } = spec ?? {};
  const annotations = Object.entries(metadata?.annotations ?? {}).filter(
    ([key]) => !annotationsOfOrigin.has(key),
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

/** The members that say which volume it is, empty. */
function unnamed({ identity }: ClusterPlugin): Readonly<Record<string, "">> {
  return Object.fromEntries(identity.map((member) => [member, ""] as const));
}

function differences(path: string, a: unknown, b: unknown): string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  if (!isRecord(a) || !isRecord(b)) {
    return [`${path}: ${JSON.stringify(a) ?? "absent"} in-tree, ${JSON.stringify(b) ?? "absent"} migrated`];
  }
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return keys.flatMap((key) => differences(path === "" ? key : `${path}.${key}`, a[key], b[key]));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
