/** The caches of the scheduler and their indexes. */
import {
  type CSINode,
  type Informer,
  keyOf,
  type Node,
  type ObjectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type SharedInformers,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { claimKeysOf } from "./pod-claims.ts";

/** What the scheduler reads. */
export interface SchedulerCaches {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly csiNodes: Informer<CSINode>;
}

const podsByNodeIndex = "scheduler/node";
const unscheduledByClaimIndex = "scheduler/unscheduledByClaim";
/** Pods without a node have this value in the index of pods by node; no node has an empty name. */
const unscheduled = "";

/** The caches among the shared ones. */
export function schedulerCaches(informers: SharedInformers): SchedulerCaches {
  return {
    pods: informers.of(resources.pods, {
      indexes: {
        [podsByNodeIndex]: (pod) => [pod.spec?.nodeName ?? unscheduled],
        [unscheduledByClaimIndex]: (pod) => (isUnscheduled(pod) ? claimKeysOf(pod) : []),
      },
    }),
    nodes: informers.of(resources.nodes),
    claims: informers.of(resources.persistentVolumeClaims),
    volumes: informers.of(resources.persistentVolumes),
    classes: informers.of(resources.storageClasses),
    csiNodes: informers.of(resources.csiNodes),
  };
}

/** Whether the pod has no node yet. */
export function isUnscheduled(pod: Pod): boolean {
  return pod.spec?.nodeName === undefined;
}

/** The pods of the cache that are bound to the node, those that have ended among them. */
export function podsBoundTo({ pods }: SchedulerCaches, nodeName: string): readonly Stored<Pod>[] {
  return pods.byIndex(podsByNodeIndex, nodeName);
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
