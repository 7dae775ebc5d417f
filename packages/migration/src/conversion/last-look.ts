/** What is asked of the API server itself, not of caches, right before a step that cannot be taken back. */
import { isPodTerminal, type KubeClient, type KubeObject, type Resource, resources } from "@longshore/kube";
import { claimNamesOf } from "./conversion-index.ts";
import type { PlannedVolume, Refusal, VolumeObservation, VolumeStep } from "./conversion-types.ts";

const ownerKinds: Readonly<Record<string, Resource<KubeObject>>> = {
  StatefulSet: resources.statefulSets,
  Deployment: resources.deployments,
  ReplicaSet: resources.replicaSets,
};

/** Why the step is not to be done now; undefined: nothing stands against it. */
export async function lastObstacle(
  kube: KubeClient,
  step: VolumeStep,
  planned: PlannedVolume,
  seen: VolumeObservation,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  if (step === "delete claim") return podObstacle(kube, planned, signal);
  return step === "restore policy" ? ownerObstacle(kube, planned, seen, signal) : undefined;
}

/** A pod that has come since: the claim would be deleted under it as soon as it ends. */
async function podObstacle(
  kube: KubeClient,
  { volume, claim: { namespace, name } }: PlannedVolume,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const { items } = await kube.list(resources.pods, { namespace, signal });
  const pod = items.find((each) => !isPodTerminal(each) && claimNamesOf(each).includes(name));
  if (pod === undefined) return undefined;
  return {
    code: "volume-in-use",
    object: `PersistentVolume ${volume}`,
    reason: `Pod ${namespace}/${pod.metadata.name} uses it`,
    remedy: "end the pod",
  };
}

/** With an owner that is gone the garbage collector deletes the claim; with the policy back, the disk goes, too. */
async function ownerObstacle(
  kube: KubeClient,
  { claim: ref }: PlannedVolume,
  { claim }: VolumeObservation,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  for (const { kind, name, uid } of claim?.metadata.ownerReferences ?? []) {
    const resource = ownerKinds[kind];
    if (resource === undefined) continue;
    const owner = await kube.get(resource, { namespace: ref.namespace, name }, { signal });
    if (owner?.metadata.uid === uid) continue;
    return {
      code: "owner-needs-action",
      object: `PersistentVolumeClaim ${ref.namespace}/${ref.name}`,
      field: "metadata.ownerReferences",
      reason: `${kind} ${name}, its owner, is gone, and the claim is deleted for that; its volume keeps policy Retain`,
      remedy: "remove the reference if the claim is to stay",
    };
  }
  return undefined;
}
