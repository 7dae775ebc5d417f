/** The actions of the steps over capacity objects, one small action each. */
import {
  type Actions,
  type CSIStorageCapacity,
  formatBytes,
  resources,
  type Stored,
  settled,
  type TokenBucket,
} from "@longshore/kube";
import { stripParameters } from "@longshore/storage";
import type { SidecarEnv } from "../../common/sidecar-env.ts";
import type { CapacityContext } from "./capacity-context.ts";
import type { CapacityItem, CapacityPlan } from "./capacity-plan.ts";
import { type CapacityStep, isOwned, type ObservedCapacity, type Room } from "./decide-capacity.ts";
import { driverNameLabel, managedByLabel } from "./managed-by.ts";

/** Wakes what a plan names. */
export interface PlanWakes {
  wakeItem(item: string): void;
  wakeObject(object: Stored<CSIStorageCapacity>): void;
}

/** The actions. @param bucket undefined: writes are not limited */
export function capacityActions(
  context: CapacityContext,
  bucket: TokenBucket | undefined,
  { wakeItem, wakeObject }: PlanWakes,
): Actions<ObservedCapacity, CapacityStep> {
  const metrics = capacityMetrics(context.env);
  const { kube } = context.env;
  return {
    settle: () => settled,
    followPlan({ plan }) {
      metrics.show(plan);
      // An item with an object has a figure already, which the poll renews.
      for (const item of plan.items.keys()) if (!plan.present.has(item)) wakeItem(item);
      for (const object of plan.obsolete) wakeObject(object);
      return settled;
    },
    async askForRoom({ item }, observed, { signal }) {
      const room = await roomOf(context, item, signal);
      return { observed: observed.kind === "item" ? { ...observed, room } : observed };
    },
    async awaitTurn(_, observed, { signal }) {
      await bucket?.take(signal);
      return { observed: observed.kind === "plan" ? observed : { ...observed, mayWrite: true } };
    },
    async createObject({ item, room }, _, { signal }) {
      await kube.create(resources.csiStorageCapacities, newObject(context, item, room), { signal });
      return settled;
    },
    async updateObject({ object, room }, _, { signal }) {
      await kube.update(resources.csiStorageCapacities, changedObject(context, object, room), { signal });
      return settled;
    },
    async deleteObject({ object }, _, { signal }) {
      const { name, namespace = "", uid } = object.metadata;
      await kube.delete(resources.csiStorageCapacities, { name, namespace }, { signal, uid });
      return settled;
    },
  };
}

async function roomOf(
  { driver, timeoutMs }: CapacityContext,
  { storageClass, segments }: CapacityItem,
  signal: AbortSignal,
): Promise<Room> {
  const hasTopology = Object.keys(segments).length > 0;
  const answer = await driver.csi.controller.getCapacity(
    {
      parameters: stripParameters(storageClass.parameters ?? {}),
      ...(hasTopology ? { accessibleTopology: { segments: { ...segments } } } : {}),
    },
    { signal, timeoutMs, migrated: false },
  );
  const maximum = answer.maximumVolumeSize;
  return {
    capacity: formatBytes(answer.availableCapacity),
    maximumVolumeSize: maximum === undefined ? undefined : formatBytes(maximum),
  };
}

function newObject(context: CapacityContext, item: CapacityItem, room: Room): CSIStorageCapacity {
  const { namespace, driver, managedBy, owner } = context;
  return {
    metadata: {
      generateName: "csisc-",
      namespace,
      labels: { [driverNameLabel]: driver.name, [managedByLabel]: managedBy },
      ...(owner === undefined ? {} : { ownerReferences: [owner] }),
    },
    storageClassName: item.storageClass.metadata?.name ?? "",
    nodeTopology: { matchLabels: { ...item.segments } },
    ...roomFields(room),
  };
}

function roomFields({ capacity, maximumVolumeSize }: Room): Partial<CSIStorageCapacity> {
  return { capacity, ...(maximumVolumeSize === undefined ? {} : { maximumVolumeSize }) };
}

/** On the version that was seen; after a conflict the object is read again. */
function changedObject(
  { owner }: CapacityContext,
  before: Stored<CSIStorageCapacity>,
  room: Room,
): CSIStorageCapacity {
  const { metadata } = before;
  const { capacity: _, maximumVolumeSize: __, ...rest } = before;
  const changed = { ...rest, ...roomFields(room) };
  if (owner === undefined || isOwned(owner, before)) return changed;
  const ownerReferences = [...(metadata.ownerReferences ?? []), owner];
  return { ...changed, metadata: { ...metadata, ownerReferences } };
}

function capacityMetrics({ meter }: SidecarEnv): { show(plan: CapacityPlan): void } {
  const goal = meter.gauge("csistoragecapacities_desired_goal", {
    help: "Desired CSIStorageCapacity objects.",
  });
  const current = meter.gauge("csistoragecapacities_desired_current", {
    help: "Desired CSIStorageCapacity objects that exist.",
  });
  const obsolete = meter.gauge("csistoragecapacities_obsolete", {
    help: "Existing CSIStorageCapacity objects that are not desired: to be deleted.",
  });
  return {
    show(plan) {
      goal.set(plan.items.size);
      current.set(plan.present.size);
      obsolete.set(plan.obsolete.length);
    },
  };
}
