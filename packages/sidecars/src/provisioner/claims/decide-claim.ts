/**
 * The whole decision of a pass over a claim (docs/behaviour/sidecars.md 2.2, 2.3, 2.10). Pure.
 *
 *     live readings ─► share ─► goal ─► provision: request, secret, source, intent, CreateVolume, PersistentVolume
 *                        │       ├────► cancel:  look the volume up, delete it unless it is stored
 *                        │       └────► release: intent off, source free
 *                        └────► another node's, or unassigned: taken when its turn has come
 *
 * Invariants
 *  - CreateVolume comes after the intent; the intent goes after the outcome is accounted for.
 *  - DeleteVolume comes after the server has said that no PersistentVolume stands for the volume, and that a claim which
 *    the cache has lost is gone.
 *  - A PersistentVolume whose storing got no answer is stored again, and its disk deleted, only while the server shows
 *    the claim unbound: it may have been kept and given up since.
 */
import { isDeleting } from "@longshore/kube";
import type { MadeVolume } from "../requests/volume-answer.ts";
import type { PreparedVolume } from "../requests/volume-request.ts";
import { decideClaimGoal } from "./claim-goal.ts";
import type { ClaimStep, ObservedClaim } from "./claim-step.ts";
import { decideContention } from "./decide-contention.ts";
import { decideFailure } from "./decide-failure.ts";
import { decideLookup, decideRemoval } from "./decide-removal.ts";

const settle: ClaimStep = { step: "settle" };

/** The next step. */
export function decideClaim(observed: ObservedClaim): ClaimStep {
  const { failure, isVanished, claim, share, contention } = observed;
  if (failure !== undefined) return decideFailure(observed, failure);
  if (isVanished) return decideVanished(observed);
  if (claim === undefined) return settle;
  if (observed.needsLiveClaim) return { step: "readClaim" };
  if (share === "foreign") return decideForeign(observed);
  if (contention !== undefined) return decideContention(contention);
  if (observed.needsLiveVolume) return { step: "readVolume" };
  return decideOwned(observed);
}

/** The claim is gone although its intent was set: the finalizer was removed by force. */
function decideVanished(observed: ObservedClaim): ClaimStep {
  const { attempt, work } = observed;
  if (attempt === undefined) return settle;
  const forget: ClaimStep = { step: "forgetAttempt", attempt };
  if (attempt.lastAnswer === "final") return forget;
  if (work.onServer === undefined) return { step: "confirmVanished", attempt };
  if (work.onServer === "wanted") return { step: "awaitCache" };
  if (attempt.isStoringUncertain) return forget;
  return decideLookup(observed) ?? forget;
}

function decideForeign(observed: ObservedClaim): ClaimStep {
  const leave: ClaimStep = { step: "leaveToOthers" };
  return observed.attempt?.lastAnswer === "uncertain" ? (decideLookup(observed) ?? leave) : leave;
}

function decideOwned(observed: ObservedClaim): ClaimStep {
  const goal = decideClaimGoal(observed.facts);
  switch (goal.kind) {
    case "none":
      return settle;
    case "fail":
      return { step: "refuse", message: goal.message };
    case "release":
      return decideRelease(observed);
    case "reschedule":
      return { step: "removeSelectedNode" };
    case "cancel":
      return decideCancel(observed, goal.afterwards);
    default:
      return decideProvision(observed);
  }
}

function decideCancel(observed: ObservedClaim, afterwards: "release" | "reschedule"): ClaimStep {
  const { attempt, work } = observed;
  if (!work.isAccounted) {
    const step = decideLookup(observed);
    if (step !== undefined) return step;
    const prepared = attempt?.prepared ?? work.lookup?.prepared;
    if (prepared !== undefined) return { step: "account", prepared, isProvisioned: false };
  }
  return afterwards === "release" ? decideRelease(observed) : { step: "removeSelectedNode" };
}

function decideProvision(observed: ObservedClaim): ClaimStep {
  const { work, mayExist } = observed;
  const { prepared, refused, secrets } = work;
  if (work.isAccounted) return decideRelease(observed);
  if (refused !== undefined) {
    // Before the node is given up, what a forgotten attempt may have made for it must go.
    const step = mayExist && refused.state === "Reschedule" ? decideLookup(observed) : undefined;
    return step ?? { step: "fail", error: refused };
  }
  if (prepared === undefined) return decidePreparation(observed);
  if (secrets === undefined) return { step: "readSecret", prepared };
  return decideRecord(observed, prepared) ?? decideCall(observed, prepared, secrets);
}

