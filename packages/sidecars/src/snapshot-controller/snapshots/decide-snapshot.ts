/**
 * The whole decision of a pass over a VolumeSnapshot (docs/behaviour/sidecars.md 5). Pure.
 *
 *     claim ─► finalizers ─► claim held ─► content ─► bound ─► (the driver's snapshotter) ─► ready
 *     content that exists ─► finalizers ─► bound both ways ─► ready
 *     deleted ─► content marked ─► content deleted, or kept ─► finalizers off ─► gone
 *
 * Invariants
 *  - A pass brings the snapshot one goal further, on caches that show every earlier one.
 *  - The snapshot has its finalizer before its content is made, so that the content cannot outlive it unnoticed.
 *  - Its finalizers go after the server has said that its content, where the cache has none, and its group are gone.
 */
import { hasFinalizer, isDeleting, keyOf } from "@longshore/kube";
import { snapshotClaimFinalizer } from "@longshore/storage";
import { contentNameOf, groupOf } from "../binding.ts";
import { SnapshotSourceError } from "../source-volume.ts";
import {
  decideSubjectFailure,
  type FailedStep,
  reportOf,
  SnapshotFailedError,
  type SubjectFailure,
} from "../subject-failure.ts";
import { decideSnapshotGoal, type SnapshotGoal } from "./snapshot-goal.ts";
import type { ObservedSnapshot, SnapshotStep } from "./snapshot-step.ts";

type GoalOf<K extends SnapshotGoal["kind"]> = Extract<SnapshotGoal, { readonly kind: K }>;

const continued: SnapshotStep = { step: "continue" };

const failedGoals: Partial<Record<SnapshotGoal["kind"], FailedStep>> = {
  chooseClass: {
    reason: "SetDefaultSnapshotClassFailed",
    what: "Failed to set default snapshot class with error",
    notReady: false,
  },
  protect: {
    reason: "SnapshotFinalizerError",
    what: "Failed to check and update snapshot:",
    notReady: false,
  },
  createContent: {
    reason: "SnapshotContentCreationFailed",
    what: "Failed to create snapshot content with error",
    notReady: true,
  },
  bindContent: {
    reason: "SnapshotBindFailed",
    what: "Snapshot failed to bind VolumeSnapshotContent,",
    notReady: true,
  },
  storeStatus: {
    reason: "SnapshotStatusUpdateFailed",
    what: "Snapshot status update failed,",
    notReady: false,
  },
  deleteContent: {
    reason: "SnapshotContentObjectDeleteError",
    what: "Failed to delete snapshot content API object:",
    notReady: false,
    isEventOnly: true,
  },
};

/** The next step. */
export function decideSnapshot(observed: ObservedSnapshot): SnapshotStep {
  const { facts, failure } = observed;
  if (failure !== undefined) return decideSubjectFailure(facts.snapshot.status?.error?.message, failure);
  const goal = decideSnapshotGoal(facts);
  switch (goal.kind) {
    case "none":
      return { step: "settle" };
    case "wait":
      return decideWait(observed, goal);
    case "fail":
      return decideFail(observed, goal);
    case "removeFinalizers":
      return decideLast(observed, goal);
    case "announceDeletion":
    case "deleteContent":
      return { step: goal.kind, content: contentOf(observed) };
    default:
      return decideProgress(observed, goal);
  }
}

/** How the error of a step is reported; undefined: it is only retried. */
export function snapshotFailure({ facts }: ObservedSnapshot, error: unknown): SubjectFailure | undefined {
  const failed = failedGoals[decideSnapshotGoal(facts).kind];
  return failed === undefined ? undefined : { error, report: reportOf(failed, error) };
}

function decideProgress(observed: ObservedSnapshot, goal: SnapshotGoal): SnapshotStep {
  const { claim, work } = observed;
  switch (goal.kind) {
    case "chooseClass":
      if (work.chosenClass !== undefined) return { step: "storeClass", chosen: work.chosenClass };
      return claim === undefined ? claimMissing(observed) : { step: "chooseClass", claim };
    case "protect":
      return { step: "addFinalizers", finalizers: goal.finalizers };
    case "createContent":
      return decideCreation(observed);
    case "holdClaim":
      return decideHold(observed) ?? continued;
    case "bindContent":
      return {
        step: "bindContent",
        content: contentOf(observed),
        uid: goal.uid,
        className: goal.className,
      };
    case "storeStatus":
      return decideStatus(observed, goal);
    case "joinGroup":
      return { step: "joinGroup", group: goal.group };
    default:
      return { step: "settle" };
  }
}

