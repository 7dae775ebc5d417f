/** What all actions over claims share. */
import type { Actions } from "@longshore/kube";
import type { ClaimContext } from "./claim-context.ts";
import type { ClaimFailure, ClaimStep, ClaimWork, ObservedClaim } from "./claim-step.ts";

/** The table of actions over claims. */
export type ClaimActions = Actions<ObservedClaim, ClaimStep>;

/** The observation after a step, with the claim as the cache shows it by now. */
export function after(
  { claims }: ClaimContext,
  observed: ObservedClaim,
  work: ClaimWork,
): { readonly observed: ObservedClaim } {
  const cached = claims.get(observed.key);
  return { observed: { ...observed, cached, work: { ...observed.work, ...work } } };
}

/** The observation after a failed step. */
export function failedWith(
  observed: ObservedClaim,
  failure: ClaimFailure,
): { readonly observed: ObservedClaim } {
  return { observed: { ...observed, failure } };
}

/** The claim that a step is about. @throws Error in a pass without a claim, which takes no such step */
export function claimOf({ claim, key }: ObservedClaim): NonNullable<ObservedClaim["claim"]> {
  if (claim === undefined) throw new Error(`${key}: there is no claim`);
  return claim;
}
