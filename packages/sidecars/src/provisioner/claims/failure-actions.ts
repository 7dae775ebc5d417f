/** The actions after a failure: reports, and how soon the claim is tried again. */
import { type EventSubject, involvedObject, resources, settled } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { type ClaimActions, claimOf, failedWith } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { FailureStep, ObservedClaim } from "./claim-step.ts";
import { classNameOf } from "./observe-claim.ts";

/** The actions of {@link FailureStep}. */
export function failureActions(context: ClaimContext): Pick<ClaimActions, FailureStep["step"]> {
  const { events, metrics, infeasibleRetryMs } = context;
  return {
    reportCleanupFailure({ error }, observed) {
      events.event(subjectOf(observed), "Warning", "ProvisioningCleanupFailed", errorChain(error));
      return failedWith(observed, { error, isCleanup: true, isCleanupReported: true });
    },
    reportIgnored({ message }, observed) {
      events.event(subjectOf(observed), "Normal", "Provisioning", message);
      return settled;
    },
    reportFailure({ error, isProvisioning }, observed) {
      const claim = claimOf(observed);
      if (isProvisioning) metrics.provisionFailed(claim);
      const message = `failed to provision volume with StorageClass "${classNameOf(claim)}": ${errorChain(error)}`;
      events.event(subjectOf(observed), "Warning", "ProvisioningFailed", message);
      return failedWith(observed, { ...observed.failure, error, isReported: true });
    },
    retryLate: () => ({ requeueAfterMs: infeasibleRetryMs }),
    retry({ error }) {
      throw error;
    },
  };
}

/** The claim, or the one whose volume may be left. */
function subjectOf({ claim, attempt, isVanished, key }: ObservedClaim): EventSubject {
  const subject = isVanished ? attempt?.claim : claim;
  if (subject === undefined) throw new Error(`${key}: there is no claim`);
  return involvedObject(resources.persistentVolumeClaims, subject);
}
