/** The actions of the provisioning controller, one for each step. Source: docs/behaviour/controllers.md B6. */
import {
  type Actions,
  hasFinalizer,
  isAlreadyExists,
  KubeApiError,
  type Next,
  refOf,
  resources,
  settled,
  withoutFinalizer,
} from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import { provisioningFinalizer, selectedNodeAnnotation } from "@longshore/storage";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { withAnnotation } from "./annotations.ts";
import type { ProvisioningStep } from "./decide-provisioning-step.ts";
import { protectedVolume } from "./deletion-finalizer.ts";
import { reportOnClaim } from "./events.ts";
import { provisioningOf } from "./observe-provisioning.ts";
import { providerTimeoutMs } from "./operation-attempts.ts";
import type { PersistentVolumeContext } from "./persistent-volume-context.ts";
import { checkRequest, makeVolume, type ProvisionRequest, provisionedName } from "./provisioned-volume.ts";
import type { ProvisioningObservation, Tries } from "./provisioning-observation.ts";

type ProvisioningActions = Actions<ProvisioningObservation, ProvisioningStep>;
type Action<Name extends keyof ProvisioningActions> = ProvisioningActions[Name];

/** Between attempts to store a volume, or to delete its disk, in milliseconds. */
const pauseMs = 10_000;

const { persistentVolumes, persistentVolumeClaims } = resources;

/** The actions over these seams. */
export function provisioningActions(context: PersistentVolumeContext): ProvisioningActions {
  return {
    ...claimWrites(context),
    ...endings(context),
    check: checkAction(context),
    makeVolume: makeVolumeAction(context),
    storeVolume: storeVolume(context),
    readVolume: readVolume(context),
    deleteDisk: deleteDisk(context),
    async pause({ of }, observed, { signal }) {
      await context.env.clock.sleep(pauseMs, signal);
      const tries = observed[of];
      return {
        observed: tries === undefined ? observed : { ...observed, [of]: { ...tries, hasPaused: true } },
      };
    },
    refuse: ({ message }, observed) => failed(context, observed, new Error(message)),
    report(step, observed) {
      reportOnClaim(context.events, observed.claim, step);
      return { observed: { ...observed, isReported: true } };
    },
  };
}

function claimWrites({
  env,
  attempts,
}: PersistentVolumeContext): Pick<
  ProvisioningActions,
  "storeProvisioner" | "storeIntent" | "unselectNode" | "removeIntent"
> {
  const store = async (
    after: ProvisioningObservation["claim"],
    observed: ProvisioningObservation,
    signal: AbortSignal,
  ): Promise<Next<ProvisioningObservation>> => {
    const claim = await env.kube.update(persistentVolumeClaims, after, { signal });
    return { observed: { ...observed, claim, claimGiven: claim, claimWithIntent: claim } };
  };
  return {
    storeProvisioner: ({ claim }, observed, { signal }) => store(claim, observed, signal),
    storeIntent: ({ claim }, observed, { signal }) => store(claim, observed, signal),
    unselectNode(_step, observed, { signal }) {
      const after = withAnnotation(observed.claim, selectedNodeAnnotation, undefined);
      return store(after, observed, signal);
    },
    async removeIntent(_step, { claim }, { signal }) {
      await env.kube.update(persistentVolumeClaims, withoutFinalizer(claim, provisioningFinalizer), {
        signal,
      });
      attempts.forget(provisioningOf(claim));
      return settled;
    },
  };
}

/** What ends a pass. A retry begins with the claim: its controller knows whether the volume is still wanted. */
function endings({
  env,
  attempts,
  wakes,
}: PersistentVolumeContext): Pick<ProvisioningActions, "wait" | "retry" | "settle"> {
  return {
    wait({ ms }, _observed, { key }) {
      wakes.claim(key, ms);
      return settled;
    },
    retry({ error: failed }, { claim, failure }, { key }) {
      const operation = provisioningOf(claim);
      // A failure of the plugin was counted when it happened, and must not count twice.
      const retryInMs = failure?.retryInMs ?? attempts.failed(operation);
      const error = errorChain(failed);
      env.logger.warn("volume operation failed", { operation, claim: key, retryInMs, error });
      wakes.claim(key, retryInMs);
      return settled;
    },
    settle(_step, { claim }) {
      attempts.forget(provisioningOf(claim));
      return settled;
    },
  };
}

function requestOf(
  { clusterName }: PersistentVolumeContext,
  { claim, storageClass, plugin, node }: ProvisioningObservation,
): ProvisionRequest | undefined {
  if (storageClass === undefined || plugin === undefined) return undefined;
  return { claim, storageClass, plugin, node, clusterName };
}

