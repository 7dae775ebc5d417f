/**
 * Publishes the driver's free capacity for schedulers, in CSIStorageCapacity objects (docs/behaviour/sidecars.md 2.9).
 *
 *     nodes, classes, objects change ──► plan ──► item:   GetCapacity, then create or update its object
 *     every poll, volumes made or deleted ────────► │
 *                                                   └──► object: delete it, unless the plan has come to want it
 *
 * Invariants
 *  - One object for each part of the cluster and class of the driver, made by this provisioner (by its labels); what
 *    others made is never touched.
 *  - Nothing is remembered: what there is to be follows from nodes and classes, what there is from the objects.
 *  - When the driver cannot say, the last figure stays.
 */
import {
  type CSINode,
  type CSIStorageCapacity,
  type FlowControl,
  formatBytes,
  type Informer,
  type KubeClient,
  keyOf,
  type Node,
  type OwnerReference,
  parseQuantity,
  type ReconcileResult,
  resources,
  type StorageClass,
  type Stored,
  settled,
  startWorkQueue,
  TokenBucket,
} from "@longshore/kube";
import { type BackoffPolicy, periodically } from "@longshore/runtime";
import { type Segments, stripParameters } from "@longshore/storage";
import type { Driver, SidecarEnv } from "../../common/env.ts";
import type { SidecarScope } from "../../common/sidecar.ts";
import { sameLabels } from "../topology-view.ts";
import { type CapacityItem, type CapacityPlan, classOfItem, planCapacity } from "./capacity-plan.ts";
import { driverNameLabel, managedByLabel } from "./managed-by.ts";
import { topologySegments } from "./segments.ts";

/** What the controller works with. */
export interface CapacityContext {
  readonly env: SidecarEnv;
  readonly driver: Driver;
  readonly storageClasses: Informer<StorageClass>;
  readonly csiNodes: Informer<CSINode>;
  readonly nodes: Informer<Node>;
  /** The objects of this provisioner: selected by its labels. */
  readonly objects: Informer<CSIStorageCapacity>;
  readonly namespace: string;
  readonly managedBy: string;
  /** Undefined: the objects outlive the provisioner's workload. */
  readonly owner: OwnerReference | undefined;
  /** The only part of the cluster to publish, where each node has a provisioner of its own. */
  readonly fixedSegments: Segments | undefined;
  readonly forImmediateBinding: boolean;
  readonly pollIntervalMs: number;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  readonly threads: number;
  readonly backoff: BackoffPolicy;
  /** How fast objects are written; undefined: as fast as the server takes them. */
  readonly writes: FlowControl | undefined;
}

/** A running controller. */
export interface CapacityController {
  /** Asks for the capacity of this class again, after a short delay. */
  refresh(storageClassName: string): void;
}

/** Volumes come in bursts: the room is asked for again once a second at most. */
const REFRESH_AFTER_MS = 1000;
const planKey = "plan";

/** Starts the controller in `scope`. */
export function startCapacity(context: CapacityContext, scope: SidecarScope): CapacityController {
  const { env, storageClasses, csiNodes, nodes, objects } = context;
  const metrics = capacityMetrics(env);
  const bucket = context.writes === undefined ? undefined : new TokenBucket(env.clock, context.writes);
  const pace = (signal: AbortSignal) => bucket?.take(signal) ?? Promise.resolve();
  let known: CapacityPlan | undefined;
  const planNow = (): CapacityPlan => {
    known ??= planCapacity({
      driverName: context.driver.name,
      segments: segmentsNow(context),
      storageClasses: storageClasses.list(),
      objects: objects.list(),
      forImmediateBinding: context.forImmediateBinding,
    });
    return known;
  };
  const queue = startWorkQueue(env, {
    name: "provisioner-capacity",
    workers: context.threads,
    backoff: context.backoff,
    reconcile: async (key, signal): Promise<ReconcileResult> => {
      if (key.startsWith(itemPrefix)) {
        await refreshItem(context, planNow(), key.slice(itemPrefix.length), pace, signal);
      } else if (key.startsWith(objectPrefix)) {
        await dropObject(context, planNow(), key.slice(objectPrefix.length), pace, signal);
      } else {
        const plan = planNow();
        metrics.tell(plan);
        for (const item of plan.items.keys()) if (!plan.present.has(item)) queue.add(itemPrefix + item);
        for (const object of plan.obsolete) queue.add(objectPrefix + keyOf(object));
      }
      return settled;
    },
  });
  scope.own(queue);
  const replan = () => {
    known = undefined;
    queue.add(planKey);
  };
  const onAnyChange = { added: replan, updated: replan, deleted: replan };
  scope.onStop(
    storageClasses.onChange(onAnyChange),
    csiNodes.onChange(onAnyChange),
    nodes.onChange({
      ...onAnyChange,
      updated: (before, after) => {
        if (!sameLabels(before, after)) replan();
      },
    }),
    objects.onChange(onAnyChange),
  );
  replan();
  const refreshAll = () => {
    for (const item of planNow().items.keys()) queue.add(itemPrefix + item, "background");
  };
  // Figures found at the start are of unknown age.
  refreshAll();
  scope.spawn(async (signal) => {
    const { pollIntervalMs: periodMs } = context;
    await env.clock.sleep(periodMs, signal);
    await periodically(env, { name: "capacity poll", periodMs }, signal, async () => refreshAll());
  });
  return {
    refresh(storageClassName) {
      for (const item of planNow().items.keys()) {
        if (classOfItem(item) === storageClassName) queue.addAfter(itemPrefix + item, REFRESH_AFTER_MS);
      }
    },
  };
}

