/** A cluster that a run carries over and judges: what the run acts on, and where it reads what came of it. */
import type { KubeClient } from "@longshore/kube";
import type { Platform } from "@longshore/migration";
import type { Host } from "@longshore/runtime";
import type { CloudProvider } from "@longshore/volumes";
import { readPodLogs } from "../containers/read-pod-logs.ts";
import type { ClusterConfig } from "../layout/cluster-config.ts";
import type { PluginName } from "../layout/plugins.ts";
import type { ClusterEnv, SupervisedCluster } from "./process-cluster.ts";

/** A call at the disk cloud, as far as it is counted. */
export interface CountedCall {
  readonly seq: number;
  readonly path: "in-tree" | "csi";
  /** Who called, e.g. `attach-detach-controller`. */
  readonly component: string;
  /** e.g. `attachDisk`. */
  readonly op: string;
  /** Whose disk API was called; left out: `aws-ebs`. */
  readonly provider?: CloudProvider;
  /** Instance the call concerns, if any. */
  readonly instanceId: string | undefined;
}

/** A cluster that a run carries over and judges. It can be of processes, or in this process. */
export interface ObservedCluster {
  readonly config: ClusterConfig;
  readonly kube: KubeClient;
  readonly platform: Platform;
  /** Host on which the journals lie. */
  readonly host: Host;
  /** The journal of a plugin's crossing. */
  journalFile(plugin: PluginName): string;
  /** Logs of every pod that has had this name in the default namespace. */
  podLogs(podName: string): Promise<readonly string[]>;
  /** Every call that the disk cloud has seen. */
  cloudCalls(signal: AbortSignal): Promise<readonly CountedCall[]>;
}

/** A cluster of processes as an observed one. */
export function observedCluster(env: ClusterEnv, cluster: SupervisedCluster): ObservedCluster {
  const { config, kube, platform, layout, cloud } = cluster;
  return {
    config,
    kube,
    platform,
    host: env.host,
    journalFile: layout.journalFile,
    podLogs: (podName) => readPodLogs(env.host, layout.podLogDir, "default", podName),
    cloudCalls: (signal) => cloud.calls(0, signal),
  };
}
