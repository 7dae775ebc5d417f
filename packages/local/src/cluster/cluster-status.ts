/** What `longshore cluster status` shows, read off the API. */
import { type KubeClient, resources } from "@longshore/kube";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { inTreeHandle } from "../layout/plugins.ts";

/** Nodes and volumes at a glance. */
export interface ClusterStatus {
  readonly nodes: readonly {
    readonly name: string;
    readonly ready: string;
    readonly zone: string;
    readonly migratedPlugins: string;
    readonly attached: number;
  }[];
  readonly volumes: readonly {
    readonly name: string;
    readonly claim: string;
    readonly phase: string;
    readonly handle: string;
  }[];
}

/** Reads the status of a running cluster. */
export async function statusOfCluster(
  cluster: { readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<ClusterStatus> {
  const [nodes, csiNodes, volumes] = await Promise.all([
    cluster.kube.list(resources.nodes, { signal }),
    cluster.kube.list(resources.csiNodes, { signal }),
    cluster.kube.list(resources.persistentVolumes, { signal }),
  ]);
  return {
    nodes: nodes.items.map((node) => ({
      name: node.metadata.name,
      ready: node.status?.conditions?.find((c) => c.type === "Ready")?.status ?? "Unknown",
      zone: node.metadata.labels?.["topology.kubernetes.io/zone"] ?? "",
      migratedPlugins:
        csiNodes.items.find((c) => c.metadata.name === node.metadata.name)?.metadata.annotations?.[
          migratedPluginsAnnotation
        ] ?? "",
      attached: node.status?.volumesAttached?.length ?? 0,
    })),
    volumes: volumes.items.map((pv) => ({
      name: pv.metadata.name,
      claim: `${pv.spec?.claimRef?.namespace ?? ""}/${pv.spec?.claimRef?.name ?? ""}`,
      phase: pv.status?.phase ?? "",
      handle: inTreeHandle(pv.spec) ?? pv.spec?.csi?.volumeHandle ?? "",
    })),
  };
}
