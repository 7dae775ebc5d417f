/** One pod that writes records, kept by a StatefulSet: the form of the workloads beside those of the plugins. */
import { type PodSpec, resources, type StatefulSet } from "@longshore/kube";
import { swarmWriter } from "../swarm-writer.ts";
import { namespace, type WorkloadEnv } from "./workload.ts";

/** The StatefulSet of one writer. */
export function oneWriter(
  name: string,
  volumes: PodSpec["volumes"],
  writer = "$(POD_NAME)",
  program = swarmWriter,
): StatefulSet {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace },
    spec: {
      serviceName: name,
      replicas: 1,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: "writer",
              image: "host",
              command: [program, "$(LONGSHORE_MOUNT_DATA)", writer],
              env: [
                { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
                { name: "POD_UID", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
              ],
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            },
          ],
          ...(volumes === undefined ? {} : { volumes }),
        },
      },
    },
  };
}

/** Lets the pods of a set end. */
export async function endWriters({ cluster, signal }: WorkloadEnv, name: string): Promise<void> {
  const patch = { type: "merge", body: { spec: { replicas: 0 } } } as const;
  await cluster.kube.patch(resources.statefulSets, { namespace, name }, patch, { signal });
}

/** Deletes those claims that the predicate selects. */
export async function deleteClaims(
  { cluster, signal }: WorkloadEnv,
  selects: (claim: string) => boolean,
): Promise<void> {
  for (const { metadata } of cluster.objects(resources.persistentVolumeClaims)) {
    const { name } = metadata;
    if (selects(name)) {
      await cluster.kube.delete(resources.persistentVolumeClaims, { namespace, name }, { signal });
    }
  }
}
