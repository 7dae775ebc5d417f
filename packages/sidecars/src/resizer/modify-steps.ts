/** The parts of the controller over the attributes of claims: one read, write, event or call for each step. */
import {
  type Actions,
  apiTime,
  isConflict,
  isNotFound,
  type Next,
  type Pass,
  refOf,
  resources,
  type Steps,
  settled,
} from "@longshore/kube";
import { secretValues } from "../common/secret-values.ts";
import type { ClaimPatch } from "./claim-patch.ts";
import { emitOnClaim, patchClaimStatus } from "./claim-writes.ts";
import { decideModifyStep, type ModifyStep, refusalOf } from "./decide-modify-step.ts";
import type { ModifyContext } from "./modify-context.ts";
import { progressOf } from "./modify-goal.ts";
import type { ModifyProgress, ModifyRefusal, ObservedModify } from "./observed-modify.ts";

type ModifyActions = Actions<ObservedModify, ModifyStep>;

/** The parts of the controller. */
export function modifySteps(context: ModifyContext): Steps<ObservedModify, ModifyStep> {
  return {
    observe: (key) => observeModify(context, key),
    decide: decideModifyStep,
    actions: {
      settle: () => settled,
      wait: ({ delayMs }) => ({ requeueAfterMs: delayMs }),
      ...unmodifiedActions(context),
      ...modifyingActions(context),
      ...storingActions(context),
      ...refusalActions(context),
    },
  };
}

/** Reads the caches for the claim of this key; undefined: it is gone, or has no volume. */
function observeModify(context: ModifyContext, key: string): ObservedModify | undefined {
  const { claims, volumes, classes, driver, memory, rules, env } = context;
  const claim = claims.get(key);
  const volume = volumes.get(claim?.spec?.volumeName ?? "");
  if (claim === undefined || volume === undefined) return undefined;
  const named = [claim.spec?.volumeAttributesClassName ?? "", progressOf(claim).target];
  const known = named.map((name) => classes.get(name)).filter((each) => each !== undefined);
  return {
    claim,
    volume,
    driver: { name: driver.name },
    attempt: memory.of(claim.metadata.uid),
    classes: Object.fromEntries(known.map((each) => [each.metadata.name, each])),
    nowMs: env.clock.monotonicMs(),
    time: apiTime(env.clock.now()),
    rules,
    progress: {},
  };
}

/** What the claim says where the driver is not asked. */
function unmodifiedActions({ env, events }: ModifyContext) {
  const report = async (
    { patch }: { readonly patch: ClaimPatch },
    observed: ObservedModify,
    { signal }: Pass,
  ): Promise<Next<ObservedModify>> => {
    await patchClaimStatus(env.kube, observed.claim, patch, signal);
    return after(observed, { isReported: true });
  };
  return {
    reportPending: report,
    emitPending: ({ className }, { claim }) => {
      const message = `VAC "${className}" does not exist.`;
      emitOnClaim(events, claim, { type: "Warning", reason: "VolumeModifyFailed", message });
      return settled;
    },
    reportCanceled: report,
    emitCanceled: (_, { claim }) => {
      const message = "Cancelled modify.";
      emitOnClaim(events, claim, { type: "Normal", reason: "VolumeModifyCanceled", message });
      return settled;
    },
  } satisfies Partial<ModifyActions>;
}

function modifyingActions({ env, driver, events, memory, timeoutMs }: ModifyContext) {
  return {
    storeIntent: async ({ patch, begun }, observed, { signal }) => {
      const claim = await patchClaimStatus(env.kube, observed.claim, patch, signal);
      return after({ ...observed, claim }, { begun });
    },
    emitModifying: ({ className }, observed) => {
      const { claim } = observed;
      const message = `external resizer is modifying volume ${claim.metadata.name} with vac ${className}`;
      emitOnClaim(events, claim, { type: "Normal", reason: "VolumeModify", message });
      return after(observed, { isModifyingEmitted: true });
    },
    readSecret: orRefused<"readSecret">(async ({ reference }, observed, { signal }) =>
      after(observed, { secrets: await secretValues(env.kube, reference, signal) }),
    ),
    modifyVolume: orRefused<"modifyVolume">(async ({ parameters }, observed, { signal }) => {
      const request = { ...parameters, secrets: { ...observed.progress.secrets } };
      await driver.csi.controller.controllerModifyVolume(request, { signal, timeoutMs, migrated: false });
      memory.forget(observed.claim.metadata.uid);
      return after(observed, { isModified: true });
    }),
  } satisfies Partial<ModifyActions>;
}

