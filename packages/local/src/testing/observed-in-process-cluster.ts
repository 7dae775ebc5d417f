/** A cluster in this process as a run sees it that carries it over and judges it. */
import { SimulatedHost } from "@longshore/runtime";
import type { InProcessCluster } from "../cluster/in-process-cluster.ts";
import type { ObservedCluster } from "../cluster/observed-cluster.ts";

/** Wraps a cluster in this process for a run that carries it over. The journals are on a host of their own. */
export function observedInProcessCluster(cluster: InProcessCluster): ObservedCluster {
  return {
    config: cluster.config,
    kube: cluster.kube,
    platform: cluster.platform,
    host: new SimulatedHost({ name: "operator" }),
    journalFile: (plugin) => `/crossing-${plugin}.json`,
    podLogs: (podName) => cluster.podLogs(podName),
    cloudCalls: (signal) => cluster.cloud.calls(0, signal),
  };
}
