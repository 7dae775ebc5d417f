/** Reads the cluster for one decision of the scheduler. */
import { isPodTerminal, keyOf, type Pod, type Stored } from "@longshore/kube";
import type { AssumedPods } from "./assumed-pods.ts";
import type { ClusterView } from "./cluster-view.ts";
import { claimKeysOf } from "./pod-claims.ts";
import {
  attachmentsTo,
  availableVolumesOf,
  capacitiesByClassIndex,
  isUnscheduled,
  podsBoundTo,
  type SchedulerCaches,
  scheduledPodsUsing,
  volumesNaming,
} from "./scheduler-caches.ts";

/** What a view is made from. */
export interface ClusterSources {
  readonly caches: SchedulerCaches;
  readonly assumed: AssumedPods;
  /** Whether the scheduler's gates migrate the in-tree plugin. */
  readonly migrates: (inTreePluginName: string) => boolean;
}

/**
 * The cluster as the pod of `key` finds it, without what was assumed for that pod before. Only what is asked for is
 * read; what was read stays as it was, so that a decision on the same view is the same decision.
 */
export function observeCluster({ caches, assumed, migrates }: ClusterSources, key: string): ClusterView {
  const { pods, nodes, claims, volumes, classes, csiNodes, csiDrivers } = caches;
  const isStillAssumed = (pod: Stored<Pod>) => {
    const cached = pods.get(keyOf(pod));
    // Once the cache shows its node the pod counts there; counted here as well, it would count twice.
    return cached?.metadata.uid === pod.metadata.uid && isUnscheduled(cached) && keyOf(pod) !== key;
  };
  const claim = readOnce((claimKey) => claims.get(claimKey));
  return {
    nodes: nodes.list(),
    podsOn: readOnce((nodeName) => [
      ...podsBoundTo(caches, nodeName).filter((pod) => !isPodTerminal(pod)),
      ...assumed.on(nodeName).filter(isStillAssumed),
    ]),
    claim: (namespace, name) => claim(`${namespace}/${name}`),
    volume: readOnce((name) => volumes.get(name)),
    storageClass: readOnce((name) => classes.get(name)),
    csiNode: readOnce((name) => csiNodes.get(name)),
    csiDriver: readOnce((name) => csiDrivers.get(name)),
    attachmentsOn: readOnce((nodeName) => attachmentsTo(caches, nodeName)),
    capacities: readOnce((className) => caches.capacities()?.byIndex(capacitiesByClassIndex, className)),
    podsUsing: readOnce((claimKey) => [
      ...scheduledPodsUsing(caches, claimKey).filter((pod) => !isPodTerminal(pod)),
      ...assumed.all().filter((pod) => isStillAssumed(pod) && claimKeysOf(pod).includes(claimKey)),
    ]),
    availableVolumes: readOnce((className) => availableVolumesOf(caches, className)),
    volumesNaming: readOnce((claimKey) => volumesNaming(caches, claimKey)),
    migrates,
  };
}

function readOnce<R>(read: (key: string) => R): (key: string) => R {
  const known = new Map<string, { readonly answer: R }>();
  return (key) => {
    const entry = known.get(key) ?? { answer: read(key) };
    known.set(key, entry);
    return entry.answer;
  };
}
