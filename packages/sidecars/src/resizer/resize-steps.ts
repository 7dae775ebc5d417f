/** The parts of the controller over the sizes of claims: one read, write, event or call for each step. */
import {
  type Actions,
  apiTime,
  isConflict,
  isNotFound,
  type Next,
  type Pass,
  type Steps,
  settled,
} from "@longshore/kube";
import { secretValues } from "../common/secret-values.ts";
import { type ClaimPatch, keepsProgress } from "./claim-patch.ts";
import { emitOnClaim, patchClaimStatus, patchVolumeSize } from "./claim-writes.ts";
import { decideResizeStep, type ResizeStep } from "./decide-resize-step.ts";
import type { ObservedResize, ResizeProgress } from "./observed-resize.ts";
import type { ResizeContext } from "./resize-context.ts";
import { isFinal, isInUse, isResizeInfeasible } from "./resize-errors.ts";
import { grownBy, grownOnNode } from "./volume-growth.ts";

type ResizeActions = Actions<ObservedResize, ResizeStep>;

/** The parts of the controller. */
export function resizeSteps(context: ResizeContext): Steps<ObservedResize, ResizeStep> {
  return {
    observe: (key) => observeResize(context, key),
    decide: decideResizeStep,
    actions: {
      ...waitingActions(context),
      ...beginningActions(context),
      ...growingActions(context),
      ...storingActions(context),
      ...endEventActions(context),
      ...refusalActions(context),
    },
  };
}

/** Reads the caches for the claim of this key; undefined: it is gone, or has no volume. */
function observeResize(context: ResizeContext, key: string): ObservedResize | undefined {
  const { claims, volumes, driver, memory, podUse, trivial, rules, env } = context;
  const claim = claims.get(key);
  const volume = volumes.get(claim?.spec?.volumeName ?? "");
  if (claim === undefined || volume === undefined) return undefined;
  return {
    claim,
    volume,
    driver: { name: driver.name, inTreeName: driver.inTreeName },
    attempt: memory.of(claim.metadata.uid),
    trivial,
    isInUse: podUse?.isUsed(key) ?? false,
    nowMs: env.clock.monotonicMs(),
    time: apiTime(env.clock.now()),
    rules,
    progress: {},
  };
}

function waitingActions({ env, driver, events, podUse }: ResizeContext) {
  return {
    settle: () => settled,
    wait: ({ delayMs }) => ({ requeueAfterMs: delayMs }),
    followPods: async (_, observed, { key, signal }) => {
      await podUse?.follow(signal);
      return after({ ...observed, isInUse: podUse?.isUsed(key) ?? false }, { arePodsFollowed: true });
    },
    emitInUse: (_, observed) => {
      const { namespace = "", name } = observed.claim.metadata;
      const message = `Unable to expand ${namespace}/${name} because CSI driver ${driver.name} only supports offline expansion and volume is currently in-use`;
      emitOnClaim(events, observed.claim, { type: "Warning", reason: "VolumeResizeFailed", message });
      return after(observed, { isInUseEmitted: true });
    },
    removeOldSize: async (_, { volume }, { signal }) => {
      await patchVolumeSize(env.kube, volume, { oldSize: null }, signal);
      return settled;
    },
  } satisfies Partial<ResizeActions>;
}

function beginningActions({ env, events, memory }: ResizeContext) {
  return {
    storeIntent: async ({ size, patch }, observed, { signal }) => {
      const claim = await patchClaimStatus(env.kube, observed.claim, patch, signal);
      const attempt = { ...memory.of(claim.metadata.uid), classic: !keepsProgress(claim) };
      memory.remember(claim.metadata.uid, attempt);
      return after({ ...observed, claim, attempt }, { begunSize: size });
    },
    emitResizing: (_, observed) => {
      const message = `External resizer is resizing volume ${observed.volume.metadata.name}`;
      emitOnClaim(events, observed.claim, { type: "Normal", reason: "Resizing", message });
      return after(observed, { isResizingEmitted: true });
    },
  } satisfies Partial<ResizeActions>;
}

function growingActions(context: ResizeContext) {
  const { env, driver, memory, timeoutMs } = context;
  return {
    readSecret: orRefused<"readSecret">(context, async ({ reference }, observed, { signal }) =>
      after(observed, { secrets: await secretValues(env.kube, reference, signal) }),
    ),
    expandVolume: orRefused<"expandVolume">(context, async (step, observed, { signal }) => {
      const request = { ...step.parameters, secrets: { ...observed.progress.secrets } };
      const options = { signal, timeoutMs, migrated: step.migrated };
      const answer = await driver.csi.controller.controllerExpandVolume(request, options);
      const grown = grownBy(observed.volume, step.parameters.capacityRange.requiredBytes, answer);
      memory.forget(observed.claim.metadata.uid);
      return after(observed, { grown: { ...grown, time: apiTime(env.clock.now()) } });
    }),
    leaveToNode: ({ size }, observed) => {
      memory.forget(observed.claim.metadata.uid);
      return after(observed, { grown: { ...grownOnNode(size), time: observed.time } });
    },
  } satisfies Partial<ResizeActions>;
}

