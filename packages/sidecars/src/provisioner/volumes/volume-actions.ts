/** The actions of the steps over a PersistentVolume, one small action each. */
import {
  type Actions,
  addFinalizerPatch,
  involvedObject,
  isNotFound,
  type JsonPatchStep,
  type PersistentVolume,
  patchAsSeen,
  removeFinalizerPatch,
  resources,
  type Stored,
  settled,
  withoutFinalizer,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { diskFinalizersOf, provisionerFinalizer } from "@longshore/storage";
import { deleteDisk, secretsUnlessGone } from "../requests/volume-calls.ts";
import type { ObservedVolume, VolumeStep } from "./decide-volume.ts";
import { observeVolume } from "./observe-volume.ts";
import type { VolumeContext } from "./volume-context.ts";

type VolumeActions = Actions<ObservedVolume, VolumeStep>;
type FinalizerStep = "addFinalizer" | "removeProtection" | "removeFinalizer";
type FailureStep = "fail" | "reportFailure" | "retry";

/** The actions. */
export function volumeActions(context: VolumeContext): VolumeActions {
  const { env, metrics } = context;
  return {
    settle: () => settled,
    async readVolume(_, observed, { key, signal }) {
      const live = await env.kube.get(resources.persistentVolumes, { name: key }, { signal });
      if (live === undefined) return settled;
      const { secrets, startedMs } = observed;
      return { observed: { ...observeVolume(context, live), isLive: true, secrets, startedMs } };
    },
    countDeletion(_, { pv, startedMs }) {
      metrics.deleted(pv, env.clock.monotonicMs() - startedMs);
      return settled;
    },
    ...deletionActions(context),
    ...finalizerActions(context),
    ...failureActions(context),
  };
}

function deletionActions(
  context: VolumeContext,
): Pick<VolumeActions, "readSecret" | "deleteDisk" | "deleteObject"> {
  const { env } = context;
  return {
    readSecret: ({ secret }, observed, { signal }) =>
      failing(observed, signal, async () => {
        const values = await secretsUnlessGone(context, secret, signal);
        return { isLive: false, secrets: { from: secret, values: () => values } };
      }),
    deleteDisk: ({ deletion, secrets }, observed, { signal }) =>
      failing(observed, signal, async () => {
        await deleteDisk(context, deletion, secrets(), signal);
        return { isDiskDeleted: true };
      }),
    async deleteObject(_, observed, { signal }) {
      const { name, uid } = observed.pv.metadata;
      context.onCapacityChanged(observed.pv.spec?.storageClassName ?? "");
      await env.kube.delete(resources.persistentVolumes, { name }, { signal, uid });
      return { observed: { ...observed, isObjectDeleted: true } };
    },
  };
}

/** On the version that was seen; with any other version the patch fails, and the next pass reads the current state. */
function finalizerActions(context: VolumeContext): Pick<VolumeActions, FinalizerStep> {
  const sameVersion = ({ metadata }: Stored<PersistentVolume>): JsonPatchStep => ({
    op: "test",
    path: "/metadata/resourceVersion",
    value: metadata.resourceVersion,
  });
  return {
    async addFinalizer(_, { pv }, { signal }) {
      const add = addFinalizerPatch(pv.metadata.finalizers, provisionerFinalizer);
      await patch(context, pv, [sameVersion(pv), ...add], signal);
      return settled;
    },
    async removeProtection(_, { pv }, { signal }) {
      const remove = removeFinalizerPatch(pv.metadata.finalizers, provisionerFinalizer);
      await patch(context, pv, [sameVersion(pv), ...remove], signal);
      return settled;
    },
    async removeFinalizer(_, observed, { signal }) {
      const { pv } = observed;
      const sameObject: JsonPatchStep = { op: "test", path: "/metadata/uid", value: pv.metadata.uid };
      // The place of each finalizer is tested: where others changed the list meanwhile, the next pass does it.
      await patch(context, pv, [sameObject, ...withoutDiskFinalizers(pv)], signal);
      return { observed: { ...observed, isFinalizerRemoved: true } };
    },
  };
}

/** Takes off what has kept the volume for its disk, our finalizer and the in-tree one; places are those that are left by then. */
function withoutDiskFinalizers(pv: Stored<PersistentVolume>): readonly JsonPatchStep[] {
  const steps: JsonPatchStep[] = [];
  let left = pv;
  for (const finalizer of diskFinalizersOf(pv)) {
    steps.push(...removeFinalizerPatch(left.metadata.finalizers, finalizer));
    left = withoutFinalizer(left, finalizer);
  }
  return steps;
}

/** With a patch, since the reference's role may not update volumes. One that comes too late fails, and is retried. */
async function patch(
  { env }: VolumeContext,
  { metadata: { name } }: Stored<PersistentVolume>,
  body: readonly JsonPatchStep[],
  signal: AbortSignal,
): Promise<void> {
  try {
    await patchAsSeen(env.kube, resources.persistentVolumes, { name }, body, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function failureActions({ metrics, events }: VolumeContext): Pick<VolumeActions, FailureStep> {
  return {
    fail: ({ error }, observed) => ({ observed: { ...observed, failure: { error, isReported: false } } }),
    reportFailure({ error }, observed) {
      const { pv } = observed;
      metrics.deleteFailed(pv);
      const subject = involvedObject(resources.persistentVolumes, pv);
      events.event(subject, "Warning", "VolumeFailedDelete", errorChain(error));
      return { observed: { ...observed, failure: { error, isReported: true } } };
    },
    retry({ error }) {
      throw error;
    },
  };
}

/** Runs a part of the deletion; what it throws is reported on the volume. */
async function failing(
  observed: ObservedVolume,
  signal: AbortSignal,
  work: () => Promise<Partial<ObservedVolume>>,
): Promise<{ readonly observed: ObservedVolume }> {
  try {
    return { observed: { ...observed, ...(await work()) } };
  } catch (error) {
    if (signal.aborted) throw error;
    return { observed: { ...observed, failure: { error, isReported: false } } };
  }
}
