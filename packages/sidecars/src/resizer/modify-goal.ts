/**
 * What is to be reached for the attributes of one claim's volume: a pure function of what is stored and of how the last
 * attempt ended.
 *
 *     class named ─► (Pending: there is no such class yet) ─► InProgress ─► current
 *                                                                │  └─► Infeasible ─► another class, or back
 *                                                                └── uncertain: the same class again
 *
 * Invariants
 *  - Attributes that may have been set in part are set whole before others are tried, so that going back to the former
 *    class sets its attributes again instead of assuming that nothing changed.
 *  - That a modification is under way is stored; a claim found so after a restart counts as uncertain.
 *
 * Source: docs/behaviour/sidecars.md 4 "ModifyVolume", KEP-3751.
 */
import type { PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass } from "@longshore/kube";
import type { Driver } from "../common/sidecar-env.ts";
import type { Attempt } from "./claim-memory.ts";
import { modifyConditions } from "./merged-conditions.ts";
import { isBoundTo } from "./volume-to-resize.ts";

/** What the goal depends on. */
export interface ModifyFacts {
  readonly driver: Pick<Driver, "name">;
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
  readonly attempt: Attempt;
  /** The class that the claim names, and the one under way, by name; what does not exist is left out. */
  readonly classes: Readonly<Record<string, VolumeAttributesClass>>;
  /** Monotonic, in milliseconds. */
  readonly nowMs: number;
}

/** What is to be reached. */
export type ModifyGoal =
  | { readonly kind: "none" }
  /** What is asked for is impossible; it is tried again later. */
  | { readonly kind: "wait"; readonly delayMs: number }
  /** The class is not there; `isSaid`: the claim says so already. */
  | { readonly kind: "pending"; readonly className: string; readonly isSaid: boolean }
  /** The class belongs to another driver. */
  | { readonly kind: "foreign"; readonly className: string; readonly driverName: string }
  /** Nothing is requested any more, and nothing is under way. */
  | { readonly kind: "cancel" }
  /** Let the driver modify; `begin`: store first that this class is under way. */
  | {
      readonly kind: "modify";
      readonly className: string;
      readonly parameters: Readonly<Record<string, string>>;
      readonly begin: boolean;
    };

const none: ModifyGoal = { kind: "none" };

/** The goal. Only CSI volumes have attributes: an in-tree one has no field for them. */
export function modifyGoal(facts: ModifyFacts): ModifyGoal {
  const { claim, volume, driver, attempt, nowMs } = facts;
  if (!wantsOther(claim) || !isBoundTo(volume, claim)) return none;
  if (volume.spec?.csi?.driver !== driver.name) return none;
  const wanted = claim.spec?.volumeAttributesClassName ?? "";
  const { target, state } = progressOf(claim);
  if (wanted === "" && state !== "InProgress") {
    const isReported = (claim.status?.conditions ?? []).some(({ type }) => modifyConditions.has(type));
    return isReported ? { kind: "cancel" } : none;
  }
  const isUncertain = state === "InProgress" && !attempt.refused;
  const mustGoOn = (isUncertain || wanted === "") && target !== "";
  // A class that is gone cannot be gone on with; the next one sets all that it has set.
  const goesOn = mustGoOn && (wanted === "" || facts.classes[target] !== undefined);
  const className = goesOn ? target : wanted;
  const { infeasible } = attempt;
  if (infeasible !== undefined && infeasible.request === className && nowMs < infeasible.untilMs) {
    return { kind: "wait", delayMs: infeasible.untilMs - nowMs };
  }
  const attributes = facts.classes[className];
  if (attributes === undefined) {
    return { kind: "pending", className, isSaid: state === "Pending" && target === className };
  }
  if (attributes.driverName !== driver.name) {
    return { kind: "foreign", className, driverName: attributes.driverName };
  }
  const begin = state !== "InProgress" || target !== className;
  return { kind: "modify", className, parameters: attributes.parameters ?? {}, begin };
}

/** Bound, and naming another class than is in force, or with a modification that has not ended. */
export function wantsOther(claim: PersistentVolumeClaim): boolean {
  if (claim.status?.phase !== "Bound" || !claim.spec?.volumeName) return false;
  const current = claim.status.currentVolumeAttributesClassName ?? "";
  return (claim.spec.volumeAttributesClassName ?? "") !== current || progressOf(claim).state !== "";
}

/** Which class is being applied, and how far that is. Older versions leave an empty state behind instead of none. */
export function progressOf(claim: PersistentVolumeClaim): {
  readonly target: string;
  readonly state: string;
} {
  const { targetVolumeAttributesClassName: target = "", status: state = "" } =
    claim.status?.modifyVolumeStatus ?? {};
  return { target, state };
}

/** Whether a change of a claim asks for a look; what is written while a modification fails does not. */
export function shouldLookAtAttributes(before: PersistentVolumeClaim, after: PersistentVolumeClaim): boolean {
  if (!wantsOther(after)) return false;
  if (before.spec?.volumeAttributesClassName !== after.spec?.volumeAttributesClassName) return true;
  if (before.status?.phase !== after.status?.phase || before.spec?.volumeName !== after.spec?.volumeName)
    return true;
  const current = (claim: PersistentVolumeClaim) => claim.status?.currentVolumeAttributesClassName;
  return current(before) !== current(after);
}
