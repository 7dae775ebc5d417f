/**
 * What is to be done next with one volume: a pure decision of what was observed and of what the run wants. It decides by the
 * cluster's state alone, so that a run that was ended anywhere goes on from any machine; the journal only says which objects the
 * run may take for its own.
 *
 * Invariants
 *  - Nothing is deleted while the policy of a PersistentVolume that stands for the disk is not Retain.
 *  - The claim goes only when it has the size that the plan has: what is made again asks for no less, and says no less.
 *  - The claim goes only while a PersistentVolume is there that is pre-bound to its name: who creates it again gets this disk.
 *  - The policy comes back only when one PersistentVolume is left, bound to the claim on both sides.
 *
 * Source: docs/behaviour/controllers.md B (the persistent-volume controller).
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { diskKeyOf } from "../crossing/disk-key.ts";
import type {
  PlannedVolume,
  Refusal,
  VolumeDecision,
  VolumeObservation,
  VolumeStep,
} from "./conversion-types.ts";
import { growthStep, needsPodToGrow } from "./volume-growth.ts";

/** What the decision knows beside the cluster. */
export interface VolumeIntent {
  readonly planned: PlannedVolume;
  /** The run has asked for the deletion of the claim: it may find it being deleted. */
  readonly claimDeletionBegun: boolean;
  /** The run has asked for the deletion of the old PersistentVolume. */
  readonly volumeDeletionBegun: boolean;
}

type Volume = Stored<PersistentVolume>;
type Claim = Stored<PersistentVolumeClaim>;

/** The next step. */
export function decideVolumeStep(intent: VolumeIntent, seen: VolumeObservation): VolumeDecision {
  const { planned } = intent;
  const { from, to, claim } = seen;
  const stranger = strangerOf(planned, from, to);
  if (stranger !== undefined) return blocked(stranger);
  const bound = claim?.spec?.volumeName ?? "";
  if (bound === toName(planned))
    return isDeletingNow(claim) ? claimGoesAgain(planned) : afterClaim(intent, seen);
  if (bound !== "" && bound !== planned.volume) {
    return blocked(
      changed(
        claimText(planned),
        `it is bound to ${bound}`,
        "spec.volumeName",
        "see who made that volume; this conversion has not made it",
      ),
    );
  }
  return bound === planned.volume ? beforeClaim(intent, seen) : withoutClaim(planned, seen);
}

/** The claim is bound to the old PersistentVolume. */
function beforeClaim(intent: VolumeIntent, seen: VolumeObservation): VolumeDecision {
  const { planned, claimDeletionBegun } = intent;
  const { from, claim, users, workloadsUp, workloadsDown } = seen;
  if (from === undefined) {
    return blocked(
      changed(
        `PersistentVolume ${planned.volume}`,
        "it is gone while the claim is bound to it",
        "metadata.name",
        "create it again from the backup, with policy Retain",
      ),
    );
  }
  if (from.metadata.deletionTimestamp !== undefined) {
    return blocked(
      refusal(
        "volume-deleting",
        `PersistentVolume ${planned.volume}`,
        "it is being deleted",
        "metadata.deletionTimestamp",
        "save it with policy Retain, and let it go; a deletion cannot be taken back",
      ),
    );
  }
  const isGoing = isDeletingNow(claim);
  if (isGoing && !claimDeletionBegun) {
    return blocked(
      refusal(
        "claim-deleting",
        claimText(planned),
        "it is being deleted",
        "metadata.deletionTimestamp",
        "wait until it is gone, or see what keeps it in metadata.finalizers",
      ),
    );
  }
  if (policyOf(from) !== "Retain") return next("retain old volume", `its policy is ${policyOf(from)}`);
  if (isGoing) return next("await claim gone", users.length > 0 ? users.join(", ") : finalizersOf(claim));
  const needsPod = needsPodToGrow(claim);
  if (users.length > 0) {
    if (workloadsUp.length === 0) return next("wait for quiet", users.join(", "));
    return needsPod
      ? next("await growth", "its node grows the file system while a pod has it")
      : next("scale down", workloadsUp.map(({ kind, name }) => `${kind} ${name}`).join(", "));
  }
  if (needsPod && workloadsDown.length > 0)
    return next("scale up to grow", workloadsDown.map(({ kind, name }) => `${kind} ${name}`).join(", "));
  const growth = growthStep(planned, seen);
  if (growth !== undefined) return growth;
  return prepared(planned, seen) ?? next("delete claim", "the disk is quiet and its new volume waits");
}

/** There is no claim, or one that names no volume. */
function withoutClaim(planned: PlannedVolume, seen: VolumeObservation): VolumeDecision {
  const { from, claim } = seen;
  // Its claim is gone: with another policy the disk would be deleted.
  if (from !== undefined && policyOf(from) !== "Retain") {
    return next("retain old volume", `its policy is ${policyOf(from)}`);
  }
  const preparation = prepared(planned, seen);
  if (preparation !== undefined) return preparation;
  if (claim === undefined) return next("create claim", "its new volume waits");
  return next("await bound", "it was created again by another, and its new volume waits for it");
}

