/**
 * What is to be done next with one object that is replaced: a pure decision of what was observed and of the journal.
 *
 * Invariants
 *  - Nothing is deleted but in the very version that the journal holds.
 *  - A StatefulSet is deleted only while it owns no claim, and with the policy that leaves its pods.
 *  - With two classes there is no moment without a default one, where there was one.
 *
 * Source: Kubernetes 1.20 pkg/controller/statefulset (adoption of pods and revisions), pkg/controller/garbagecollector (Orphan).
 */
import type { KubeObject, StatefulSet, Stored } from "@longshore/kube";
import type { Refusal } from "../conversion-types.ts";
import { hasBegun, hasDone, type UnitDecision } from "../units/unit-run.ts";
import { hasForm, isDefaultClass } from "./replaced-form.ts";
import {
  newNameOf,
  type PlannedReplacement,
  type ReplacementJournal,
  type ReplacementObservation,
  type ReplacementStep,
} from "./replacement-types.ts";

type Decision = UnitDecision<ReplacementStep>;
type Live = Stored<KubeObject>;

/** The next step. */
export function decideReplacementStep(journal: ReplacementJournal, seen: ReplacementObservation): Decision {
  const { planned } = journal;
  return newNameOf(planned) === planned.name ? inPlace(journal, seen) : beside(journal, seen);
}

/** The object is deleted, and made again under its name. */
function inPlace(journal: ReplacementJournal, seen: ReplacementObservation): Decision {
  const { planned } = journal;
  const { from } = seen;
  if (from === undefined) {
    if (isDeletionBegun(journal)) return next("create new object", "the old one is gone");
    return blocked(planned, "metadata.name", "it is gone, and not by this run", "make a new plan");
  }
  if (from.metadata.deletionTimestamp !== undefined) return going(journal, from);
  if (hasForm(planned.kind, from, planned.after)) return afterwards(planned, seen);
  if (from.metadata.uid !== planned.uid) {
    return blocked(
      planned,
      "metadata.uid",
      "it was made again by another in its old form",
      "pause who makes it, commit the change that the plan shows there, and run this again",
    );
  }
  return departure(journal, from, seen);
}

/** A new class beside the old one, or such a one taken away again. */
function beside(journal: ReplacementJournal, seen: ReplacementObservation): Decision {
  const { planned } = journal;
  const { from, to } = seen;
  if (to === undefined) return next("create new object", "it is not there");
  if (to.metadata.deletionTimestamp !== undefined || !hasForm(planned.kind, to, planned.after)) {
    const what = to.metadata.deletionTimestamp === undefined ? "is another one" : "is being deleted";
    return {
      kind: "blocked",
      refusal: {
        code: "name-taken",
        object: `${planned.kind} ${to.metadata.name}`,
        reason: `an object of the name of the new one ${what}`,
        remedy: "rename or remove it, and run this again",
      },
    };
  }
  if (isDefaultClass(planned.after) && !isDefaultClass(to) && !hasBegun(journal, "hand default over"))
    return next("hand default over", "the new class is not the default one");
  if (planned.keepsOld) {
    return isDefaultClass(from) && isDefaultClass(to)
      ? next("hand default over", "the old class is a default one, too")
      : { kind: "done" };
  }
  if (from === undefined) return { kind: "done" };
  if (from.metadata.deletionTimestamp !== undefined) return going(journal, from);
  if (from.metadata.uid !== planned.uid) {
    return blocked(planned, "metadata.uid", "it is another one than the plan names", "make a new plan");
  }
  return departure(journal, from, seen);
}

/** The object is there, and is to go. */
function departure(journal: ReplacementJournal, from: Live, seen: ReplacementObservation): Decision {
  const { planned } = journal;
  if (planned.kind === "StatefulSet") {
    const refusal = retentionRefusal(from as StatefulSet, planned.key);
    if (refusal !== undefined) return { kind: "blocked", refusal };
    const set = from as StatefulSet;
    const rollout = unseenChange(set) ?? unfinishedRollout(set);
    if (rollout !== undefined) return next("await rollout", rollout);
    const [claim] = seen.ownedClaims;
    if (claim !== undefined) {
      return next(
        "await free claims",
        `PersistentVolumeClaim ${claim.metadata.name} has it in metadata.ownerReferences`,
      );
    }
  }
  const saved = planned.before.metadata?.resourceVersion;
  const isSaved = saved === from.metadata.resourceVersion && hasDone(journal, "save object");
  return isSaved
    ? next("delete old object", "it is saved as it is")
    : next("save object", "it is not saved as it is now");
}

/** The object is being deleted. */
function going(journal: ReplacementJournal, from: Live): Decision {
  const { planned } = journal;
  if (from.metadata.uid === planned.uid && isDeletionBegun(journal)) {
    return next(
      "await old object gone",
      `metadata.finalizers: ${from.metadata.finalizers?.join(", ") ?? "none"}`,
    );
  }
  return blocked(
    planned,
    "metadata.deletionTimestamp",
    "it is being deleted, and not by this run",
    "see who deletes it; then make a new plan",
  );
}

/** The object has its new form. */
function afterwards(planned: PlannedReplacement, { from, orphans }: ReplacementObservation): Decision {
  if (planned.kind !== "StatefulSet" || orphans.length === 0) return { kind: "done" };
  const names = orphans.map(({ metadata }) => metadata.name).join(", ");
  return next("await pods adopted", `Pods ${names} are not controlled by ${from?.metadata.name} yet`);
}

/** With policy Delete the set owns its claims. */
export function retentionRefusal({ spec }: StatefulSet, object: string): Refusal | undefined {
  const policy = spec?.persistentVolumeClaimRetentionPolicy as { readonly whenDeleted?: string } | undefined;
  if (policy?.whenDeleted !== "Delete") return undefined;
  return {
    code: "owner-needs-action",
    object,
    field: "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
    reason: "it is Delete: the set owns its claims, and they are deleted with it",
    remedy: "set it to Retain until the set is made again",
  };
}

/**
 * Why pods of the set may still get the template before the newest one; undefined: none does. A set that is made again takes its
 * template for the only one: pods that a partition holds back would get the newest when they start again.
 */
export function unfinishedRollout({ spec, status }: StatefulSet): string | undefined {
  const { currentRevision = "", updateRevision = "" } = status ?? {};
  if (spec?.updateStrategy?.type === "OnDelete" || currentRevision === updateRevision) return undefined;
  return `it rolls out ${updateRevision}, and has pods of ${currentRevision}`;
}

/** Why the status does not say yet whether the set rolls out. */
function unseenChange({ metadata, status }: StatefulSet): string | undefined {
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  return isSeen ? undefined : "its controller has not seen it yet";
}

function isDeletionBegun(journal: ReplacementJournal): boolean {
  return journal.planned.deletionBegun || hasBegun(journal, "delete old object");
}

const next = (step: ReplacementStep, why: string): Decision => ({ kind: "step", step, why });

function blocked({ key }: PlannedReplacement, field: string, reason: string, remedy: string): Decision {
  return { kind: "blocked", refusal: { code: "changed-by-others", object: key, field, reason, remedy } };
}
