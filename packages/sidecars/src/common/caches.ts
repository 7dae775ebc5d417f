/**
 * Which objects the sidecars of a process keep in memory, and how much of each. The options stand here once, so that
 * sidecars that share their informers share each cache, too. What is written back whole is never trimmed.
 */
import {
  type CSINode,
  type CSIStorageCapacity,
  type Informer,
  isPodTerminal,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type SharedInformers,
  type StorageClass,
  type Stored,
  type VolumeAttachment,
  type VolumeAttributesClass,
} from "@longshore/kube";
import {
  managedByLabel,
  snapshotResources,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { byVolume } from "./attachments.ts";

/** All VolumeAttachments; indexed `byVolume`. */
export function cachedAttachments(informers: SharedInformers): Informer<VolumeAttachment> {
  return informers.of(resources.volumeAttachments, { indexes: { byVolume } });
}

/** All PersistentVolumes, whole. */
export function cachedVolumes(informers: SharedInformers): Informer<PersistentVolume> {
  return informers.of(resources.persistentVolumes);
}

/** All claims, whole. */
export function cachedClaims(informers: SharedInformers): Informer<PersistentVolumeClaim> {
  return informers.of(resources.persistentVolumeClaims);
}

/** All StorageClasses. */
export function cachedClasses(informers: SharedInformers): Informer<StorageClass> {
  return informers.of(resources.storageClasses);
}

/** All VolumeAttributesClasses. Ask `servedVersion` first: clusters before 1.31 have none. */
export function cachedAttributesClasses(informers: SharedInformers): Informer<VolumeAttributesClass> {
  return informers.of(resources.volumeAttributesClasses);
}

/**
 * Which claims the pods use on which node, and nothing else of a pod; indexed `byClaim` (`namespace/name`), ended pods left out.
 * A cluster has many pods: begin to follow them only once something depends on it.
 */
export function cachedPodsUsingClaims(informers: SharedInformers): Informer<Pod> {
  return informers.of(resources.pods, { transform: onlyClaims, indexes: { byClaim } });
}

/** What the nodes say of their drivers. */
export function cachedCsiNodes(informers: SharedInformers): Informer<CSINode> {
  return informers.of(resources.csiNodes);
}

/** The objects in one namespace that carry these labels. Ask first whether the kind is served: it is optional. */
export function cachedCapacities(
  informers: SharedInformers,
  namespace: string,
  labels: Readonly<Record<string, string>>,
): Informer<CSIStorageCapacity> {
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  return informers.of(resources.csiStorageCapacities, { namespace, labelSelector });
}

/** Names and labels of the nodes: nothing else of a node is requested or kept. */
export function cachedNodes(informers: SharedInformers): Informer<Node> {
  return informers.of(resources.nodes, { metadataOnly: true, transform: onlyLabels });
}

function onlyLabels(node: Stored<Node>): Stored<Node> {
  const { name, uid, resourceVersion, labels } = node.metadata;
  return {
    metadata: { name, uid, resourceVersion, ...(labels === undefined ? {} : { labels }) },
  } as Stored<Node>;
}

/** Nodes with their conditions: nothing else of a node is kept. */
export function cachedNodeConditions(informers: SharedInformers): Informer<Node> {
  return informers.of(resources.nodes, { transform: onlyConditions });
}

function onlyConditions(node: Stored<Node>): Stored<Node> {
  const { name, uid, resourceVersion } = node.metadata;
  const { phase, conditions } = node.status ?? {};
  return {
    metadata: { name, uid, resourceVersion },
    status: { ...(phase === undefined ? {} : { phase }), ...(conditions == null ? {} : { conditions }) },
  } as Stored<Node>;
}

function onlyClaims(pod: Stored<Pod>): Stored<Pod> {
  const { name, namespace, uid, resourceVersion } = pod.metadata;
  const nodeName = pod.spec?.nodeName;
  const onNode = nodeName === undefined ? {} : { nodeName };
  const claims = claimsUsedBy(pod).map((claimName) => ({
    name: claimName,
    persistentVolumeClaim: { claimName },
  }));
  return {
    metadata: { name, namespace, uid, resourceVersion },
    ...(claims.length === 0 ? {} : { spec: { containers: [], volumes: claims, ...onNode } }),
  } as Stored<Pod>;
}

/** Names of the claims that a pod uses, generic ephemeral ones included; none once it has ended. */
function claimsUsedBy(pod: Pod): readonly string[] {
  if (isPodTerminal(pod)) return [];
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim) return [volume.persistentVolumeClaim.claimName];
    // Kubernetes names the claim of a generic ephemeral volume after its pod and volume.
    return volume.ephemeral ? [`${pod.metadata?.name ?? ""}-${volume.name}`] : [];
  });
}

const byClaim = (pod: Stored<Pod>): readonly string[] =>
  claimsUsedBy(pod).map((name) => `${pod.metadata.namespace ?? ""}/${name}`);

/** All VolumeSnapshotContents, or those that one node is responsible for. */
export function cachedSnapshotContents(
  informers: SharedInformers,
  nodeName?: string,
): Informer<VolumeSnapshotContent> {
  const local = nodeName === undefined ? {} : { labelSelector: `${managedByLabel}=${nodeName}` };
  return informers.of(snapshotResources.volumeSnapshotContents, local);
}

/** All VolumeSnapshotClasses. */
export function cachedSnapshotClasses(informers: SharedInformers): Informer<VolumeSnapshotClass> {
  return informers.of(snapshotResources.volumeSnapshotClasses);
}

/** All VolumeSnapshots. */
export function cachedSnapshots(informers: SharedInformers): Informer<VolumeSnapshot> {
  return informers.of(snapshotResources.volumeSnapshots);
}

/** All VolumeGroupSnapshots. */
export function cachedGroupSnapshots(informers: SharedInformers): Informer<VolumeGroupSnapshot> {
  return informers.of(snapshotResources.volumeGroupSnapshots);
}

/** All VolumeGroupSnapshotContents. */
export function cachedGroupSnapshotContents(
  informers: SharedInformers,
): Informer<VolumeGroupSnapshotContent> {
  return informers.of(snapshotResources.volumeGroupSnapshotContents);
}

/** All VolumeGroupSnapshotClasses. */
export function cachedGroupSnapshotClasses(informers: SharedInformers): Informer<VolumeGroupSnapshotClass> {
  return informers.of(snapshotResources.volumeGroupSnapshotClasses);
}
