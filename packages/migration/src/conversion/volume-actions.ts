/** The writes of a conversion: each one request, which fails where the object is not the one that was observed. */
import { type KubeClient, type Patch, type PersistentVolume, resources, type Stored } from "@longshore/kube";
import type { PlannedVolume, VolumeObservation, VolumeStep } from "./conversion-types.ts";
import { policyOf } from "./decide-volume-step.ts";
import { workloadResource } from "./observe-volume.ts";

/** What a step has made. */
export interface Made {
  readonly volumeUid?: string;
  readonly claimUid?: string;
}

type Action = (
  kube: KubeClient,
  planned: PlannedVolume,
  seen: VolumeObservation,
  signal: AbortSignal,
) => Promise<Made | undefined>;

/** The steps that write; the others wait. */
export const volumeActions: { readonly [S in VolumeStep]?: Action } = {
  "retain old volume": async (kube, { volume }, { from }, signal) => {
    if (from === undefined) return undefined;
    const patch = policyPatch(from, "Retain");
    // The answer is what was stored: an admission plugin may have changed what was asked for.
    const stored = await kube.patch(resources.persistentVolumes, { name: volume }, patch, { signal });
    if (policyOf(stored) !== "Retain") {
      throw new Error(
        `PersistentVolume ${volume} (spec.persistentVolumeReclaimPolicy): it is ${policyOf(stored)} although Retain was written; see which webhook or controller changes it`,
      );
    }
    return undefined;
  },
  "scale down": async (kube, _planned, { workloadsUp }, signal) => {
    for (const workload of workloadsUp) await scale(kube, workload, 0, signal);
    return undefined;
  },
  "follow growth": async (kube, _planned, { from, to }, signal) => {
    if (from?.spec?.capacity === undefined || to === undefined) return undefined;
    const { uid, resourceVersion, name } = to.metadata;
    const body = { metadata: { uid, resourceVersion }, spec: { capacity: from.spec.capacity } };
    await kube.patch(resources.persistentVolumes, { name }, { type: "merge", body }, { signal });
    return undefined;
  },
  "create new volume": async (kube, { toAfter }, _seen, signal) => {
    const { metadata } = await kube.create(resources.persistentVolumes, toAfter, { signal });
    return { volumeUid: metadata.uid };
  },
  "free new volume": async (kube, _planned, { to }, signal) => {
    if (to === undefined) return undefined;
    const body = {
      metadata: {
        uid: to.metadata.uid,
        resourceVersion: to.metadata.resourceVersion,
        annotations: { "pv.kubernetes.io/bound-by-controller": null },
      },
      spec: { persistentVolumeReclaimPolicy: "Retain", claimRef: { uid: null, resourceVersion: null } },
    };
    await kube.patch(
      resources.persistentVolumes,
      { name: to.metadata.name },
      { type: "merge", body },
      { signal },
    );
    return undefined;
  },
  "delete claim": async (kube, { claim: ref }, { claim }, signal) => {
    if (claim === undefined) return undefined;
    const { uid, resourceVersion } = claim.metadata;
    await kube.delete(resources.persistentVolumeClaims, ref, {
      uid,
      resourceVersion,
      propagationPolicy: "Background",
      signal,
    });
    return undefined;
  },
  "create claim": async (kube, { claimAfter }, _seen, signal) => {
    const { metadata } = await kube.create(resources.persistentVolumeClaims, claimAfter, { signal });
    return { claimUid: metadata.uid };
  },
  "delete old volume": async (kube, { volume }, { from }, signal) => {
    if (from === undefined) return undefined;
    const { uid, resourceVersion } = from.metadata;
    await kube.delete(resources.persistentVolumes, { name: volume }, { uid, resourceVersion, signal });
    return undefined;
  },
  "restore policy": async (kube, { policy }, { to }, signal) => {
    if (to === undefined) return undefined;
    const { name } = to.metadata;
    await kube.patch(resources.persistentVolumes, { name }, policyPatch(to, policy), { signal });
    return undefined;
  },
  "scale up to grow": scaleUp,
  "scale up": scaleUp,
};

async function scaleUp(
  kube: KubeClient,
  _planned: PlannedVolume,
  { workloadsDown }: VolumeObservation,
  signal: AbortSignal,
): Promise<undefined> {
  for (const workload of workloadsDown) await scale(kube, workload, workload.replicas, signal);
}

function policyPatch({ metadata }: Stored<PersistentVolume>, policy: string): Patch {
  const { uid, resourceVersion } = metadata;
  const spec = { persistentVolumeReclaimPolicy: policy };
  return { type: "merge", body: { metadata: { uid, resourceVersion }, spec } };
}

async function scale(
  kube: KubeClient,
  workload: PlannedVolume["workloads"][number],
  replicas: number,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { uid: workload.uid }, spec: { replicas } };
  const { namespace, name } = workload;
  await kube.patch(workloadResource(workload), { namespace, name }, { type: "merge", body }, { signal });
}
