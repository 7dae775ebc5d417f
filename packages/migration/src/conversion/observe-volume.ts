/** Reads what the decision of one volume needs, live from the API server. */
import { type KubeClient, type KubeObject, type Resource, resources, type Stored } from "@longshore/kube";
import type { PlannedVolume, ScaledWorkload, VolumeObservation } from "./conversion-types.ts";
import type { DiskUsers } from "./disk-users.ts";

type Scaled = KubeObject & { readonly spec?: { readonly replicas?: number } };

/** The resource of a workload. */
export function workloadResource({ kind }: ScaledWorkload): Resource<Scaled> {
  switch (kind) {
    case "StatefulSet":
      return resources.statefulSets as Resource<Scaled>;
    case "Deployment":
      return resources.deployments as Resource<Scaled>;
    case "ReplicaSet":
      return resources.replicaSets as Resource<Scaled>;
  }
}

/** @param isScaled the run has scaled the workloads: those without replicas are to get theirs again */
export async function observeVolume(
  kube: KubeClient,
  users: Pick<DiskUsers, "of">,
  planned: PlannedVolume,
  isScaled: boolean,
  signal: AbortSignal,
): Promise<VolumeObservation> {
  const { namespace, name } = planned.claim;
  const to = planned.toAfter.metadata?.name ?? "";
  const options = { signal };
  const [fromNow, toNow, claim, ...workloads] = await Promise.all([
    kube.get(resources.persistentVolumes, { name: planned.volume }, options),
    kube.get(resources.persistentVolumes, { name: to }, options),
    kube.get(resources.persistentVolumeClaims, { namespace, name }, options),
    ...planned.workloads.map((each) => kube.get(workloadResource(each), each, options)),
  ]);
  const withReplicas = (isUp: boolean) =>
    planned.workloads.filter((workload, at) => {
      const found = workloads[at] as Stored<Scaled> | undefined;
      if (found?.metadata.uid !== workload.uid) return false;
      return (found.spec?.replicas ?? 1) > 0 === isUp;
    });
  return {
    from: fromNow,
    to: toNow,
    claim,
    users: users.of([planned.fromBefore, planned.toAfter], { namespace, name }),
    workloadsUp: withReplicas(true),
    workloadsDown: isScaled ? withReplicas(false).filter(({ replicas }) => replicas > 0) : [],
  };
}
