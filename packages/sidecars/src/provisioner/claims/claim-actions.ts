/** The actions of the steps over a claim, one small action each. */
import { isConflict, observeAgain, type Pass, resources, settled } from "@longshore/kube";
import { IntentError } from "../claim-writes.ts";
import { type ClaimActions, failedWith } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ObservedClaim } from "./claim-step.ts";
import { contentionActions } from "./contention-actions.ts";
import { failureActions } from "./failure-actions.ts";
import { type LiveReadings, observeClaim, volumeNameOf } from "./observe-claim.ts";
import { provisionActions } from "./provision-actions.ts";
import { releaseActions } from "./release-actions.ts";
import { removalActions } from "./removal-actions.ts";

/** The actions. What one of them throws becomes a failure that is reported and retried. */
export function claimActions(context: ClaimContext): ClaimActions {
  const { provisioning, reading } = groups(context);
  return {
    ...reporting(provisioning),
    ...reading,
    ...failureActions(context),
    settle: () => settled,
  };
}

function groups(context: ClaimContext) {
  const provisioning = {
    ...provisionActions(context),
    ...removalActions(context),
    ...contentionActions(context),
    ...releaseActions(context),
    ...readVolumeAction(context),
  };
  return { provisioning, reading: readClaimAction(context) };
}

/** No failure of the claim's: nothing is reported of a reading that failed before the claim was looked at. */
function readClaimAction(context: ClaimContext): Pick<ClaimActions, "readClaim"> {
  return {
    async readClaim(_, { key, claim }, { signal }) {
      const { name = "", namespace = "" } = claim?.metadata ?? {};
      const live = await context.env.kube.get(
        resources.persistentVolumeClaims,
        { name, namespace },
        { signal },
      );
      return again(context, key, { claim: live ?? "gone" });
    },
  };
}

function readVolumeAction(context: ClaimContext): Pick<ClaimActions, "readVolume"> {
  return {
    async readVolume(_, { key, claim }, { signal }) {
      if (claim === undefined) return observeAgain;
      const ref = { name: volumeNameOf(context, claim) };
      const live = await context.env.kube.get(resources.persistentVolumes, ref, { signal });
      return again(context, key, { claim, volume: live ?? "none" });
    },
  };
}

function again(context: ClaimContext, key: string, live: LiveReadings) {
  const observed = observeClaim(context, key, live);
  return observed === undefined ? settled : { observed };
}

type Action = (step: never, observed: ObservedClaim, pass: Pass) => unknown;

/**
 * Turns what an action throws into a failure of the pass. A conflict is part of normal work; without the intent's
 * removal, the volume is stored or deleted and only a write is still to be made: both are only retried.
 */
function reporting<T extends object>(actions: T): T {
  const guarded = (act: Action): Action => {
    return async (step, observed, pass) => {
      try {
        return await act(step, observed, pass);
      } catch (error) {
        const isRetried = isConflict(error) || error instanceof IntentError;
        // A step that fails in the handling of a failure does not replace that failure: the queue retries the pass.
        if (pass.signal.aborted || isRetried || observed.failure !== undefined) throw error;
        return failedWith(observed, { error });
      }
    };
  };
  const entries = Object.entries(actions as Record<string, Action>);
  return Object.fromEntries(entries.map(([name, act]) => [name, guarded(act)])) as T;
}