/** The parts of the request, in the order in which their failures are reported. */
function decidePreparation({ work, storageClass }: ObservedClaim): ClaimStep {
  const { draft, contentSource, selected, composed } = work;
  if (storageClass === undefined) {
    return { step: "refuse", message: "the claim's StorageClass was deleted: create it again" };
  }
  if (draft === undefined) return { step: "draftVolume" };
  const { dataSource, attributesClass } = draft;
  if (dataSource !== undefined && contentSource === undefined) {
    return { step: "resolveSource", source: dataSource };
  }
  if (selected === undefined) return { step: "selectTopology", draft };
  if (composed === undefined || attributesClass === undefined) {
    return { step: "composeRequest", draft, found: { contentSource, places: selected.places } };
  }
  return { step: "readAttributesClass", name: attributesClass, composed };
}

/** What is on record before the volume is made; undefined: all of it is. */
function decideRecord(observed: ObservedClaim, prepared: PreparedVolume): ClaimStep | undefined {
  const { work, facts, attempt, storesIntent } = observed;
  const { dataSource } = prepared;
  // Protected before the intent was stored, and as long as it is.
  if (dataSource !== undefined && !facts.intended && !work.isSourceProtected) {
    return { step: "protectSource", source: dataSource };
  }
  if (storesIntent && !facts.intended && !work.isIntentStored) return { step: "storeIntent" };
  // Only before the first call of this process: an event for each repeat would say nothing new.
  if (attempt === undefined && !work.isBeginReported) return { step: "reportBegin" };
  return undefined;
}

/** The making of the volume, and what comes of the driver's answer. */
function decideCall(
  observed: ObservedClaim,
  prepared: PreparedVolume,
  secrets: NonNullable<ObservedClaim["work"]["secrets"]>,
): ClaimStep {
  const { made, unfit } = observed.work;
  if (made !== undefined) return decideMade(observed, prepared, made);
  if (unfit === undefined) return { step: "createVolume", prepared, secrets };
  const unwanted = { prepared, volumeId: unfit.volumeId, why: unfit.error.message };
  return decideRemoval(observed, unwanted) ?? { step: "rejectVolume", error: unfit.error };
}

function decideMade(observed: ObservedClaim, prepared: PreparedVolume, made: MadeVolume): ClaimStep {
  const { work } = observed;
  const { volumeId } = made;
  const account: ClaimStep = { step: "account", prepared, isProvisioned: true };
  if (work.stored === undefined) {
    // A deletion that has begun is brought to its end, whatever the cache shows by now.
    const isWanted = work.removal === undefined ? isStillWanted(observed) : false;
    if (isWanted === undefined) return { step: "confirmClaim" };
    if (isWanted) return { step: "storeVolume", prepared, made };
    const why = "the claim no longer wants its volume";
    return decideRemoval(observed, { prepared, volumeId, why }) ?? account;
  }
  if (work.stored === "taken") {
    const why = "another volume has taken its place";
    const step = decideRemoval(observed, { prepared, volumeId, why });
    if (step !== undefined) return step;
    // Stored: the object of that name is our volume's, from an earlier write whose answer was lost.
    if (work.removal?.isStored !== true) return account;
  }
  return work.isSuccessReported ? account : { step: "reportSuccess", prepared };
}

/**
 * A deletion is final, so the cache can show it. That the claim is not there, or has had no volume since an attempt to
 * store it got no answer, only the server can say: undefined, until it is asked. If the claim is deleted a moment later,
 * its volume is released and reclaimed.
 */
function isStillWanted({ claim, cached, attempt, work }: ObservedClaim): boolean | undefined {
  const isCached = cached !== undefined && cached.metadata.uid === claim?.metadata.uid;
  if (isCached && isDeleting(cached)) return false;
  if (isCached && !attempt?.isStoringUncertain) return true;
  return work.onServer === undefined ? undefined : work.onServer === "wanted";
}

/** Everything is done, for the driver and for the source that the volume was copied from. */
function decideRelease({ work }: ObservedClaim): ClaimStep {
  if (!work.isIntentRemoved) return { step: "removeIntent" };
  if (!work.isForgotten) return { step: "forget" };
  const { sourceToFree } = work;
  return sourceToFree === undefined ? settle : { step: "freeSnapshot", snapshotKey: sourceToFree };
}
