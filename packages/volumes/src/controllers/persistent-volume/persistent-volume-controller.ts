/**
 * The persistent-volume controller: binds claims and volumes, has volumes made and deleted, and keeps
 * the annotations that separate in-tree code from external provisioners. Source: docs/behaviour/controllers.md
 * Part B.
 *
 *     claims ──provisioning──► provisioning ──claim (retry)──► claims
 *     volumes ──deletion──► deletion          volumes ──claim──► claims
 *
 * Four controllers, each of its own kind of key. What one needs of another is that it looks at a key: each decides on
 * its own observation.
 *
 * Invariant: a stale cache does no harm: writes carry the version they were made from, and what cannot be undone (lost,
 * released, deleted) is asked live before.
 */
import { type Controller, type ControllerEnv, controllerScope, createEventRecorder } from "@longshore/kube";
import type { Component, FeatureGates } from "@longshore/runtime";
import {
  createMigratedPluginManager,
  registeredInTreePlugins,
} from "../../csimigration/migrated-plugin-manager.ts";
import { gateDependencyWarnings } from "../../csimigration/volume-gates.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { createVolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { storageOperations } from "../../metrics/storage-operations.ts";
import { controllerVolumeHost } from "../controller-volume-host.ts";
import { countBound } from "./bound-counts.ts";
import { startClaimsController } from "./claims-controller.ts";
import { startDeletionController } from "./deletion-controller.ts";
import { OperationAttempts } from "./operation-attempts.ts";
import { startPersistentVolumeCaches } from "./persistent-volume-caches.ts";
import type { PersistentVolumeCaches, PersistentVolumeContext, Wakes } from "./persistent-volume-context.ts";
import type { Provisioners } from "./provisioner-choice.ts";
import { startProvisioningController } from "./provisioning-controller.ts";
import { TakenVolumes } from "./taken-volumes.ts";
import { startVolumesController } from "./volumes-controller.ts";

/** The seams of the controller. */
export interface PersistentVolumeEnv extends ControllerEnv {
  /** The volume plugins, not initialised; those of clouds are bound to this controller as their caller. */
  readonly plugins: readonly VolumePlugin[];
}

/** How the controller runs. */
export interface PersistentVolumeOptions {
  /** The controller manager's gates. */
  readonly gates: FeatureGates;
  /** Do what Kubernetes 1.20 is recorded to do where ours deliberately differs. */
  readonly compat?: "kubernetes-1.20" | undefined;
  /** Given to plugins; default `kubernetes`. */
  readonly clusterName?: string | undefined;
}

/** Starts the controller; it works in the background until it is stopped. */
export function startPersistentVolumeController(
  given: PersistentVolumeEnv,
  options: PersistentVolumeOptions,
): Component {
  const { scope, env } = controllerScope(given, "persistent-volume controller");
  for (const warning of gateDependencyWarnings(options.gates)) env.logger.warn(warning);
  const caches = startPersistentVolumeCaches(env.informers);
  scope.onStop(caches.available.follow(caches.volumes));
  scope.spawn(async () => {
    const migration = createMigratedPluginManager(options.gates);
    const registered = registeredInTreePlugins(env.plugins, migration);
    const plugins = await createVolumePluginManager(controllerVolumeHost(env), registered);
    scope.onStop(countBound(env.meter, caches, plugins));
    scope.own(...startControllers(env, options, caches, { plugins, migration }));
  });
  return scope;
}

function startControllers(
  env: PersistentVolumeEnv,
  options: PersistentVolumeOptions,
  caches: PersistentVolumeCaches,
  provisioners: Provisioners,
): readonly Component[] {
  const controllers = {} as Record<"claims" | "volumes" | "provisioning" | "deletion", Controller>;
  const events = createEventRecorder(env, { component: "persistentvolume-controller" });
  const context: PersistentVolumeContext = {
    env,
    caches,
    provisioners,
    events,
    wakes: wakesOf(controllers),
    attempts: new OperationAttempts(env.clock),
    measured: storageOperations(env),
    taken: new TakenVolumes(),
    clusterName: options.clusterName ?? "kubernetes",
    honorsReclaimPolicy: options.compat === undefined && options.gates.enabled("HonorPVReclaimPolicy"),
    compat: options.compat !== undefined,
  };
  controllers.deletion = startDeletionController(context);
  controllers.provisioning = startProvisioningController(context);
  controllers.volumes = startVolumesController(context);
  controllers.claims = startClaimsController(context);
  return [events, ...Object.values(controllers)];
}

/** Filled once all controllers have started, before the first pass of any. */
function wakesOf(
  controllers: Readonly<Record<"claims" | "volumes" | "provisioning" | "deletion", Controller>>,
): Wakes {
  return {
    claim(key, afterMs) {
      if (afterMs === undefined) controllers.claims.wake(key);
      else controllers.claims.wakeAfter(key, afterMs);
    },
    provisioning: (key) => controllers.provisioning.wake(key),
    deletion: (name) => controllers.deletion.wake(name),
  };
}
