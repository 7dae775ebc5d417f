/** The caches of the scheduler and their indexes. */
import {
  type CSIDriver,
  type CSINode,
  type CSIStorageCapacity,
  type Informer,
  keyOf,
  type Node,
  type ObjectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  parseQuantity,
  resources,
  type SharedInformers,
  type StorageClass,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { classOfClaim, classOfVolume } from "@longshore/volumes";
import { claimKeysOf } from "./pod-claims.ts";

/** What the scheduler reads. */
export interface SchedulerCaches {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly csiNodes: Informer<CSINode>;
  readonly csiDrivers: Informer<CSIDriver>;
  readonly attachments: Informer<VolumeAttachment>;
  /** Undefined until the API server is known to have such objects. */
  capacities(): Informer<CSIStorageCapacity> | undefined;
}

const podsByNodeIndex = "scheduler/node";
const scheduledByClaimIndex = "scheduler/scheduledByClaim";
const unboundByClassIndex = "scheduler/unboundByClass";
const availableByClassIndex = "scheduler/availableByClass";
const attachmentsByNodeIndex = "scheduler/attachmentsByNode";
const volumesByClaimIndex = "scheduler/volumesByClaim";
/** Index of capacities by the name of their class. */
export const capacitiesByClassIndex = "scheduler/capacitiesByClass";
const unscheduledByClaimIndex = "scheduler/unscheduledByClaim";
/** Pods without a node have this value in the index of pods by node; no node has an empty name. */
const unscheduled = "";

/** The caches among the shared ones. */
export function schedulerCaches(informers: SharedInformers): SchedulerCaches {
  return {
    pods: informers.of(resources.pods, {
      indexes: {
        [podsByNodeIndex]: (pod) => [pod.spec?.nodeName ?? unscheduled],
        [scheduledByClaimIndex]: (pod) => (isUnscheduled(pod) ? [] : claimKeysOf(pod)),
        [unscheduledByClaimIndex]: (pod) => (isUnscheduled(pod) ? claimKeysOf(pod) : []),
      },
    }),
    nodes: informers.of(resources.nodes),
    claims: informers.of(resources.persistentVolumeClaims, {
      indexes: {
        [unboundByClassIndex]: (claim) => (claim.spec?.volumeName === undefined ? [classOfClaim(claim)] : []),
      },
    }),
    volumes: informers.of(resources.persistentVolumes, {
      indexes: {
        [availableByClassIndex]: (volume) => (isAvailable(volume) ? [classOfVolume(volume)] : []),
        [volumesByClaimIndex]: ({ spec }) =>
          spec?.claimRef == null ? [] : [`${spec.claimRef.namespace}/${spec.claimRef.name}`],
      },
    }),
    classes: informers.of(resources.storageClasses),
    csiNodes: informers.of(resources.csiNodes),
    csiDrivers: informers.of(resources.csiDrivers),
    attachments: informers.of(resources.volumeAttachments, {
      indexes: { [attachmentsByNodeIndex]: ({ spec }) => [spec.nodeName] },
    }),
    capacities: () => undefined,
  };
}

/** The cache of capacities, once the API server is known to have them. */
export function capacitiesCache(informers: SharedInformers): Informer<CSIStorageCapacity> {
  return informers.of(resources.csiStorageCapacities, {
    indexes: { [capacitiesByClassIndex]: ({ storageClassName }) => [storageClassName] },
  });
}

function isAvailable({ spec, status, metadata }: PersistentVolume): boolean {
  return status?.phase === "Available" && spec?.claimRef == null && metadata?.deletionTimestamp === undefined;
}

/** Volumes of the class that no claim has, the smallest first, of the same size by name. */
export function availableVolumesOf(
  { volumes }: SchedulerCaches,
  className: string,
): readonly Stored<PersistentVolume>[] {
  const size = (volume: PersistentVolume) => parseQuantity(volume.spec?.capacity?.storage ?? "0");
  return [...volumes.byIndex(availableByClassIndex, className)].sort(
    (a, b) => size(a).compare(size(b)) || (a.metadata.name < b.metadata.name ? -1 : 1),
  );
}

/** Volumes whose claimRef names the claim. */
export function volumesNaming(
  { volumes }: SchedulerCaches,
  claimKey: string,
): readonly Stored<PersistentVolume>[] {
  return volumes.byIndex(volumesByClaimIndex, claimKey);
}

/** Pods of the cache that have a node and refer to the claim, those that have ended among them. */
export function scheduledPodsUsing({ pods }: SchedulerCaches, claimKey: string): readonly Stored<Pod>[] {
  return pods.byIndex(scheduledByClaimIndex, claimKey);
}

/** Whether the pod has no node yet. */
export function isUnscheduled(pod: Pod): boolean {
  return pod.spec?.nodeName === undefined;
}

/** The pods of the cache that are bound to the node, those that have ended among them. */
export function podsBoundTo({ pods }: SchedulerCaches, nodeName: string): readonly Stored<Pod>[] {
  return pods.byIndex(podsByNodeIndex, nodeName);
}

/** What is attached to the node by CSI, or may be. */
export function attachmentsTo(
  { attachments }: SchedulerCaches,
  nodeName: string,
): readonly Stored<VolumeAttachment>[] {
  return attachments.byIndex(attachmentsByNodeIndex, nodeName);
}

/** Keys of all pods that have no node yet. */
export function unscheduledPods({ pods }: SchedulerCaches): readonly ObjectKey[] {
  return pods.byIndex(podsByNodeIndex, unscheduled).map(keyOf);
}

/** Keys of the pods that have no node yet and refer to the claim. */
export function unscheduledPodsOf(
  { pods }: SchedulerCaches,
  claim: Stored<PersistentVolumeClaim>,
): readonly ObjectKey[] {
  return pods.byIndex(unscheduledByClaimIndex, keyOf(claim)).map(keyOf);
}

/** Keys of the pods that have no node yet, and a claim that could get the volume; none for a volume that is taken. */
export function unscheduledPodsFor(
  caches: SchedulerCaches,
  volume: Stored<PersistentVolume>,
): readonly ObjectKey[] {
  if (!isAvailable(volume)) return [];
  const claims = caches.claims.byIndex(unboundByClassIndex, classOfVolume(volume));
  return claims.flatMap((claim) => unscheduledPodsOf(caches, claim));
}
