/** The writes of revisions; each goes on with what the server answered, which the cache may be yet to show. */
import {
  type Actions,
  type ControllerRevision,
  isAlreadyExists,
  isConflict,
  isDeleting,
  isNotFound,
  type KubeClient,
  refOf,
  resources,
  type StatefulSet,
  type Stored,
  settled,
} from "@longshore/kube";
import type { ObservedStatefulSet, StatefulSetStep } from "./decide-stateful-set-step.ts";
import { hasTemplate } from "./revisions.ts";

type OfRevisions = Extract<StatefulSetStep, { readonly revision: unknown }>;

/** Their table. */
export function revisionActions(kube: KubeClient): Actions<ObservedStatefulSet, OfRevisions> {
  return {
    async adoptRevision({ revision, reference }, observed, { signal }) {
      if (!(await mayAdopt(kube, observed.set, signal))) return settled;
      const ownerReferences = [...(revision.metadata.ownerReferences ?? []), reference];
      const written = await patchRevision(kube, revision, { metadata: { ownerReferences } }, signal);
      const orphanRevisions = observed.orphanRevisions.filter((one) => one !== revision);
      return { observed: { ...withRevision(observed, revision, written), orphanRevisions } };
    },
    async createRevision({ revision, collisions }, observed, { signal }) {
      try {
        const made = await kube.create(resources.controllerRevisions, revision, { signal });
        return { observed: withRevision(observed, undefined, made) };
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
      return whereTaken(kube, { revision, collisions }, observed, signal);
    },
    async numberRevision({ revision, number }, observed, { signal }) {
      const written = await patchRevision(kube, revision, { revision: number }, signal);
      return { observed: withRevision(observed, revision, written) };
    },
    async removeRevision({ revision }, observed, { signal }) {
      const { uid } = revision.metadata;
      await kube.delete(resources.controllerRevisions, refOf(revision), { uid, signal }).catch((error) => {
        if (!isConflict(error)) throw error; // Another one of that name by now.
      });
      return { observed: withRevision(observed, revision, undefined) };
    },
  };
}

/** Asks the server: what gets an owner that is gone is deleted by the garbage collector. */
export async function mayAdopt(
  kube: KubeClient,
  set: Stored<StatefulSet>,
  signal: AbortSignal,
): Promise<boolean> {
  const now = await kube.get(resources.statefulSets, refOf(set), { signal });
  return now !== undefined && now.metadata.uid === set.metadata.uid && !isDeleting(now);
}

/** The name is taken: by this template, as of a set of this name that was there before; or by another, which asks for another name. */
async function whereTaken(
  kube: KubeClient,
  { revision, collisions }: { readonly revision: ControllerRevision; readonly collisions: number },
  observed: ObservedStatefulSet,
  signal: AbortSignal,
) {
  const { name = "", namespace = "default" } = revision.metadata ?? {};
  const found = await kube.get(resources.controllerRevisions, { name, namespace }, { signal });
  if (found === undefined) return { observed };
  const { set } = observed;
  if (hasTemplate(found, set.spec?.template)) {
    return { observed: withRevision(observed, undefined, { ...found, revision: revision.revision }) };
  }
  const body = { status: { collisionCount: collisions + 1 } };
  const within = { subresource: "status", signal } as const;
  const counted = await kube.patch(resources.statefulSets, refOf(set), { type: "merge", body }, within);
  return { observed: { ...observed, set: counted } };
}

/** Undefined: it is gone. */
async function patchRevision(
  kube: KubeClient,
  revision: Stored<ControllerRevision>,
  { metadata, ...change }: { readonly metadata?: object; readonly revision?: number },
  signal: AbortSignal,
): Promise<Stored<ControllerRevision> | undefined> {
  const { uid, resourceVersion } = revision.metadata;
  const body = { ...change, metadata: { ...metadata, uid, resourceVersion } };
  const patch = { type: "merge", body } as const;
  try {
    return await kube.patch(resources.controllerRevisions, refOf(revision), patch, { signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function withRevision(
  observed: ObservedStatefulSet,
  before: Stored<ControllerRevision> | undefined,
  after: Stored<ControllerRevision> | undefined,
): ObservedStatefulSet {
  const others = observed.revisions.filter((one) => one !== before);
  return { ...observed, revisions: after === undefined ? others : [...others, after] };
}
