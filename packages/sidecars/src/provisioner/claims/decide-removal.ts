/** The decision how a volume that must not stay is found and deleted (docs/contract.md C3, C4). Pure. */
import type { ClaimStep, ObservedClaim, Unwanted } from "./claim-step.ts";

/** The next step of the search for what an uncertain call may have left; undefined: nothing is left. */
export function decideLookup(observed: ObservedClaim): ClaimStep | undefined {
  const { attempt, work } = observed;
  const { secrets, found } = work.lookup ?? {};
  const prepared = attempt?.prepared ?? work.lookup?.prepared;
  if (prepared === undefined) return { step: "prepareLookup" };
  if (secrets === undefined) return { step: "readLookupSecret", prepared };
  if (found === undefined) return { step: "findVolume", prepared, secrets };
  if (found === "none") return undefined;
  const why = "the claim no longer wants its volume";
  return decideRemoval(observed, { prepared, volumeId: found.volumeId, why });
}

/**
 * The next step of the deletion; undefined: it is deleted, or kept. One that a stored PersistentVolume stands for is
 * kept, whatever a cache may have shown: from then on only the reclaim policy decides.
 */
export function decideRemoval({ work }: ObservedClaim, unwanted: Unwanted): ClaimStep | undefined {
  const { isStored, secrets, isDeleted } = work.removal ?? {};
  if (isStored === undefined) return { step: "readStoredVolume", ...unwanted };
  if (isStored || isDeleted) return undefined;
  if (secrets === undefined) return { step: "readDeletionSecret", ...unwanted };
  return { step: "deleteVolume", ...unwanted, secrets };
}
