/** What a pass over a VolumeSnapshot knows, and the steps it can take. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { VolumeGroupSnapshot, VolumeSnapshot, VolumeSnapshotContent } from "@longshore/storage";
import type { SubjectFailure, SubjectFailureStep } from "../subject-failure.ts";
import type { SnapshotFacts } from "./snapshot-goal.ts";

/** What is known of a snapshot, and how far the pass over it has come. */
export interface ObservedSnapshot {
  readonly key: string;
  readonly facts: SnapshotFacts;
  /** The claim of which it is made. */
  readonly claim: Stored<PersistentVolumeClaim> | undefined;
  readonly work: SnapshotWork;
  readonly failure: SubjectFailure | undefined;
}

/** What the steps of this pass have brought. */
export interface SnapshotWork {
  readonly isWaitReported?: true;
  /** The class that the snapshot gets. */
  readonly chosenClass?: ChosenClass;
  /** The content that is to be made. */
  readonly newContent?: VolumeSnapshotContent;
  readonly isClaimHeld?: true;
  readonly isContentCreated?: true;
  readonly isStatusStored?: true;
  readonly isCreationReported?: true;
  /** By the server's word. */
  readonly contentOnServer?: "there" | "none";
  /** By the server's word. */
  readonly groupOnServer?: "there" | "none";
}

/** A class as far as its choice goes. */
export interface ChosenClass {
  readonly name: string;
  readonly deletionPolicy: string;
}

/** One step of a pass over a VolumeSnapshot. */
export type SnapshotStep =
  /** Nothing to do before something changes. */
  | { readonly step: "settle" }
  /** There may be more to do: another pass, on caches that show what this one did. */
  | { readonly step: "continue" }
  | { readonly step: "reportWait"; readonly reason: string; readonly message: string }
  /** Something else must end first; it will wake the snapshot. */
  | { readonly step: "lookLater" }
  /** Only the cache is behind. */
  | { readonly step: "awaitCache" }
  /** A snapshot of a group goes only with the group. */
  | { readonly step: "awaitGroup" }
  | { readonly step: "readContent"; readonly name: string }
  | { readonly step: "readGroup"; readonly name: string; readonly uid: string | undefined }
  | { readonly step: "fail"; readonly failure: SubjectFailure }
  | SnapshotWriteStep
  | SubjectFailureStep;

/** Steps that bring the snapshot and its content together, or apart. */
export type SnapshotWriteStep =
  /** Reads the volume of the claim, and finds the default class of its driver. */
  | { readonly step: "chooseClass"; readonly claim: Stored<PersistentVolumeClaim> }
  | { readonly step: "storeClass"; readonly chosen: ChosenClass }
  | { readonly step: "addFinalizers"; readonly finalizers: readonly string[] }
  /** Reads the volume of the claim, and composes the content of the snapshot. */
  | { readonly step: "prepareContent"; readonly claim: Stored<PersistentVolumeClaim> }
  | { readonly step: "holdClaim"; readonly claim: Stored<PersistentVolumeClaim> }
  | { readonly step: "createContent"; readonly content: VolumeSnapshotContent }
  | { readonly step: "reportCreating" }
  | {
      readonly step: "bindContent";
      readonly content: Stored<VolumeSnapshotContent>;
      readonly uid: string;
      readonly className: string | undefined;
    }
  | { readonly step: "storeStatus"; readonly status: Readonly<Record<string, unknown>> }
  | { readonly step: "reportCreated" }
  | { readonly step: "reportReady" }
  | { readonly step: "joinGroup"; readonly group: Stored<VolumeGroupSnapshot> }
  | { readonly step: "announceDeletion"; readonly content: Stored<VolumeSnapshotContent> }
  | { readonly step: "deleteContent"; readonly content: Stored<VolumeSnapshotContent> }
  | { readonly step: "removeFinalizers"; readonly finalizers: readonly string[] };

/** The snapshot of an observation. */
export function snapshotOf({ facts }: ObservedSnapshot): Stored<VolumeSnapshot> {
  return facts.snapshot;
}
