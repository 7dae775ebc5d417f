/**
 * The expand controller: grows volumes whose claim asks for more, in-tree, or names the external
 * resizer that is to do it. Source: docs/behaviour/controllers.md Part C.
 *
 * What is read is in `observe-claim.ts`, the rules in `decide-expand-step.ts`, the writes in `expand-actions.ts`.
 */
import {
  type ControllerEnv,
  controllerScope,
  createEventRecorder,
  forResource,
  type Informer,
  type PersistentVolumeClaim,
  resources,
  startController,
} from "@longshore/kube";
import { abortable, type Component, type FeatureGates } from "@longshore/runtime";
import {
  createMigratedPluginManager,
  registeredInTreePlugins,
} from "../../csimigration/migrated-plugin-manager.ts";
import type { DynamicPluginProber } from "../../framework/dynamic-plugin-prober.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { createVolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { controllerVolumeHost } from "../controller-volume-host.ts";
import { asksForMore, decideExpandStep, requestedSize } from "./decide-expand-step.ts";
import { expandActions, expandTimeoutMs } from "./expand-actions.ts";
import { type ExpandContext, observeClaim } from "./observe-claim.ts";

/** The seams of the controller. */
export interface ExpandEnv extends ControllerEnv {
  readonly plugins: readonly VolumePlugin[];
  /** Finds plugins that come and go; it is this controller's alone, and stopped with it. */
  readonly prober?: DynamicPluginProber;
}

/** How the controller runs. */
export interface ExpandOptions {
  readonly gates: FeatureGates;
}

/** Starts the controller; it works in the background until it is stopped. */
export function startExpandController(given: ExpandEnv, options: ExpandOptions): Component {
  const { scope, env } = controllerScope(given, "expand controller");
  const claims = env.informers.of(resources.persistentVolumeClaims);
  if (env.prober !== undefined) scope.own(env.prober);
  scope.spawn(async (signal) => {
    const migration = createMigratedPluginManager(options.gates);
    const registered = registeredInTreePlugins(env.plugins, migration);
    const creating = createVolumePluginManager(controllerVolumeHost(env), registered, env.prober);
    const plugins = await abortable(creating, signal);
    scope.own(...startWorking({ env, claims, plugins, migration }));
  });
  return scope;
}

function startWorking(context: ExpandContext): readonly Component[] {
  const { env, claims } = context;
  const events = createEventRecorder(env, { component: "volume_expand" });
  const controller = startController(env, {
    name: "volume_expand",
    workers: 10,
    passTimeoutMs: expandTimeoutMs + 10_000,
    sources: [claimsThatAskForMore(claims)],
    observe: (key, pass) => observeClaim(context, key, pass),
    decide: decideExpandStep,
    actions: expandActions(env, events),
  });
  return [events, controller];
}

/** A claim is looked at when it asks for more than before, or its phase changes. */
function claimsThatAskForMore(claims: Informer<PersistentVolumeClaim>) {
  return forResource(claims, {
    selects: asksForMore,
    changed: (before, after) =>
      requestedSize(after).compare(requestedSize(before)) > 0 || before.status?.phase !== after.status?.phase,
  });
}