function storingActions({ env: { kube } }: ResizeContext) {
  const report = async (
    { patch }: { readonly patch: ClaimPatch },
    observed: ObservedResize,
    { signal }: Pass,
  ): Promise<Next<ObservedResize>> => {
    await patchClaimStatus(kube, observed.claim, patch, signal);
    return after(observed, { isReported: true });
  };
  return {
    storeCapacity: orNotStored<"storeCapacity">(async ({ change }, observed, { signal }) => {
      await patchVolumeSize(kube, observed.volume, change, signal);
      return after(observed, { isCapacityStored: true });
    }),
    reportNodePending: orNotStored<"reportNodePending">(report),
    reportFinished: orNotStored<"reportFinished">(report),
  } satisfies Partial<ResizeActions>;
}

function endEventActions({ events }: ResizeContext) {
  return {
    emitNodePending: (_, observed) => {
      const message = "Require file system resize of volume on node";
      emitOnClaim(events, observed.claim, { type: "Normal", reason: "FileSystemResizeRequired", message });
      return after(observed, { isEndEmitted: true });
    },
    emitFinished: (_, observed) => {
      const message = "Resize volume succeeded";
      emitOnClaim(events, observed.claim, { type: "Normal", reason: "VolumeResizeSuccessful", message });
      return after(observed, { isEndEmitted: true });
    },
    emitNotStored: ({ message }, observed) => {
      emitOnClaim(events, observed.claim, { type: "Warning", reason: "VolumeResizeFailed", message });
      const { storeFailure } = observed.progress;
      return after(observed, { storeFailure: { error: storeFailure?.error, isEmitted: true } });
    },
  } satisfies Partial<ResizeActions>;
}

function refusalActions(context: ResizeContext) {
  const { env, events } = context;
  return {
    rememberRefusal: ({ size, error }, observed) => {
      rememberRefusal(context, observed.claim, size, error);
      return refused(observed, { error, time: apiTime(env.clock.now()), isRemembered: true });
    },
    emitRefused: ({ message }, observed) => {
      emitOnClaim(events, observed.claim, { type: "Warning", reason: "VolumeResizeFailed", message });
      return refused(observed, { isEmitted: true });
    },
    reportRefused: async ({ patch }, observed, { signal }) => {
      try {
        await patchClaimStatus(env.kube, observed.claim, patch, signal);
      } catch (statusError) {
        if (signal.aborted) throw statusError;
        // It is remembered; the next attempt reports it again.
        env.logger.warn("cannot report a failed expansion", { error: statusError });
      }
      return refused(observed, { isReported: true });
    },
    fail: ({ error }) => {
      throw error;
    },
  } satisfies Partial<ResizeActions>;
}

function rememberRefusal(
  { env, memory, podUse, rules }: ResizeContext,
  { metadata: { uid, name } }: ObservedResize["claim"],
  size: string,
  error: unknown,
): void {
  const untilMs = env.clock.monotonicMs() + rules.infeasibleRetryMs;
  const isInfeasible = isResizeInfeasible(error);
  memory.remember(uid, {
    classic: memory.of(uid).classic ?? false,
    refused: isFinal(error),
    inUse: isInUse(error) && podUse !== undefined,
    ...(isInfeasible ? { infeasible: { request: size, untilMs } } : {}),
  });
  if (isInfeasible) env.logger.warn("a volume cannot be expanded as asked", { claim: name, error });
}

type Action<K extends ResizeStep["step"]> = (
  step: Extract<ResizeStep, { readonly step: K }>,
  observed: ObservedResize,
  pass: Pass,
) => Promise<Next<ObservedResize>>;

/** The action, with a failure of it in what is observed next: the attempt has failed. */
function orRefused<K extends ResizeStep["step"]>({ env }: ResizeContext, action: Action<K>): Action<K> {
  return async (step, observed, pass) => {
    try {
      return await action(step, observed, pass);
    } catch (error) {
      if (pass.signal.aborted) throw error;
      return refused(observed, { error, time: apiTime(env.clock.now()) });
    }
  };
}

/** The action, with a failure of it in what is observed next: what the volume has become is not stored. */
function orNotStored<K extends ResizeStep["step"]>(action: Action<K>): Action<K> {
  return async (step, observed, pass) => {
    try {
      return await action(step, observed, pass);
    } catch (error) {
      // Conflict: not a failure; retry with fresh state.
      if (pass.signal.aborted || isConflict(error) || isNotFound(error)) throw error;
      return after(observed, { storeFailure: { error } });
    }
  };
}

function after(observed: ObservedResize, done: ResizeProgress): { readonly observed: ObservedResize } {
  return { observed: { ...observed, progress: { ...observed.progress, ...done } } };
}

function refused(observed: ObservedResize, how: Partial<NonNullable<ResizeProgress["refusal"]>>) {
  const before = observed.progress.refusal ?? { error: undefined, time: observed.time };
  return after(observed, { refusal: { ...before, ...how } });
}
