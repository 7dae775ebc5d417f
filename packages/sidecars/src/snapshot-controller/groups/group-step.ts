/** What a pass over a VolumeGroupSnapshot knows, and the steps it can take. */
import type { Stored } from "@longshore/kube";
import type {
  VolumeGroupSnapshot,
  VolumeGroupSnapshotContent,
  VolumeSnapshot,
  VolumeSnapshotContent,
} from "@longshore/storage";
import type { SubjectFailure, SubjectFailureStep } from "../subject-failure.ts";
import type { GroupFacts } from "./group-goal.ts";

/** What is known of a group snapshot, and how far the pass over it has come. */
export interface ObservedGroup {
  readonly key: string;
  readonly facts: GroupFacts;
  readonly work: GroupWork;
  readonly failure: SubjectFailure | undefined;
}

/** What the steps of this pass have brought. */
export interface GroupWork {
  readonly isWaitReported?: true;
  /** Name of the class that the group gets. */
  readonly chosenClass?: string;
  /** The content that is to be made. */
  readonly newContent?: VolumeGroupSnapshotContent;
  readonly isContentCreated?: true;
  readonly isStatusStored?: true;
  readonly isCreationReported?: true;
  /** By the server's word. */
  readonly contentOnServer?: "there" | "none";
  /** Members written, or deleted. */
  readonly membersDone?: number;
}

type Content = Stored<VolumeGroupSnapshotContent>;

/** One step of a pass over a VolumeGroupSnapshot. */
export type GroupStep =
  /** Nothing to do before something changes. */
  | { readonly step: "settle" }
  /** There may be more to do: another pass, on caches that show what this one did. */
  | { readonly step: "continue" }
  | { readonly step: "reportWait"; readonly reason: string; readonly message: string }
  /** Something else must end first; it will wake the group. */
  | { readonly step: "lookLater" }
  /** Only the cache is behind. */
  | { readonly step: "awaitCache" }
  | { readonly step: "readContent"; readonly name: string }
  | { readonly step: "fail"; readonly failure: SubjectFailure }
  | GroupWriteStep
  | MemberStep
  | SubjectFailureStep;

/** Steps that bring the group and its content together, or apart. */
export type GroupWriteStep =
  /** Reads the volumes of the selected claims, and finds the default class of their driver. */
  | { readonly step: "chooseClass" }
  | { readonly step: "storeClass"; readonly className: string }
  | { readonly step: "addFinalizer" }
  /** Reads the volumes of the selected claims, and composes the content of the group. */
  | { readonly step: "prepareContent" }
  | { readonly step: "createContent"; readonly content: VolumeGroupSnapshotContent }
  | { readonly step: "reportCreating" }
  | {
      readonly step: "bindContent";
      readonly content: Content;
      readonly uid: string;
      readonly className: string | undefined;
    }
  | { readonly step: "storeStatus"; readonly status: Readonly<Record<string, unknown>> }
  | { readonly step: "reportCreated" }
  | { readonly step: "reportReady" }
  | { readonly step: "announceDeletion"; readonly content: Content }
  | { readonly step: "deleteContent"; readonly content: Content }
  | { readonly step: "removeFinalizer" };

/** One write for a member. Each needs those before it, in this order. */
export type MemberStep =
  | { readonly step: "createMember"; readonly snapshot: VolumeSnapshot }
  | { readonly step: "createMemberContent"; readonly content: VolumeSnapshotContent }
  | {
      readonly step: "storeMemberStatus";
      readonly content: Stored<VolumeSnapshotContent>;
      readonly status: Readonly<Record<string, unknown>>;
    }
  | {
      readonly step: "bindMember";
      readonly snapshot: Stored<VolumeSnapshot>;
      readonly contentName: string;
    }
  | { readonly step: "deleteMember"; readonly member: Stored<VolumeSnapshot> };

/** The group snapshot of an observation. */
export function groupOfPass({ facts }: ObservedGroup): Stored<VolumeGroupSnapshot> {
  return facts.group;
}