/** The claim names the new PersistentVolume. */
function afterClaim(intent: VolumeIntent, seen: VolumeObservation): VolumeDecision {
  const { planned, volumeDeletionBegun } = intent;
  const { from, to, claim, workloadsDown } = seen;
  if (from !== undefined && policyOf(from) !== "Retain") {
    return next("retain old volume", `its policy is ${policyOf(from)}`);
  }
  const preparation = to === undefined || isStale(to, claim) ? prepared(planned, seen) : undefined;
  if (preparation !== undefined) return preparation;
  if (claim === undefined || to === undefined || !areBound(to, claim)) {
    return next(
      "await bound",
      `claim ${claim?.status?.phase ?? "absent"}, volume ${to?.status?.phase ?? "absent"}`,
    );
  }
  if (from !== undefined) {
    if (from.spec?.claimRef?.uid === claim.metadata.uid) {
      return blocked(
        changed(
          `PersistentVolume ${planned.volume}`,
          "the claim is bound to both volumes",
          "spec.claimRef.uid",
          "see which of the two the claim names",
        ),
      );
    }
    if (from.metadata.deletionTimestamp !== undefined) {
      return next("await old volume gone", finalizersOf(from));
    }
    // A finalizer of another may have come between: it is asked for again only where that was not done.
    return next("delete old volume", volumeDeletionBegun ? "it is there again" : "the new one is bound");
  }
  if (policyOf(to) !== planned.policy) return next("restore policy", `its policy is ${policyOf(to)}`);
  if (workloadsDown.length > 0) {
    return next("scale up", workloadsDown.map(({ kind, name }) => `${kind} ${name}`).join(", "));
  }
  return { step: "done" };
}

/** What the new PersistentVolume still needs before a claim may bind to it. */
function prepared(planned: PlannedVolume, { to, claim }: VolumeObservation): VolumeDecision | undefined {
  if (to === undefined) return next("create new volume", "it is not there");
  if (to.metadata.deletionTimestamp !== undefined) {
    return blocked(
      refusal(
        "volume-deleting",
        `PersistentVolume ${toName(planned)}`,
        "it is being deleted",
        "metadata.deletionTimestamp",
        "let it go, and run this again: it is made once more",
      ),
    );
  }
  if (isStale(to, claim) || policyOf(to) !== "Retain")
    return next("free new volume", "it remembers a claim that is gone");
  const phase = to.status?.phase ?? "Pending";
  return phase === "Available" || phase === "Bound"
    ? undefined
    : next("await new volume", `its phase is ${phase}`);
}

/** An object under a name of the conversion that it has not made. */
function strangerOf(
  planned: PlannedVolume,
  from: Volume | undefined,
  to: Volume | undefined,
): Refusal | undefined {
  if (from !== undefined && from.metadata.uid !== planned.volumeUid) {
    return changed(
      `PersistentVolume ${planned.volume}`,
      "it is another one than the plan names",
      "metadata.uid",
      "make a new plan",
    );
  }
  if (to === undefined) return undefined;
  const { name, namespace } = planned.claim;
  const claimRef = to.spec?.claimRef;
  const isOurs =
    diskKeyOf(to) === diskKeyOf(planned.toAfter) &&
    claimRef?.name === name &&
    claimRef.namespace === namespace;
  if (isOurs) return undefined;
  return refusal(
    "name-taken",
    `PersistentVolume ${toName(planned)}`,
    "a volume of that name stands for another disk or another claim",
    "spec",
    "rename or remove it, and make a new plan",
  );
}

/** It remembers the UID of a claim that is not this one. */
function isStale(to: Volume, claim: Claim | undefined): boolean {
  const uid = to.spec?.claimRef?.uid ?? "";
  return uid !== "" && uid !== claim?.metadata.uid;
}

/** Bound on both sides, as read from both. */
export function areBound(volume: Volume, claim: Claim): boolean {
  return (
    claim.status?.phase === "Bound" &&
    claim.spec?.volumeName === volume.metadata.name &&
    volume.status?.phase === "Bound" &&
    volume.spec?.claimRef?.uid === claim.metadata.uid
  );
}

/** The policy; what the API takes where none is written. */
export const policyOf = (volume: PersistentVolume): string =>
  volume.spec?.persistentVolumeReclaimPolicy ?? "Retain";

const toName = ({ toAfter }: PlannedVolume): string => toAfter.metadata?.name ?? "";
const claimText = ({ claim }: PlannedVolume): string =>
  `PersistentVolumeClaim ${claim.namespace}/${claim.name}`;
const isDeletingNow = (claim: Claim | undefined): boolean => claim?.metadata.deletionTimestamp !== undefined;
const finalizersOf = (object: Claim | Volume | undefined): string =>
  `metadata.finalizers: ${object?.metadata.finalizers?.join(", ") ?? "none"}`;

function claimGoesAgain(planned: PlannedVolume): VolumeDecision {
  return blocked(
    refusal(
      "claim-deleting",
      claimText(planned),
      "it is bound to the new volume and is being deleted by another",
      "metadata.deletionTimestamp",
      "wait until it is gone, and run this again: the disk is kept by policy Retain",
    ),
  );
}

const next = (step: VolumeStep, why: string): VolumeDecision => ({ step, why });
const blocked = (reason: Refusal): VolumeDecision => ({ step: "blocked", refusal: reason });

function refusal(
  code: Refusal["code"],
  object: string,
  reason: string,
  field: string,
  remedy: string,
): Refusal {
  return { code, object, field, reason, remedy };
}

function changed(object: string, reason: string, field: string, remedy: string): Refusal {
  return refusal("changed-by-others", object, reason, field, remedy);
}
