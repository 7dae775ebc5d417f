/**
 * The answer to `/stats/summary`: what the node knows of itself and of the volumes of its pods, in the kubelet's form.
 * Source: docs/behaviour/node-agent.md 13, k8s.io/kubelet/pkg/apis/stats/v1alpha1.
 */
import type { Pod, Stored } from "@longshore/kube";
import type { PodVolumeStats } from "@longshore/volumes";

/** The node itself. */
interface NodeStats {
  readonly nodeName: string;
  /** When the agent started, ISO 8601. */
  readonly startTime: string;
}

/** A pod and its volumes. Containers are not measured. */
interface PodStats {
  readonly podRef: PodVolumeStats["podRef"];
  /** When the agent first had the pod, ISO 8601. */
  readonly startTime: string;
  readonly containers: readonly never[];
  readonly volume?: PodVolumeStats["volume"];
}

/** The figures of a node, as they are served. */
export interface StatsSummary {
  readonly node: NodeStats;
  readonly pods: readonly PodStats[];
}

/** The summary of the node's pods that have begun, in the order of namespace and name. Pure. */
export function statsSummary(
  node: NodeStats,
  pods: Iterable<Stored<Pod>>,
  volumes: readonly PodVolumeStats[],
): StatsSummary {
  const volumesOf = new Map(volumes.map(({ podRef, volume }) => [podRef.uid, volume]));
  const begun = [...pods].flatMap(({ metadata: { name, namespace = "", uid }, status }): PodStats[] => {
    if (status?.startTime === undefined) return [];
    const volume = volumesOf.get(uid);
    const { startTime } = status;
    return [
      {
        podRef: { name, namespace, uid },
        startTime,
        containers: [],
        ...(volume !== undefined && { volume }),
      },
    ];
  });
  return { node, pods: begun.sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1)) };
}

const orderOf = ({ podRef: { namespace, name, uid } }: PodStats) => `${namespace}/${name}/${uid}`;
