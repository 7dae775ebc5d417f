/**
 * What is to be reached for the size of one claim: a pure function of what is stored and of how the last attempt ended.
 *
 *                        ┌── asked for another size ──────────────┐
 *     "" ──► ControllerResizeInProgress ──► ControllerResizeInfeasible
 *                 │      ▲   (retried with the size it was begun with, unless surely refused)
 *                 ▼      └──────────────────────────────┐
 *          NodeResizePending ──► NodeResizeInProgress ──► NodeResizeInfeasible
 *                 │                     │ (kubelet)
 *                 └────────► "" ◄───────┘   status.capacity is what was allocated
 *
 * Invariants
 *  - A size that may have been begun is finished before another is tried: how far it got is unknown.
 *  - While it is the kubelet's turn, the driver is not called.
 *  - A server that does not keep `allocatedResources` takes the same path with an empty state: the classic sequence.
 *
 * Source: docs/behaviour/sidecars.md 4, KEP-1790.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  parseQuantity,
  type Quantity,
} from "@longshore/kube";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import type { Driver } from "../common/sidecar-env.ts";
import type { Attempt } from "./claim-memory.ts";
import { holds } from "./merged-conditions.ts";
import { isBoundTo, isExpandedBy } from "./volume-to-resize.ts";

/** What the goal depends on. */
export interface ResizeFacts {
  readonly driver: Pick<Driver, "name" | "inTreeName">;
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
  readonly attempt: Attempt;
  /** The driver expands on nodes only: there is nothing to ask its controller. */
  readonly trivial: boolean;
  /** A pod is known to use the claim. */
  readonly isInUse: boolean;
  /** Monotonic, in milliseconds. */
  readonly nowMs: number;
}

/** What is to be reached. */
export type ResizeGoal =
  | { readonly kind: "none" }
  /** What is asked for is impossible; it is tried again later. */
  | { readonly kind: "wait"; readonly delayMs: number }
  /** The driver expands only volumes that are not in use, and a pod uses this one. */
  | { readonly kind: "inUse" }
  /** Let the driver expand; `begin`: store first that this size is under way. */
  | { readonly kind: "expand"; readonly size: string; readonly begin: boolean }
  /** The file system has grown: the note of the size before is done with. */
  | { readonly kind: "forgetOldSize" };

const none: ResizeGoal = { kind: "none" };

/** The goal. */
export function resizeGoal(facts: ResizeFacts): ResizeGoal {
  const { claim, volume, driver, attempt, nowMs } = facts;
  if (!isBoundTo(volume, claim) || !isExpandedBy(driver, claim, volume)) return none;
  if (!wantsMore(claim)) return hasOldSize(claim, volume) ? { kind: "forgetOldSize" } : none;
  const size = sizeToReach(facts);
  if (size === undefined) return none;
  const { infeasible } = attempt;
  if (infeasible !== undefined && infeasible.request === size && nowMs < infeasible.untilMs) {
    return { kind: "wait", delayMs: infeasible.untilMs - nowMs };
  }
  if (attempt.inUse && facts.isInUse) return { kind: "inUse" };
  const allocated = claim.status?.allocatedResources?.storage;
  const isBegun =
    allocated !== undefined && quantity(allocated).equals(quantity(size)) && stateOf(claim) !== "";
  return { kind: "expand", size, begin: !isBegun };
}

/** Bound, and asking for more than it has. */
export function wantsMore(claim: PersistentVolumeClaim): boolean {
  if (claim.status?.phase !== "Bound" || !claim.spec?.volumeName) return false;
  const [wanted, has] = [requestOf(claim), claim.status.capacity?.storage ?? "0"];
  return wanted !== has && quantity(wanted).compare(quantity(has)) > 0;
}

/** What the claim asks for. */
export function requestOf(claim: PersistentVolumeClaim): string {
  return claim.spec?.resources?.requests?.storage ?? "0";
}

/** How far the expansion of the claim is, by `status.allocatedResourceStatuses`. */
export function stateOf(claim: PersistentVolumeClaim): string {
  return claim.status?.allocatedResourceStatuses?.storage ?? "";
}

/** The size to give the volume now; undefined: none, the kubelet is at work. */
function sizeToReach({ claim, volume, attempt, trivial }: ResizeFacts): string | undefined {
  const wanted = requestOf(claim);
  const allocated = claim.status?.allocatedResources?.storage;
  const begun = allocated ?? wanted;
  const volumeHas = quantity(volume.spec?.capacity?.storage ?? "0");
  const isSmaller = (size: string) => volumeHas.compare(quantity(size)) < 0;
  switch (stateOf(claim)) {
    case "NodeResizePending":
    case "NodeResizeInProgress":
      return isSmaller(wanted) && isSmaller(begun) ? begun : undefined;
    case "NodeResizeInfeasible":
      // Without a controller nothing has grown yet, so that less can be requested.
      return trivial && !isSmaller(wanted) ? wanted : begun;
    case "ControllerResizeInProgress":
      return isSmaller(wanted) && attempt.refused ? wanted : begun;
    case "ControllerResizeInfeasible":
      return isSmaller(wanted) ? wanted : begun;
    default:
      if (isSmaller(wanted)) return wanted;
      if (allocated !== undefined && quantity(allocated).compare(capacityOf(claim)) > 0) return allocated;
      // The classic sequence: the volume has grown, and this condition shows whether that was recorded.
      return holds(claim.status?.conditions, "FileSystemResizePending") ? undefined : wanted;
  }
}

function hasOldSize(claim: PersistentVolumeClaim, volume: PersistentVolume): boolean {
  if (volume.metadata?.annotations?.[preResizeCapacityAnnotation] === undefined) return false;
  return (
    claim.status?.phase === "Bound" &&
    capacityOf(claim).compare(quantity(volume.spec?.capacity?.storage ?? "0")) >= 0
  );
}

function capacityOf(claim: PersistentVolumeClaim): Quantity {
  return quantity(claim.status?.capacity?.storage ?? "0");
}

function quantity(text: string): Quantity {
  return parseQuantity(text);
}
