/** The writers of records as Kubernetes objects: a StatefulSet, and its budget. */
import type { PodDisruptionBudget, StatefulSet } from "@longshore/kube";
import { inTreeStorageClassName } from "../layout/in-tree-storage-class.ts";
import { namespace } from "./volume-pod.ts";

/** How the writers run. */
export interface WriterSetOptions {
  readonly replicas: number;
  /** Program and arguments of a writer; the volume's directory is `$(LONGSHORE_MOUNT_DATA)`. */
  readonly command: readonly string[];
}

const writerLabels = { app: "writer" } as const;

/** The StatefulSet of writers, one volume each, no two of them on a node. */
export function writerSet(options: WriterSetOptions): StatefulSet {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "writer", namespace },
    spec: {
      serviceName: "writer",
      replicas: options.replicas,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: writerLabels },
      template: {
        metadata: { labels: writerLabels },
        spec: {
          terminationGracePeriodSeconds: 5,
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: writerLabels } },
              ],
            },
          },
          containers: [
            {
              name: "writer",
              image: "host",
              command: [...options.command],
              env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            storageClassName: inTreeStorageClassName,
            resources: { requests: { storage: "32Mi" } },
          },
        },
      ],
    },
  };
}

/** Lets one writer at a time be evicted. */
export const writerBudget: PodDisruptionBudget = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "writer", namespace },
  spec: { maxUnavailable: 1, selector: { matchLabels: writerLabels } },
};
