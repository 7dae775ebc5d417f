/**
 * The whole decision of a pass over a VolumeGroupSnapshot (docs/behaviour/sidecars.md 5). Pure.
 *
 *     selector ─► finalizer ─► content ─► bound ─► (the driver's snapshotter) ─► members ─► ready
 *     deleted ─► content marked ─► content deleted, or kept ─► members deleted ─► finalizer off ─► gone
 *
 * The invariants are those of `decide-snapshot.ts`: no member, and no finalizer, goes because a cache has no content.
 */
import { keyOf } from "@longshore/kube";
import { contentNameOfGroup } from "../group-binding.ts";
import {
  decideSubjectFailure,
  type FailedStep,
  reportOf,
  SnapshotFailedError,
  type SubjectFailure,
} from "../subject-failure.ts";
import { decideGroupGoal, type GroupGoal } from "./group-goal.ts";
import type { MemberWrite } from "./group-members.ts";
import type { GroupStep, MemberStep, ObservedGroup } from "./group-step.ts";

type GoalOf<K extends GroupGoal["kind"]> = Extract<GroupGoal, { readonly kind: K }>;

/** Members of one pass; the next takes the rest. */
const MEMBERS_A_PASS = 16;

const continued: GroupStep = { step: "continue" };

const failedGoals: Partial<Record<GroupGoal["kind"], FailedStep>> = {
  chooseClass: {
    reason: "SetDefaultGroupSnapshotClassFailed",
    what: "Failed to set default group snapshot class with error",
    notReady: false,
  },
  protect: {
    reason: "GroupSnapshotFinalizerError",
    what: "Failed to check and update group snapshot:",
    notReady: false,
  },
  createContent: {
    reason: "GroupSnapshotContentCreationFailed",
    what: "failed to create group snapshot content with error",
    notReady: true,
  },
  bindContent: {
    reason: "GroupSnapshotBindFailed",
    what: "GroupSnapshot failed to bind VolumeGroupSnapshotContent,",
    notReady: true,
  },
  writeMembers: {
    reason: "GroupSnapshotMembersFailed",
    what: "Failed to create the snapshots of the group:",
    notReady: false,
  },
  storeStatus: {
    reason: "GroupSnapshotStatusUpdateFailed",
    what: "GroupSnapshot status update failed,",
    notReady: false,
  },
  deleteContent: {
    reason: "GroupSnapshotContentObjectDeleteError",
    what: "Failed to delete group snapshot content API object:",
    notReady: false,
    isEventOnly: true,
  },
};

/** The next step. */
export function decideGroup(observed: ObservedGroup): GroupStep {
  const { facts, failure } = observed;
  if (failure !== undefined) return decideSubjectFailure(facts.group.status?.error?.message, failure);
  const goal = decideGroupGoal(facts);
  switch (goal.kind) {
    case "none":
      return { step: "settle" };
    case "wait":
      return decideWait(observed, goal);
    case "fail":
      return decideFail(observed, goal);
    case "deleteMembers":
      return decideUnlessContent(observed) ?? decideDeletions(observed, goal);
    case "removeFinalizers":
      return decideUnlessContent(observed) ?? { step: "removeFinalizer" };
    case "announceDeletion":
    case "deleteContent":
      return { step: goal.kind, content: contentOf(observed) };
    default:
      return decideProgress(observed, goal);
  }
}

/** How the error of a step is reported; undefined: it is only retried. */
export function groupFailure({ facts, work }: ObservedGroup, error: unknown): SubjectFailure | undefined {
  const goal = decideGroupGoal(facts);
  if (goal.kind === "deleteMembers") {
    const member = goal.members[work.membersDone ?? 0];
    const name = member === undefined ? "" : keyOf(member);
    const what = `failed to delete snapshot API object ${name} part of group snapshot ${keyOf(facts.group)}:`;
    const failed = { reason: "SnapshotDeleteError", what, notReady: false, isEventOnly: true } as const;
    return { error, report: reportOf(failed, error) };
  }
  const failed = failedGoals[goal.kind];
  return failed === undefined ? undefined : { error, report: reportOf(failed, error) };
}