function storingActions({ env: { kube }, events }: ModifyContext) {
  return {
    storeClass: orNotStored<"storeClass">(async ({ className }, observed, { signal }) => {
      const { volume } = observed;
      // With the UID the patch fails on another volume of the same name.
      const { uid } = volume.metadata;
      const body = { metadata: { uid }, spec: { volumeAttributesClassName: className } };
      await kube.patch(resources.persistentVolumes, refOf(volume), { type: "merge", body }, { signal });
      return after(observed, { isClassStored: true });
    }),
    reportModified: orNotStored<"reportModified">(async ({ patch }, observed, { signal }) => {
      await patchClaimStatus(kube, observed.claim, patch, signal);
      return after(observed, { isReported: true });
    }),
    emitModified: ({ className }, { claim }) => {
      const message = `external resizer modified volume ${claim.metadata.name} with vac ${className} successfully`;
      emitOnClaim(events, claim, { type: "Normal", reason: "VolumeModifySuccessful", message });
      return settled;
    },
    emitNotStored: ({ message }, observed) => {
      emitOnClaim(events, observed.claim, { type: "Warning", reason: "VolumeModifyFailed", message });
      const { storeFailure } = observed.progress;
      return after(observed, { storeFailure: { error: storeFailure?.error, isEmitted: true } });
    },
  } satisfies Partial<ModifyActions>;
}

function refusalActions({ env, events, memory, rules }: ModifyContext) {
  return {
    rememberRefusal: ({ className, refusal }, observed) => {
      const untilMs = env.clock.monotonicMs() + rules.infeasibleRetryMs;
      memory.remember(observed.claim.metadata.uid, {
        refused: refusal.isFinal,
        ...(refusal.isInfeasible ? { infeasible: { request: className, untilMs } } : {}),
      });
      return after(observed, { refusal: { ...refusal, time: apiTime(env.clock.now()), isRemembered: true } });
    },
    emitRefused: ({ message }, observed) => {
      emitOnClaim(events, observed.claim, { type: "Warning", reason: "VolumeModifyFailed", message });
      return refused(observed, { isEmitted: true });
    },
    reportRefused: async ({ patch }, observed, { signal }) => {
      try {
        await patchClaimStatus(env.kube, observed.claim, patch, signal);
      } catch (statusError) {
        if (signal.aborted) throw statusError;
        // It is remembered; the next attempt reports it again.
        env.logger.warn("cannot report a failed modification", { error: statusError });
      }
      return refused(observed, { isReported: true });
    },
    fail: ({ error }) => {
      throw error;
    },
  } satisfies Partial<ModifyActions>;
}

type Action<K extends ModifyStep["step"]> = (
  step: Extract<ModifyStep, { readonly step: K }>,
  observed: ObservedModify,
  pass: Pass,
) => Promise<Next<ObservedModify>>;

/** The action, with a failure of it in what is observed next: the attempt has failed. */
function orRefused<K extends ModifyStep["step"]>(action: Action<K>): Action<K> {
  return async (step, observed, pass) => {
    try {
      return await action(step, observed, pass);
    } catch (error) {
      if (pass.signal.aborted) throw error;
      return after(observed, { refusal: { ...refusalOf(error), time: observed.time } });
    }
  };
}

/** The action, with a failure of it in what is observed next: the class that is in force is not stored. */
function orNotStored<K extends ModifyStep["step"]>(action: Action<K>): Action<K> {
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

function after(observed: ObservedModify, done: ModifyProgress): { readonly observed: ObservedModify } {
  return { observed: { ...observed, progress: { ...observed.progress, ...done } } };
}

function refused(
  observed: ObservedModify,
  how: Partial<ModifyRefusal>,
): { readonly observed: ObservedModify } {
  const { refusal } = observed.progress;
  return refusal === undefined ? { observed } : after(observed, { refusal: { ...refusal, ...how } });
}
