/**
 * What comes next for a claim. Pure. Source: docs/behaviour/controllers.md B3 (not bound), B4 (bound), B6 (who makes its
 * volume); the migration annotation comes first (B2).
 *
 *     Pending ──bind──► Bound ──volume gone or another's──► Lost
 */
import {
  isDeleting,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Stored,
} from "@longshore/kube";
import { selectedNodeAnnotation, storageProvisionerOf } from "@longshore/storage";
import { bindCompletedAnnotation, boundByControllerAnnotation, classOfClaim } from "./annotations.ts";
import { type BindStep, decideBindStep } from "./decide-bind-step.ts";
import type { Report } from "./events.ts";
import { isBoundTo, mismatch } from "./match-volume.ts";
import type { ProvisionerChoice } from "./provisioner-choice.ts";

/** What is known about a claim. */
export interface ClaimObservation {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** The claim with the migration annotation that the gates ask for; the same object when it has it. */
  readonly migrated: Stored<PersistentVolumeClaim>;
  /** An in-tree provisioning was begun and has not ended; `isStored`: its volume is stored. */
  readonly intent: { readonly isStored: boolean } | undefined;
  /**
   * The volume that the claim names, or else the best that it can have. Of a claim that was bound: read live unless the
   * cache shows it with this claim.
   */
  readonly volume: Stored<PersistentVolume> | undefined;
  /** A pass over another claim is binding that volume just now. */
  readonly isVolumeTaken: boolean;
  /** The class waits for a pod before it binds. */
  readonly isBindingDelayed: boolean;
  /** Who makes volumes of the class; undefined: there is no such class. */
  readonly provisioner: ProvisionerChoice | undefined;
  /** The default class, where the claim leaves its class open; undefined: it has one, or there is no default. */
  readonly defaultClass?: string | undefined;
  /** The API server does not let a claim get its class later, as before Kubernetes 1.26. */
  readonly isClassFixed?: boolean;
  /** Names of the pods that use the claim and are not scheduled. */
  readonly waitingPods: readonly string[];
  /** This pass has read live that the claim is stored as it is observed. */
  readonly isLive?: boolean;
  /** This pass has changed the phase of the claim. */
  readonly hasNewPhase?: boolean;
  /** The event that is due has been emitted. */
  readonly isReported?: boolean;
}

/** One action of the claims controller. */
export type ClaimStep =
  | { readonly step: "markMigration"; readonly claim: Stored<PersistentVolumeClaim> }
  /** Takes the provisioning finalizer off: the volume is stored. */
  | { readonly step: "removeIntent" }
  /** Has a volume made by the in-tree plugin, or what was made removed when the claim is being deleted. */
  | { readonly step: "provision" }
  /** Gives the claim the default class, which came after it. */
  | { readonly step: "assignClass"; readonly className: string }
  /** Names the external provisioner that makes the volume. */
  | { readonly step: "handOver"; readonly provisioner: string }
  | BindStep
  /** Asks the server whether the claim is still as it is observed. */
  | { readonly step: "confirmClaim" }
  /** Another claim is about to take the only volume: looks again when that is certain. */
  | { readonly step: "waitForVolume" }
  | ({ readonly step: "report" } & Report)
  | { readonly step: "setPhase"; readonly phase: "Pending" | "Lost" }
  /** Ends the pass with an error: it is retried. */
  | { readonly step: "refuse"; readonly message: string };

/** Decides on the next step. */
export function decideClaimStep(observed: ClaimObservation): ClaimStep {
  const { claim, migrated, intent } = observed;
  if (migrated !== claim) return { step: "markMigration", claim: migrated };
  if (intent?.isStored === true) return { step: "removeIntent" };
  if (intent !== undefined && isDeleting(claim)) return { step: "provision" };
  if (claim.metadata.annotations?.[bindCompletedAnnotation] !== undefined) return keepBound(observed);
  return (claim.spec?.volumeName ?? "") === "" ? findVolume(observed) : bindToNamed(observed);
}

/** B4: a claim that was bound. */
function keepBound(observed: ClaimObservation): ClaimStep {
  const { claim, volume } = observed;
  if ((claim.spec?.volumeName ?? "") === "") {
    const message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
    return lose(observed, "ClaimLost", message);
  }
  if (volume === undefined) {
    const message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    return lose(observed, "ClaimLost", message);
  }
  const ref = volume.spec?.claimRef;
  if (ref == null || ref.uid === claim.metadata.uid) return bind(observed, volume);
  const message = "Two claims are bound to the same volume, this one is bound incorrectly";
  return lose(observed, "ClaimMisbound", message);
}

/** The phase first: the event is emitted once, when it has changed. */
function lose(
  { claim, hasNewPhase, isReported }: ClaimObservation,
  reason: string,
  message: string,
): ClaimStep {
  if (claim.status?.phase !== "Lost") return { step: "setPhase", phase: "Lost" };
  if (hasNewPhase !== true || isReported === true) return { step: "settle" };
  return { step: "report", type: "Warning", reason, message };
}