function decideWait({ work }: ObservedSnapshot, { reason, message }: GoalOf<"wait">): SnapshotStep {
  if (reason === undefined || work.isWaitReported) return { step: "lookLater" };
  return { step: "reportWait", reason, message };
}

function decideFail({ facts, work }: ObservedSnapshot, goal: GoalOf<"fail">): SnapshotStep {
  const { reason, message, notReady } = goal;
  const name = contentNameOf(facts.snapshot);
  if (reason === "SnapshotContentMissing" && name !== undefined) {
    if (work.contentOnServer === undefined) return { step: "readContent", name };
    if (work.contentOnServer === "there") return { step: "awaitCache" };
  }
  const error = new SnapshotFailedError(`VolumeSnapshot "${keyOf(facts.snapshot)}": ${message}`);
  return { step: "fail", failure: { error, report: { reason, message, notReady } } };
}

function decideCreation(observed: ObservedSnapshot): SnapshotStep {
  const { claim, work } = observed;
  if (work.isContentCreated) return { step: "reportCreating" };
  if (claim === undefined) return claimMissing(observed);
  if (work.newContent === undefined) return { step: "prepareContent", claim };
  // Only now: a snapshot whose content cannot be composed must not hold the claim.
  return decideHold(observed) ?? { step: "createContent", content: work.newContent };
}

/** Keeps the claim while the snapshot is being made; undefined: it is kept. `source-claims.ts` lets it go again. */
function decideHold(observed: ObservedSnapshot): SnapshotStep | undefined {
  const { claim, work } = observed;
  if (claim === undefined) return claimMissing(observed);
  if (work.isClaimHeld || hasFinalizer(claim, snapshotClaimFinalizer)) return undefined;
  if (!isDeleting(claim)) return { step: "holdClaim", claim };
  return failed(observed, new SnapshotSourceError(`claim "${keyOf(claim)}" is being deleted`));
}

function claimMissing(observed: ObservedSnapshot): SnapshotStep {
  const { metadata, spec } = observed.facts.snapshot;
  const key = `${metadata.namespace ?? ""}/${spec.source.persistentVolumeClaimName ?? ""}`;
  return failed(observed, new SnapshotSourceError(`claim "${key}" not found`));
}

function failed(observed: ObservedSnapshot, error: unknown): SnapshotStep {
  return { step: "fail", failure: snapshotFailure(observed, error) ?? { error, report: undefined } };
}

function decideStatus({ work }: ObservedSnapshot, { status }: GoalOf<"storeStatus">): SnapshotStep {
  if (!work.isStatusStored) return { step: "storeStatus", status };
  if (status.creationTime !== undefined && !work.isCreationReported) return { step: "reportCreated" };
  return status.readyToUse === true ? { step: "reportReady" } : continued;
}

/** The cache may not show a group, or a content, that the server has: what it has lost decides nothing. */
function decideLast({ facts, work }: ObservedSnapshot, goal: GoalOf<"removeFinalizers">): SnapshotStep {
  const { snapshot, content } = facts;
  const group = groupOf(snapshot);
  if (group !== undefined && work.groupOnServer === undefined) return { step: "readGroup", ...group };
  if (work.groupOnServer === "there") return { step: "awaitGroup" };
  const name = contentNameOf(snapshot);
  if (content === undefined && name !== undefined) {
    if (work.contentOnServer === undefined) return { step: "readContent", name };
    if (work.contentOnServer === "there") return { step: "awaitCache" };
  }
  return { step: "removeFinalizers", finalizers: goal.finalizers };
}

/** The content of a goal that is about it. @throws SnapshotFailedError in a goal without one */
function contentOf({ facts }: ObservedSnapshot): NonNullable<ObservedSnapshot["facts"]["content"]> {
  if (facts.content === undefined)
    throw new SnapshotFailedError(`${facts.snapshot.metadata.name} has no content`);
  return facts.content;
}