const itemPrefix = "item ";
const objectPrefix = "object ";

function segmentsNow({ driver, fixedSegments, csiNodes, nodes }: CapacityContext): readonly Segments[] {
  if (fixedSegments !== undefined) return [fixedSegments];
  // Its room is the same from everywhere.
  if (!driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS")) return [{}];
  return topologySegments(driver.name, csiNodes.list(), nodes.list());
}

async function refreshItem(
  context: CapacityContext,
  plan: CapacityPlan,
  key: string,
  pace: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const item = plan.items.get(key);
  if (item === undefined) return;
  const room = await roomOf(context, item, signal);
  const { kube } = context.env;
  const before = plan.present.get(key);
  if (before === undefined) {
    await pace(signal);
    await kube.create(resources.csiStorageCapacities, newObject(context, item, room), { signal });
  } else if (!isUpToDate(context, before, room)) {
    await pace(signal);
    await updateObject(context, kube, before, room, signal);
  }
}

/** How much room there is, as the API writes it. */
interface Room {
  readonly capacity: string;
  readonly maximumVolumeSize: string | undefined;
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

function isUpToDate({ owner }: CapacityContext, object: Stored<CSIStorageCapacity>, room: Room): boolean {
  const isOwned =
    owner === undefined || (object.metadata.ownerReferences ?? []).some(({ uid }) => uid === owner.uid);
  return (
    isOwned &&
    sameAmount(object.capacity, room.capacity) &&
    sameAmount(object.maximumVolumeSize, room.maximumVolumeSize)
  );
}

function sameAmount(a: string | undefined | null, b: string | undefined): boolean {
  if (a === undefined || a === null || b === undefined) return (a ?? undefined) === b;
  return parseQuantity(a).toBytes() === parseQuantity(b).toBytes();
}

/** Updates with the version that was seen; after a conflict the object is read again. */
async function updateObject(
  { owner }: CapacityContext,
  kube: KubeClient,
  before: Stored<CSIStorageCapacity>,
  room: Room,
  signal: AbortSignal,
): Promise<void> {
  const owners = before.metadata.ownerReferences ?? [];
  const isOwned = owner === undefined || owners.some(({ uid }) => uid === owner.uid);
  const metadata = isOwned ? before.metadata : { ...before.metadata, ownerReferences: [...owners, owner] };
  const { capacity: _, maximumVolumeSize: __, ...rest } = before;
  await kube.update(resources.csiStorageCapacities, { ...rest, metadata, ...roomFields(room) }, { signal });
}

async function dropObject(
  { env, objects }: CapacityContext,
  plan: CapacityPlan,
  key: string,
  pace: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const object = objects.get(key);
  if (object === undefined || !plan.obsolete.includes(object)) return;
  await pace(signal);
  const { name, namespace = "", uid } = object.metadata;
  await env.kube.delete(resources.csiStorageCapacities, { name, namespace }, { signal, uid });
}

function capacityMetrics({ meter }: SidecarEnv): { tell(plan: CapacityPlan): void } {
  const goal = meter.gauge("csistoragecapacities_desired_goal", {
    help: "CSIStorageCapacity objects that are to be.",
  });
  const current = meter.gauge("csistoragecapacities_desired_current", {
    help: "CSIStorageCapacity objects that are to be and are.",
  });
  const obsolete = meter.gauge("csistoragecapacities_obsolete", {
    help: "CSIStorageCapacity objects that are and are to be deleted.",
  });
  return {
    tell(plan) {
      goal.set(plan.items.size);
      current.set(plan.present.size);
      obsolete.set(plan.obsolete.length);
    },
  };
}