function checkAction(context: PersistentVolumeContext): Action<"check"> {
  return async (_step, observed, { signal }) => {
    const request = requestOf(context, observed);
    if (request === undefined) return settled;
    try {
      const check = (limited: AbortSignal) => checkRequest(request, limited);
      await withDeadline(context.env.clock, providerTimeoutMs, signal, check);
      return { observed: { ...observed, isChecked: true } };
    } catch (error) {
      if (signal.aborted) throw error;
      return failed(context, observed, error);
    }
  };
}

function makeVolumeAction(context: PersistentVolumeContext): Action<"makeVolume"> {
  return async (_step, observed, { signal }) => {
    const request = requestOf(context, observed);
    if (request === undefined) return settled;
    try {
      const make = (limited: AbortSignal) => makeVolume(request, limited);
      const measured = { plugin: request.plugin.pluginName, isMigrated: false };
      const made = await context.measured.measure("volume_provision", measured, signal, () =>
        withDeadline(context.env.clock, providerTimeoutMs, signal, make),
      );
      const protection = {
        migration: context.provisioners.migration,
        isHonored: context.honorsReclaimPolicy,
      };
      return { observed: { ...observed, made: protectedVolume(made, protection) } };
    } catch (error) {
      if (signal.aborted) throw error;
      return failed(context, observed, error);
    }
  };
}

/** A volume that is there already is the one of an earlier attempt: the name has the claim's UID. */
function storeVolume({ env }: PersistentVolumeContext): Action<"storeVolume"> {
  return async ({ volume }, observed, { signal }) => {
    const isUncertain = observed.storing?.isUncertain === true;
    try {
      // An earlier attempt has stored it where the claim has no intent any more: who gave the volume up since has its disk (docs/contract.md C3).
      if (isUncertain && !(await isIntended(env, observed.claim, signal)))
        return { observed: { ...observed, isStored: true } };
      await env.kube.create(persistentVolumes, volume, { signal });
      return { observed: { ...observed, isStored: true } };
    } catch (error) {
      if (signal.aborted) throw error;
      if (isAlreadyExists(error)) return { observed: { ...observed, isStored: true } };
      // What is no refusal leaves open whether the volume is stored: its disk must stay (docs/contract.md C3).
      const isRefused = error instanceof KubeApiError && error.code < 500;
      return { observed: { ...observed, storing: oneMore(observed.storing, error, !isRefused) } };
    }
  };
}

/** Whether the claim is there, and says that its volume is being made. */
async function isIntended(
  { kube }: PersistentVolumeContext["env"],
  claim: ProvisioningObservation["claim"],
  signal: AbortSignal,
): Promise<boolean> {
  const live = await kube.get(persistentVolumeClaims, refOf(claim), { signal });
  return live?.metadata.uid === claim.metadata.uid && hasFinalizer(live, provisioningFinalizer);
}

function readVolume({ env }: PersistentVolumeContext): Action<"readVolume"> {
  return async (_step, observed, { signal }) => {
    const name = provisionedName(observed.claim);
    const volume = await env.kube.get(persistentVolumes, { name }, { signal });
    return { observed: { ...observed, volume, isConfirmedAbsent: volume === undefined } };
  };
}

function deleteDisk({ env, provisioners }: PersistentVolumeContext): Action<"deleteDisk"> {
  return async ({ volume }, observed, { signal }) => {
    try {
      const plugin = provisioners.plugins.findDeletablePluginByName(observed.plugin?.pluginName ?? "");
      const deleter = plugin.newDeleter(specOfPersistentVolume(volume, false));
      await withDeadline(env.clock, providerTimeoutMs, signal, (limited) => deleter.delete(limited));
      return { observed: { ...observed, isDeleted: true } };
    } catch (error) {
      if (signal.aborted) throw error;
      const deleting = oneMore(observed.deleting, error, true);
      // Read again before the next attempt: the volume may be stored by then.
      return { observed: { ...observed, deleting, isConfirmedAbsent: false, isReported: false } };
    }
  };
}

function oneMore(before: Tries | undefined, error: unknown, isUncertain: boolean): Tries {
  return {
    failures: (before?.failures ?? 0) + 1,
    error,
    isUncertain: isUncertain || before?.isUncertain === true,
    hasPaused: false,
  };
}

/** Counted at once: what is written about the failure wakes the claim, and must not shorten the back-off. */
function failed(
  { attempts }: PersistentVolumeContext,
  observed: ProvisioningObservation,
  error: unknown,
): Next<ProvisioningObservation> {
  const retryInMs = attempts.failed(provisioningOf(observed.claim));
  return { observed: { ...observed, failure: { error, retryInMs }, isReported: false } };
}