/** B3, the claim names its volume: the user's choice, or a binding that was not finished. */
function bindToNamed(observed: ClaimObservation): ClaimStep {
  const { claim, volume } = observed;
  if (volume === undefined || !mayTake(volume, claim)) return stayPending(observed);
  if (isBoundTo(volume, claim)) return bind(observed, volume);
  const ref = volume.spec?.claimRef;
  const { name } = volume.metadata;
  if (ref == null) {
    const why = mismatch(volume, claim);
    if (why === undefined) return bind(observed, volume);
    const message = `Cannot bind to requested volume "${name}": ${why}`;
    return reportThen(observed, stayPending(observed), "Warning", "VolumeMismatch", message);
  }
  const message = `volume "${name}" already bound to a different claim (${ref.namespace}/${ref.name})`;
  const byController = claim.metadata.annotations?.[boundByControllerAnnotation] !== undefined;
  const next: ClaimStep = byController
    ? { step: "refuse", message: `claim ${keyOf(claim)}: ${message}` }
    : stayPending(observed);
  return reportThen(observed, next, "Warning", "FailedBinding", message);
}

/** B3, the claim names no volume. */
function findVolume(observed: ClaimObservation): ClaimStep {
  const { claim, volume, isBindingDelayed, defaultClass } = observed;
  if (volume !== undefined) return mayTake(volume, claim) ? bind(observed, volume) : { step: "settle" };
  if (defaultClass !== undefined && observed.isClassFixed !== true && !isDeleting(claim)) {
    return { step: "assignClass", className: defaultClass };
  }
  if (isBindingDelayed && claim.metadata.annotations?.[selectedNodeAnnotation] === undefined) {
    return waitForConsumer(observed);
  }
  if (classOfClaim(claim) !== "") return isDeleting(claim) ? { step: "settle" } : haveMade(observed);
  const message = "no persistent volumes available for this claim and no storage class is set";
  return reportThen(observed, stayPending(observed), "Normal", "FailedBinding", message);
}

/**
 * A claim that is being deleted takes no volume: the volume would be released with it, and its disk deleted. One that
 * has its UID already is bound to the end.
 */
function mayTake(volume: PersistentVolume, claim: Stored<PersistentVolumeClaim>): boolean {
  return !isDeleting(claim) || volume.spec?.claimRef?.uid === claim.metadata.uid;
}

function waitForConsumer(observed: ClaimObservation): ClaimStep {
  const { waitingPods } = observed;
  const next = stayPending(observed);
  if (waitingPods.length === 0) {
    const message = "waiting for first consumer to be created before binding";
    return reportThen(observed, next, "Normal", "WaitForFirstConsumer", message);
  }
  const message = `waiting for pod ${waitingPods.join(",")} to be scheduled`;
  return reportThen(observed, next, "Normal", "WaitForPodScheduled", message);
}

/** B6: the status of the claim stays as it is. */
function haveMade(observed: ClaimObservation): ClaimStep {
  const { claim, provisioner } = observed;
  if (provisioner === undefined) {
    const message = `storageclass.storage.k8s.io "${classOfClaim(claim)}" not found`;
    return reportThen(observed, { step: "settle" }, "Warning", "ProvisioningFailed", message);
  }
  switch (provisioner.kind) {
    case "in-tree":
      return { step: "provision" };
    case "none":
      return reportThen(observed, { step: "settle" }, "Warning", "ProvisioningFailed", provisioner.message);
    case "external":
      return waitForExternal(observed, provisioner.provisioner);
  }
}

function waitForExternal(observed: ClaimObservation, provisioner: string): ClaimStep {
  if (storageProvisionerOf(observed.claim.metadata.annotations) !== provisioner) {
    return { step: "handOver", provisioner };
  }
  const message = `waiting for a volume to be created, either by external provisioner "${provisioner}" or manually created by system administrator`;
  return reportThen(observed, { step: "settle" }, "Normal", "ExternalProvisioning", message);
}

/** A claim that only a cache still shows would have its volume released at once, and by its policy the disk deleted. */
function bind(
  { claim, isVolumeTaken, isLive }: ClaimObservation,
  volume: Stored<PersistentVolume>,
): ClaimStep {
  const step = decideBindStep(volume, claim);
  // The claimRef is stored: the other writes only finish what it has decided.
  if (step.step !== "bindVolume") return step;
  if (isVolumeTaken) return { step: "waitForVolume" };
  const isKept = (volume.spec?.persistentVolumeReclaimPolicy ?? "Retain") === "Retain";
  return isKept || isLive === true ? step : { step: "confirmClaim" };
}

function stayPending({ claim }: ClaimObservation): ClaimStep {
  return claim.status?.phase === "Pending" ? { step: "settle" } : { step: "setPhase", phase: "Pending" };
}

function reportThen(
  { isReported }: ClaimObservation,
  next: ClaimStep,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): ClaimStep {
  return isReported === true ? next : { step: "report", type, reason, message };
}
