/** Reads what the decision of one volume needs: live from the API server, or from the caches of the run. */
import { type KubeClient, type KubeObject, type Resource, resources, type Stored } from "@longshore/kube";
import type { PlannedVolume, ScaledWorkload, VolumeObservation } from "./conversion-types.ts";
import type { DiskUsers, VolumeObjects } from "./disk-users.ts";

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

/** The objects of a volume as the API server has them now. */
export async function liveObjects(
  kube: KubeClient,
  { volume, toAfter, claim: { namespace, name } }: PlannedVolume,
  signal: AbortSignal,
): Promise<VolumeObjects> {
  const options = { signal };
  const [from, to, claim] = await Promise.all([
    kube.get(resources.persistentVolumes, { name: volume }, options),
    kube.get(resources.persistentVolumes, { name: toAfter.metadata?.name ?? "" }, options),
    kube.get(resources.persistentVolumeClaims, { namespace, name }, options),
  ]);
  return { from, to, claim };
}

/**
 * Workloads are read live: a run has caches of none.
 * @param objects those of the volume, live or as the caches have them
 * @param isScaled the run has scaled the workloads: those without replicas are to get theirs again
 */
export async function observeVolume(
  kube: KubeClient,
  users: Pick<DiskUsers, "of">,
  planned: PlannedVolume,
  objects: VolumeObjects,
  isScaled: boolean,
  signal: AbortSignal,
): Promise<VolumeObservation> {
  const { namespace, name } = planned.claim;
  const workloads = await Promise.all(
    planned.workloads.map((each) => kube.get(workloadResource(each), each, { signal })),
  );
  const withReplicas = (isUp: boolean) =>
    planned.workloads.filter((workload, at) => {
      const found = workloads[at] as Stored<Scaled> | undefined;
      if (found?.metadata.uid !== workload.uid) return false;
      return (found.spec?.replicas ?? 1) > 0 === isUp;
    });
  return {
    ...objects,
    users: users.of([planned.fromBefore, planned.toAfter], { namespace, name }),
    workloadsUp: withReplicas(true),
    workloadsDown: isScaled ? withReplicas(false).filter(({ replicas }) => replicas > 0) : [],
  };
}
