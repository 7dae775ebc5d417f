/** The actions of the StatefulSet controller, one for each step of its decision; those of revisions are in `revision-actions.ts`. */
import {
  type Actions,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  refOf,
  resources,
  settled,
} from "@longshore/kube";
import type { ObservedStatefulSet, PlanProgress, StatefulSetStep } from "./decide-stateful-set-step.ts";
import { mayAdopt, revisionActions } from "./revision-actions.ts";

/** The table of actions. */
export function statefulSetActions(kube: KubeClient): Actions<ObservedStatefulSet, StatefulSetStep> {
  return {
    ...revisionActions(kube),
    async adoptPod({ pod, reference }, observed, { signal }) {
      if (!(await mayAdopt(kube, observed.set, signal))) return settled;
      const { uid, resourceVersion, ownerReferences = [] } = pod.metadata;
      const body = { metadata: { uid, resourceVersion, ownerReferences: [...ownerReferences, reference] } };
      await kube.patch(resources.pods, refOf(pod), { type: "merge", body }, { signal }).catch((error) => {
        if (!isNotFound(error)) throw error;
      });
      return progressed(observed, { podsAdopted: observed.progress.podsAdopted + 1 });
    },
    async deletePod({ pod }, observed, { signal }) {
      await kube.delete(resources.pods, refOf(pod), { uid: pod.metadata.uid, signal }).catch((error) => {
        if (!isConflict(error)) throw error; // Another pod of that name by now: not ours to delete.
      });
      return progressed(observed, { podsDeleted: observed.progress.podsDeleted + 1 });
    },
    async createClaim({ claim }, observed, { signal }) {
      await unlessExists(kube.create(resources.persistentVolumeClaims, claim, { signal }));
      return progressed(observed, { claimsCreated: observed.progress.claimsCreated + 1 });
    },
    async createPod({ pod }, observed, { signal }) {
      await unlessExists(kube.create(resources.pods, pod, { signal }));
      return progressed(observed, { podsCreated: observed.progress.podsCreated + 1, claimsCreated: 0 });
    },
    async reportStatus({ status, nextMs }, { set }, { signal }) {
      const patch = { type: "merge", body: { status } } as const;
      await kube
        .patch(resources.statefulSets, refOf(set), patch, { subresource: "status", signal })
        .catch((error) => {
          if (!isNotFound(error)) throw error;
        });
      return endOfPass(nextMs);
    },
    settle: ({ nextMs }) => endOfPass(nextMs),
  };
}

const endOfPass = (nextMs: number | undefined) =>
  nextMs === undefined ? settled : { requeueAfterMs: nextMs };

function progressed(observed: ObservedStatefulSet, more: Partial<PlanProgress>) {
  return { observed: { ...observed, progress: { ...observed.progress, ...more } } };
}

async function unlessExists(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error) => {
    if (!isAlreadyExists(error)) throw error;
  });
}