function decideProgress(observed: ObservedGroup, goal: GroupGoal): GroupStep {
  const { work } = observed;
  switch (goal.kind) {
    case "chooseClass":
      if (work.chosenClass === undefined) return { step: "chooseClass" };
      return { step: "storeClass", className: work.chosenClass };
    case "protect":
      return { step: "addFinalizer" };
    case "createContent":
      if (work.isContentCreated) return { step: "reportCreating" };
      if (work.newContent === undefined) return { step: "prepareContent" };
      return { step: "createContent", content: work.newContent };
    case "bindContent":
      return {
        step: "bindContent",
        content: contentOf(observed),
        uid: goal.uid,
        className: goal.className,
      };
    case "writeMembers":
      return decideMemberWrite(observed, goal);
    case "storeStatus":
      return decideStatus(observed, goal);
    default:
      return { step: "settle" };
  }
}

function decideWait({ work }: ObservedGroup, { reason, message }: GoalOf<"wait">): GroupStep {
  if (reason === undefined || work.isWaitReported) return { step: "lookLater" };
  return { step: "reportWait", reason, message };
}

function decideFail({ facts, work }: ObservedGroup, goal: GoalOf<"fail">): GroupStep {
  const { reason, message, notReady } = goal;
  if (reason === "GroupSnapshotContentMissing") {
    if (work.contentOnServer === undefined) {
      return { step: "readContent", name: contentNameOfGroup(facts.group) };
    }
    if (work.contentOnServer === "there") return { step: "awaitCache" };
  }
  const error = new SnapshotFailedError(`VolumeGroupSnapshot "${keyOf(facts.group)}": ${message}`);
  return { step: "fail", failure: { error, report: { reason, message, notReady } } };
}

function decideStatus({ work }: ObservedGroup, { status }: GoalOf<"storeStatus">): GroupStep {
  if (!work.isStatusStored) return { step: "storeStatus", status };
  if (status.creationTime !== undefined && !work.isCreationReported) return { step: "reportCreated" };
  return status.readyToUse === true ? { step: "reportReady" } : continued;
}

/** What the cache has lost decides nothing: undefined, once the server has said that there is no content. */
function decideUnlessContent({ facts, work }: ObservedGroup): GroupStep | undefined {
  if (facts.content !== undefined || work.contentOnServer === "none") return undefined;
  if (work.contentOnServer === "there") return { step: "awaitCache" };
  return { step: "readContent", name: contentNameOfGroup(facts.group) };
}

function decideMemberWrite({ work }: ObservedGroup, { writes }: GoalOf<"writeMembers">): GroupStep {
  const { membersDone = 0 } = work;
  const write = membersDone < MEMBERS_A_PASS ? writes[membersDone] : undefined;
  return write === undefined ? continued : memberStepOf(write);
}

function memberStepOf(write: MemberWrite): MemberStep {
  switch (write.kind) {
    case "createSnapshot":
      return { step: "createMember", snapshot: write.snapshot };
    case "createContent":
      return { step: "createMemberContent", content: write.content };
    case "storeContentStatus":
      return { step: "storeMemberStatus", content: write.content, status: write.status };
    default:
      return { step: "bindMember", snapshot: write.snapshot, contentName: write.contentName };
  }
}

function decideDeletions({ work }: ObservedGroup, { members }: GoalOf<"deleteMembers">): GroupStep {
  const { membersDone = 0 } = work;
  const member = membersDone < MEMBERS_A_PASS ? members[membersDone] : undefined;
  return member === undefined ? continued : { step: "deleteMember", member };
}

/** The content of a goal that is about it. @throws SnapshotFailedError in a goal without one */
function contentOf({ facts }: ObservedGroup): NonNullable<ObservedGroup["facts"]["content"]> {
  if (facts.content === undefined)
    throw new SnapshotFailedError(`${facts.group.metadata.name} has no content`);
  return facts.content;
}
