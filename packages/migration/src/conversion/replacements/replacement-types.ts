/**
 * A StorageClass or a StatefulSet whose immutable fields change: the object is deleted and made again, or a new one is made beside it
 * (decision record 0032). An undo is the same with both exchanged.
 */
import type { KubeObject, PersistentVolumeClaim, Pod, Stored } from "@longshore/kube";
import type { PlannedReplacement } from "../conversion-types.ts";
import type { UnitJournal } from "../units/unit-run.ts";

export type { PlannedReplacement, ReplacedKind } from "../conversion-types.ts";

/** The steps of one object, in order. Each first looks whether it is done already. */
export const replacementSteps = [
  /** All pods of a StatefulSet have the revision of its template: the new set knows no other. */
  "await rollout",
  /** No claim is owned by the StatefulSet: it would be deleted with it. */
  "await free claims",
  /** The object as it is now, in the journal and as a file. */
  "save object",
  /** A StatefulSet without its pods (propagation policy Orphan). */
  "delete old object",
  "await old object gone",
  "create new object",
  /** The new StatefulSet controls the pods of the old one. */
  "await pods adopted",
  /** Of two classes the other one is the default of the cluster. */
  "hand default over",
] as const;
/** One of them. */
export type ReplacementStep = (typeof replacementSteps)[number];

/** The journal of one object: all that is needed to go on, or back, from any machine. */
export interface ReplacementJournal extends UnitJournal<ReplacementStep> {
  readonly planned: PlannedReplacement;
}

/** What is observed of one object; the decision is a pure function of it and the journal. */
export interface ReplacementObservation {
  /** Under the name of the object that was there. */
  readonly from: Stored<KubeObject> | undefined;
  /** Under the name of the new one; the same where the name stays. */
  readonly to: Stored<KubeObject> | undefined;
  /** Claims that the StatefulSet owns. */
  readonly ownedClaims: readonly Stored<PersistentVolumeClaim>[];
  /** Pods of the StatefulSet that no controller has, or the set that was deleted. */
  readonly orphans: readonly Stored<Pod>[];
}

/** Name of the new object. */
export const newNameOf = ({ after }: PlannedReplacement): string => after.metadata?.name ?? "";
