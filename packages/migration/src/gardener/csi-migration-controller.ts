/**
 * Gardener's generic CSI migration controller: it follows the Clusters of one provider, and asks for the last feature
 * gates once only new nodes exist. It flips nothing itself: the provider's control-plane webhook does, from the annotation.
 * Source: docs/behaviour/migration-controllers.md part A.
 */
import {
  type ControllerEnv,
  controllerScope,
  createEventRecorder,
  forResource,
  type Informer,
  type Steps,
  startController,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { type Cluster, clusters } from "./cluster.ts";
import { type ClusterActionsEnv, clusterActions } from "./cluster-actions.ts";
import { compareVersions } from "./compare-versions.ts";
import {
  type ClusterObservation,
  type ClusterStep,
  decideClusterStep,
  type MigrationOptions,
} from "./decide-cluster-step.ts";
import {
  type ClusterPredicate,
  clusterCSIMigrationControllerNotFinished,
  clusterShootKubernetesVersionForCSIMigrationAtLeast,
  clusterShootProviderType,
  isMalformed,
} from "./predicates.ts";
import { type NewClientForShoot, newClientForShoot } from "./shoot-client.ts";

/** Name of the controller, in metrics and events. */
export const controllerName = "csimigration_controller";

/** What the controller is given. */
export interface AddArgs extends MigrationOptions {
  /** Provider type of the shoots, `spec.provider.type`. */
  readonly type: string;
  /** Further predicates: all must hold. */
  readonly predicates?: readonly ClusterPredicate[];
  readonly controllerOptions?: {
    /** Clusters that are worked on at the same time; default 5. */
    readonly workers?: number;
    /** All Clusters are looked at again after this time, in milliseconds; never when left out. */
    readonly resyncMs?: number;
  };
  /** Makes the clients of shoots; default from the Secrets in the seed. */
  readonly newClientForShoot?: NewClientForShoot;
}

/** One pass may read nodes in pages, through an API server far away. */
const passTimeoutMs = 300_000;
const workersDefault = 5;
/** One step a legacy class, beside a dozen others. */
const stepsBesideClasses = 16;

/**
 * Starts the controller; it works in the background until it is stopped.
 *
 * @throws VersionError when `csiMigrationKubernetesVersion` is not a version
 */
export function addCSIMigrationController(given: ControllerEnv, args: AddArgs): Component {
  const { csiMigrationKubernetesVersion, type, predicates = [], controllerOptions = {} } = args;
  compareVersions(csiMigrationKubernetesVersion, ">=", "1");
  const { scope, env } = controllerScope(given, "CSI migration controller");
  const cache = env.informers.of(clusters);
  const events = createEventRecorder(env, { component: controllerName });
  const all = [
    clusterShootProviderType(type),
    clusterShootKubernetesVersionForCSIMigrationAtLeast(csiMigrationKubernetesVersion),
    ...predicates,
  ];
  const unfinished = clusterCSIMigrationControllerNotFinished();
  const selects = (cluster: Cluster) =>
    unfinished(cluster) && (all.every((one) => one(cluster)) || isMalformed(cluster, type));
  const { resyncMs, workers = workersDefault } = controllerOptions;
  const shoots = args.newClientForShoot ?? newClientForShoot(env);
  const controller = startController<ClusterObservation, ClusterStep>(env, {
    name: controllerName,
    workers,
    passTimeoutMs,
    stepsMax: stepsBesideClasses + Object.keys(args.storageClassNameToLegacyProvisioner).length,
    ...(resyncMs === undefined ? {} : { resyncMs }),
    sources: [forResource(cache, { selects, deleted: "forget" })],
    ...newReconciler({ ...env, events, newClientForShoot: shoots }, cache, args),
  });
  scope.own(events, controller);
  return scope;
}

/** The three parts of the controller: what it observes, its decision and its actions. */
export function newReconciler(
  env: ClusterActionsEnv,
  cache: Informer<Cluster>,
  options: MigrationOptions,
): Steps<ClusterObservation, ClusterStep> {
  return {
    observe(key) {
      const cluster = cache.get(key);
      return cluster === undefined ? undefined : { cluster, options };
    },
    decide: decideClusterStep,
    actions: clusterActions(env),
  };
}
