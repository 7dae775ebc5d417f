/** The work that sets of pods have in common: the steps of a plan, and their actions, each one write. */
import {
  type Actions,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  type OwnerReference,
  type Pod,
  refOf,
  resources,
  type Stored,
} from "@longshore/kube";

/** One write of a plan. */
export type PodSetStep =
  | { readonly step: "adoptPod"; readonly pod: Stored<Pod>; readonly reference: OwnerReference }
  | { readonly step: "releasePod"; readonly pod: Stored<Pod>; readonly ownerUID: string }
  | { readonly step: "deletePod"; readonly pod: Stored<Pod> }
  | { readonly step: "createPod"; readonly pod: Pod };

/** What a pass knows of its plan. */
export interface PlannedObservation {
  /** Steps of the plan that this pass has done. */
  readonly done: number;
}

/** The actions of the steps; each goes one further in the plan. */
export function podSetActions<O extends PlannedObservation>(kube: KubeClient): Actions<O, PodSetStep> {
  const next = (observed: O) => ({ observed: { ...observed, done: observed.done + 1 } });
  return {
    async adoptPod({ pod, reference }, observed, { signal }) {
      const ownerReferences = [...(pod.metadata.ownerReferences ?? []), reference];
      await writeOwners(kube, pod, ownerReferences, signal);
      return next(observed);
    },
    async releasePod({ pod, ownerUID }, observed, { signal }) {
      const kept = (pod.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== ownerUID);
      await writeOwners(kube, pod, kept, signal);
      return next(observed);
    },
    async deletePod({ pod }, observed, { signal }) {
      await kube.delete(resources.pods, refOf(pod), { uid: pod.metadata.uid, signal }).catch((error) => {
        if (!isConflict(error)) throw error; // Another pod of that name by now: not ours to delete.
      });
      return next(observed);
    },
    async createPod({ pod }, observed, { signal }) {
      await kube.create(resources.pods, pod, { signal }).catch((error) => {
        if (!isAlreadyExists(error)) throw error;
      });
      return next(observed);
    },
  };
}

/** The version that was read: a pod that has changed since is looked at again. */
async function writeOwners(
  kube: KubeClient,
  pod: Stored<Pod>,
  ownerReferences: readonly OwnerReference[],
  signal: AbortSignal,
): Promise<void> {
  const { uid, resourceVersion } = pod.metadata;
  const body = { metadata: { uid, resourceVersion, ownerReferences } };
  await kube.patch(resources.pods, refOf(pod), { type: "merge", body }, { signal }).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
}
