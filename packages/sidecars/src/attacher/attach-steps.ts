/** The actions of {@link decideAttachStep}: one read, write, event or call each. */
import {
  type Actions,
  addFinalizerPatch,
  apiTime,
  involvedObject,
  isConflict,
  isNotFound,
  type Next,
  type Pass,
  patchAsSeen,
  resources,
  type Steps,
  type Stored,
  settled,
  type VolumeAttachment,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { secretValues } from "../common/secret-values.ts";
import type { AttachContext } from "./attach-context.ts";
import {
  attachedPatch,
  detachedPatch,
  failedPatch,
  finalizerRemovalPatch,
  intentPatch,
  type PatchBody,
} from "./attachment-patches.ts";
import { type AttachStep, decideAttachStep } from "./decide-attach-step.ts";
import { type AttachProgress, type ObservedAttachment, observeAttachment } from "./observed-attachment.ts";

/** A pass that found its volume being released begins again after this time, in milliseconds. */
const RELEASE_RETRY_MS = 200;

type AttachActions = Actions<ObservedAttachment, AttachStep>;

/** The parts of the controller over the attachments of one driver. */
export function attachSteps(context: AttachContext): Steps<ObservedAttachment, AttachStep> {
  return {
    observe: (name) => observeAttachment(context, name),
    decide: decideAttachStep,
    actions: attachActions(context),
  };
}

function attachActions(context: AttachContext): AttachActions {
  return {
    settle: (_, { attachment }) => {
      // Only at the end of a pass that succeeded: after a failure the call is still to be repeated.
      context.forced.delete(attachment.metadata.name);
      return settled;
    },
    // The volume that was observed is from before the removal: a fresh pass reads what is left of it.
    waitForVolumeRelease: () => ({ requeueAfterMs: RELEASE_RETRY_MS }),
    ...readActions(context),
    ...attachingActions(context),
    ...detachingActions(context),
    ...failureActions(context),
  };
}

function readActions({ env, announcedNodeId }: AttachContext) {
  return {
    readSecret: orFailed<"readSecret">(async ({ reference }, observed, { signal }) =>
      after(observed, { secrets: await secretValues(env.kube, reference, signal) }),
    ),
    readAnnouncedNodeId: orFailed<"readAnnouncedNodeId">(async ({ nodeName }, observed, { signal }) =>
      after(observed, { announced: { nodeId: await announcedNodeId?.(nodeName, signal) } }),
    ),
  };
}

function attachingActions(context: AttachContext) {
  const { env, driver, rules, timeoutMs } = context;
  return {
    addVolumeFinalizer: orFailed<"addVolumeFinalizer">(async ({ volume }, observed, { signal }) => {
      const body = addFinalizerPatch(volume.metadata.finalizers, rules.finalizer);
      const ref = { name: volume.metadata.name };
      const held = await patchAsSeen(env.kube, resources.persistentVolumes, ref, body, { signal });
      return { observed: { ...observed, volume: held } };
    }),
    storeIntent: orFailed<"storeIntent">(async ({ nodeId }, observed, { signal }) => {
      const body = intentPatch(observed.attachment, rules.finalizer, nodeId);
      return { observed: { ...observed, attachment: await patch(context, observed, body, signal) } };
    }),
    publish: orFailed<"publish">(async ({ parameters, migrated }, observed, { signal }) => {
      const request = { ...parameters, secrets: { ...observed.progress.secrets } };
      const options = { signal, timeoutMs, migrated };
      const { publishContext } = await driver.csi.controller.controllerPublishVolume(request, options);
      return after(observed, { publishContext });
    }),
    reportAttached: orFailed<"reportAttached">(async ({ publishContext }, observed, { signal }) => {
      await patchStatus(context, observed, attachedPatch(observed.attachment, publishContext), signal);
      return after(observed, { isReported: true });
    }),
  };
}

function detachingActions(context: AttachContext) {
  const { driver, rules, timeoutMs } = context;
  return {
    unpublish: orFailed<"unpublish">(async ({ parameters, migrated }, observed, { signal }) => {
      const request = { ...parameters, secrets: { ...observed.progress.secrets } };
      await driver.csi.controller.controllerUnpublishVolume(request, { signal, timeoutMs, migrated });
      return after(observed, { isUnpublished: true });
    }),
    removeFinalizer: orFailed<"removeFinalizer">(async (_, observed, { signal }) => {
      const body = finalizerRemovalPatch(observed.attachment, rules.finalizer);
      const left = await unlessGone(patch(context, observed, body, signal));
      return left === undefined
        ? after(observed, { isReported: true })
        : { observed: { ...observed, attachment: left } };
    }),
    reportDetached: orFailed<"reportDetached">(async (_, observed, { signal }) => {
      await unlessGone(patchStatus(context, observed, detachedPatch(observed.attachment), signal));
      return after(observed, { isReported: true });
    }),
  };
}

function failureActions(context: AttachContext): Pick<AttachActions, "emitError" | "reportError" | "fail"> {
  const { env, events } = context;
  return {
    emitError: ({ goal, error }, observed) => {
      const subject = involvedObject(resources.volumeAttachments, observed.attachment);
      const reason = goal === "attach" ? "FailedAttachVolume" : "FailedDetachVolume";
      events.event(subject, "Warning", reason, errorChain(error));
      return after(observed, { failure: { error, isEmitted: true } });
    },
    reportError: async ({ goal, error }, observed, { signal }) => {
      const body = failedPatch(observed.attachment, goal, error, apiTime(env.clock.now()));
      try {
        await patchStatus(context, observed, body, signal);
      } catch (statusError) {
        if (!isNotFound(statusError))
          env.logger.warn("cannot report a failed attachment", { error: statusError });
      }
      return after(observed, { failure: { error, isEmitted: true, isReported: true } });
    },
    fail: ({ error }) => {
      throw error;
    },
  };
}

type Action<K extends AttachStep["step"]> = (
  step: Extract<AttachStep, { readonly step: K }>,
  observed: ObservedAttachment,
  pass: Pass,
) => Promise<Next<ObservedAttachment>>;

/** The action, with a failure of it in what is observed next, to be reported. */
function orFailed<K extends AttachStep["step"]>(action: Action<K>): Action<K> {
  return async (step, observed, pass) => {
    try {
      return await action(step, observed, pass);
    } catch (error) {
      // Conflict: not a failure; retry with fresh state.
      if (pass.signal.aborted || isConflict(error)) throw error;
      return after(observed, { failure: { error } });
    }
  };
}

function after(
  observed: ObservedAttachment,
  done: AttachProgress,
): { readonly observed: ObservedAttachment } {
  return { observed: { ...observed, progress: { ...observed.progress, ...done } } };
}

async function unlessGone<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return undefined;
  }
}

function patch(
  { env }: AttachContext,
  { attachment }: ObservedAttachment,
  body: PatchBody,
  signal: AbortSignal,
  subresource?: "status",
): Promise<Stored<VolumeAttachment>> {
  const ref = { name: attachment.metadata.name };
  const options = subresource === undefined ? { signal } : { signal, subresource };
  return env.kube.patch(resources.volumeAttachments, ref, { type: "merge", body }, options);
}

const patchStatus = (
  context: AttachContext,
  observed: ObservedAttachment,
  body: PatchBody,
  signal: AbortSignal,
) => patch(context, observed, body, signal, "status");
