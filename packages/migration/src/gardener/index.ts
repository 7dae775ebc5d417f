/** Gardener's CSI migration controller, as a library: `@longshore/migration/gardener`. */
export { type CSIConditions, checkCSIConditions } from "./check-csi-conditions.ts";
export {
  annotationKeyControllerFinished,
  annotationKeyKubernetesVersion,
  annotationKeyNeedsComplete,
  type Cluster,
  type ControlPlane,
  clusters,
  controlPlanes,
  decodeShoot,
  gardenerCrdsUrl,
  type Shoot,
  ShootError,
  type ShootWorker,
} from "./cluster.ts";
export { type ClusterActionsEnv, requeueAfterMs } from "./cluster-actions.ts";
export { compareVersions, isVersion, VersionError, type VersionOperator } from "./compare-versions.ts";
export {
  type AddArgs,
  addCSIMigrationController,
  controllerName,
  newReconciler,
} from "./csi-migration-controller.ts";
export type {
  ClusterObservation,
  ClusterStep,
  MigrationOptions,
  Rest,
  ShootClass,
  ShootNode,
} from "./decide-cluster-step.ts";
export {
  createGardenerPlatform,
  type GardenerPlatformEnv,
  GardenerPlatformError,
} from "./gardener-platform.ts";
export {
  type ClusterPredicate,
  clusterCSIMigrationControllerNotFinished,
  clusterShootKubernetesVersionForCSIMigrationAtLeast,
  clusterShootProviderType,
} from "./predicates.ts";
export { type NewClientForShoot, newClientForShoot, ShootAccessError } from "./shoot-client.ts";
