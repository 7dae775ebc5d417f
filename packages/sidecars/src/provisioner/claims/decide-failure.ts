/** The decision what follows a failure: who is informed, and when the claim is tried again (docs/behaviour/sidecars.md 2.2). Pure. */

import { codeOf, ProvisionError } from "../create-outcome.ts";
import { decideClaimGoal } from "./claim-goal.ts";
import type { ClaimFailure, ClaimStep, ObservedClaim } from "./claim-step.ts";

/** The next step. A claim that another node may serve returns to the scheduler. */
export function decideFailure(observed: ObservedClaim, failure: ClaimFailure): ClaimStep {
  const { error } = failure;
  if (failure.isCleanup && !failure.isCleanupReported) return { step: "reportCleanupFailure", error };
  // Its claim is gone, and a claim that has the name now has not failed.
  if (observed.isVanished) return { step: "retry", error };
  if (error instanceof ProvisionError && error.ignored)
    return { step: "reportIgnored", message: error.message };
  if (!failure.isReported) return { step: "reportFailure", error, isProvisioning: isProvisioning(observed) };
  const isForOtherNode = error instanceof ProvisionError && error.state === "Reschedule";
  if (isForOtherNode && observed.facts.selectedNode !== undefined) return { step: "removeSelectedNode" };
  return codeOf(error) === "INVALID_ARGUMENT" ? { step: "retryLate" } : { step: "retry", error };
}

function isProvisioning({ share, facts }: ObservedClaim): boolean {
  return share === "owned" && decideClaimGoal(facts).kind === "provision";
}
