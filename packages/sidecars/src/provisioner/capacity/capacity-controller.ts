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
  type ComponentScope,
  type Controller,
  keyOf,
  source,
  startController,
  TokenBucket,
} from "@longshore/kube";
import { periodically } from "@longshore/runtime";
import { capacityActions } from "./capacity-actions.ts";
import type { CapacityContext } from "./capacity-context.ts";
import { classOfItem } from "./capacity-plan.ts";
import { type CapacityStep, decideCapacity, type ObservedCapacity } from "./decide-capacity.ts";
import { type PlanView, planView } from "./plan-view.ts";

/** A running controller. */
export interface CapacityController {
  /** Asks for the capacity of this class again, after a short delay. */
  refresh(storageClassName: string): void;
}

/** Volumes come in bursts: the room is requested again once a second at most. */
const REFRESH_AFTER_MS = 1000;

/** Keys: the plan, what is to be, and what is. */
const planKey = "plan";
const itemPrefix = "item ";
const objectPrefix = "object ";

/**
 * Starts the controller in `scope`, which stops it; the caches of `context` have synced. The driver is asked for every
 * figure at once and then every `pollIntervalMs`; between, for what has changed.
 */
export function startCapacity(context: CapacityContext, scope: ComponentScope): CapacityController {
  const view = planView(context);
  const controller = startPasses(context, view);
  scope.own(controller);
  const refreshAll = () => {
    for (const item of view.now().items.keys()) controller.wake(itemPrefix + item, "background");
  };
  // Figures found at the start are of unknown age.
  refreshAll();
  scope.spawn(async (signal) => {
    const { env, pollIntervalMs: periodMs } = context;
    // `periodically` begins with a round, and one has just been queued.
    await env.clock.sleep(periodMs, signal);
    await periodically(env, { name: "capacity poll", periodMs }, signal, async () => refreshAll());
  });
  return {
    refresh(storageClassName) {
      for (const item of view.now().items.keys()) {
        if (classOfItem(item) === storageClassName) controller.wakeAfter(itemPrefix + item, REFRESH_AFTER_MS);
      }
    },
  };
}

function startPasses(context: CapacityContext, view: PlanView): Controller {
  const { env, threads, backoff, writes } = context;
  const bucket = writes === undefined ? undefined : new TokenBucket(env.clock, writes);
  const controller = startController<ObservedCapacity, CapacityStep>(env, {
    name: "provisioner-capacity",
    workers: threads,
    backoff,
    sources: [
      source((wake) => {
        wake(planKey);
        return view.follow(() => wake(planKey));
      }),
    ],
    caches: [context.storageClasses, context.csiNodes, context.nodes, context.objects],
    observe: (key) => observeCapacity(context, view, key),
    decide: decideCapacity,
    actions: capacityActions(context, bucket, {
      wakeItem: (item) => controller.wake(itemPrefix + item),
      wakeObject: (object) => controller.wake(objectPrefix + keyOf(object)),
    }),
  });
  return controller;
}

function observeCapacity(
  { objects, owner, writes }: CapacityContext,
  view: PlanView,
  key: string,
): ObservedCapacity | undefined {
  const plan = view.now();
  const mayWrite = writes === undefined;
  if (key.startsWith(itemPrefix)) {
    const itemKey = key.slice(itemPrefix.length);
    const item = plan.items.get(itemKey);
    if (item === undefined) return undefined;
    return { kind: "item", item, present: plan.present.get(itemKey), owner, room: undefined, mayWrite };
  }
  if (!key.startsWith(objectPrefix)) return { kind: "plan", plan };
  const object = objects.get(key.slice(objectPrefix.length));
  if (object === undefined) return undefined;
  return { kind: "object", object, isObsolete: plan.obsolete.includes(object), mayWrite };
}
