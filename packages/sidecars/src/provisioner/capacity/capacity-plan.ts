/**
 * Which CSIStorageCapacity objects there are to be, and which of those that there are fit
 * (docs/behaviour/sidecars.md 2.9). Pure.
 */
import { type CSIStorageCapacity, keyOf, type StorageClass, type Stored } from "@longshore/kube";
import type { Segments } from "@longshore/storage";
import { segmentKey } from "../topology/topology-segments.ts";

/** One object that is to be: the room for volumes of one class in one part of the cluster. */
export interface CapacityItem {
  readonly key: string;
  readonly storageClass: StorageClass;
  readonly segments: Segments;
}

/** What there is to be and what there is. */
export interface CapacityPlan {
  /** By {@link CapacityItem.key}. */
  readonly items: ReadonlyMap<string, CapacityItem>;
  /** The object of an item, where it exists; of several the oldest. */
  readonly present: ReadonlyMap<string, Stored<CSIStorageCapacity>>;
  /** Objects of no item, and second ones of an item: to be deleted. */
  readonly obsolete: readonly Stored<CSIStorageCapacity>[];
}

/** What a plan is made from. */
export interface CapacityQuestion {
  readonly driverName: string;
  readonly segments: readonly Segments[];
  readonly storageClasses: readonly StorageClass[];
  /** Those that this provisioner manages. */
  readonly objects: readonly Stored<CSIStorageCapacity>[];
  /** Also for classes whose claims are provisioned without a scheduler. */
  readonly forImmediateBinding: boolean;
}

/** What to have and what to drop. */
export function planCapacity(question: CapacityQuestion): CapacityPlan {
  const items = new Map<string, CapacityItem>();
  for (const storageClass of question.storageClasses) {
    if (storageClass.provisioner !== question.driverName) continue;
    const isDelayed = storageClass.volumeBindingMode === "WaitForFirstConsumer";
    if (!isDelayed && !question.forImmediateBinding) continue;
    for (const segments of question.segments) {
      const key = itemKey(storageClass.metadata?.name ?? "", segments);
      items.set(key, { key, storageClass, segments });
    }
  }
  const present = new Map<string, Stored<CSIStorageCapacity>>();
  const obsolete: Stored<CSIStorageCapacity>[] = [];
  for (const object of [...question.objects].sort(olderFirst)) {
    const key = itemKeyOf(object);
    if (key === undefined || !items.has(key) || present.has(key)) obsolete.push(object);
    else present.set(key, object);
  }
  return { items, present, obsolete };
}

/** The class of an item key. */
export function classOfItem(key: string): string {
  return key.slice(0, key.indexOf(" "));
}

function itemKey(className: string, segments: Segments): string {
  return `${className} ${segmentKey(segments)}`;
}

/** Undefined for an object that selects its nodes in a way we never write. */
function itemKeyOf({ storageClassName, nodeTopology }: CSIStorageCapacity): string | undefined {
  if (nodeTopology === undefined || nodeTopology === null) return undefined;
  if ((nodeTopology.matchExpressions ?? []).length > 0) return undefined;
  return itemKey(storageClassName, nodeTopology.matchLabels ?? {});
}

/** With the name to decide between equal times, so that every process keeps the same one. */
function olderFirst(a: Stored<CSIStorageCapacity>, b: Stored<CSIStorageCapacity>): number {
  const times = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? "");
  const [x = "", y = ""] = times[0] === times[1] ? [keyOf(a), keyOf(b)] : times;
  return x < y ? -1 : x > y ? 1 : 0;
}
