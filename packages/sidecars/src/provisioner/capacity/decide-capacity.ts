/** The decision of a pass over capacity objects (docs/behaviour/sidecars.md 2.9). Pure. */
import { type CSIStorageCapacity, type OwnerReference, parseQuantity, type Stored } from "@longshore/kube";
import type { CapacityItem, CapacityPlan } from "./capacity-plan.ts";

/** How much room there is, as the API writes it. */
export interface Room {
  readonly capacity: string;
  readonly maximumVolumeSize: string | undefined;
}

/** What is known of the plan, of one object that is to be, or of one that is. */
export type ObservedCapacity =
  | { readonly kind: "plan"; readonly plan: CapacityPlan }
  | ObservedItem
  | {
      readonly kind: "object";
      readonly object: Stored<CSIStorageCapacity>;
      /** No part of the plan needs it. */
      readonly isObsolete: boolean;
      readonly mayWrite: boolean;
    };

/** One object that is to be. */
export interface ObservedItem {
  readonly kind: "item";
  readonly item: CapacityItem;
  /** The object, if it is there. */
  readonly present: Stored<CSIStorageCapacity> | undefined;
  /** Undefined: the objects outlive the provisioner's workload. */
  readonly owner: OwnerReference | undefined;
  /** The driver's answer in this pass. */
  readonly room: Room | undefined;
  /** Writes are not limited, or this pass has waited for its turn. */
  readonly mayWrite: boolean;
}

/** One step of a pass. */
export type CapacityStep =
  | { readonly step: "settle" }
  /** Wakes what the plan lacks, and what it does not need. */
  | { readonly step: "followPlan"; readonly plan: CapacityPlan }
  | { readonly step: "askForRoom"; readonly item: CapacityItem }
  /** Waits for the limit of writes. */
  | { readonly step: "awaitTurn" }
  | { readonly step: "createObject"; readonly item: CapacityItem; readonly room: Room }
  | { readonly step: "updateObject"; readonly object: Stored<CSIStorageCapacity>; readonly room: Room }
  | { readonly step: "deleteObject"; readonly object: Stored<CSIStorageCapacity> };

/** The next step. */
export function decideCapacity(observed: ObservedCapacity): CapacityStep {
  switch (observed.kind) {
    case "plan":
      return { step: "followPlan", plan: observed.plan };
    case "item":
      return decideItem(observed);
    default: {
      const { object, isObsolete, mayWrite } = observed;
      if (!isObsolete) return { step: "settle" };
      return mayWrite ? { step: "deleteObject", object } : { step: "awaitTurn" };
    }
  }
}

function decideItem({ item, present, owner, room, mayWrite }: ObservedItem): CapacityStep {
  if (room === undefined) return { step: "askForRoom", item };
  if (present !== undefined && isUpToDate(owner, present, room)) return { step: "settle" };
  if (!mayWrite) return { step: "awaitTurn" };
  return present === undefined
    ? { step: "createObject", item, room }
    : { step: "updateObject", object: present, room };
}

function isUpToDate(
  owner: OwnerReference | undefined,
  object: Stored<CSIStorageCapacity>,
  room: Room,
): boolean {
  return (
    isOwned(owner, object) &&
    sameAmount(object.capacity, room.capacity) &&
    sameAmount(object.maximumVolumeSize, room.maximumVolumeSize)
  );
}

/** Whether the object goes with its owner, if it is to have one. */
export function isOwned(
  owner: OwnerReference | undefined,
  { metadata }: Stored<CSIStorageCapacity>,
): boolean {
  return owner === undefined || (metadata.ownerReferences ?? []).some(({ uid }) => uid === owner.uid);
}

function sameAmount(a: string | undefined | null, b: string | undefined): boolean {
  if (a === undefined || a === null || b === undefined) return (a ?? undefined) === b;
  return parseQuantity(a).toBytes() === parseQuantity(b).toBytes();
}
