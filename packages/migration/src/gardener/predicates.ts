/**
 * Which Clusters the controller looks at: all its predicates hold. Each is asked about the object as it is after an event,
 * or was when it was deleted. Source: docs/behaviour/migration-controllers.md A3.
 */
import {
  annotationKeyControllerFinished,
  annotationKeyKubernetesVersion,
  type Cluster,
  decodeShoot,
  hasAnnotation,
  type Shoot,
  ShootError,
} from "./cluster.ts";
import { compareVersions, isVersion } from "./compare-versions.ts";

/** Whether a Cluster concerns the controller. */
export type ClusterPredicate = (cluster: Cluster) => boolean;

/** Shoots of this provider type. */
export function clusterShootProviderType(type: string): ClusterPredicate {
  return (cluster) => shootOf(cluster)?.providerType === type;
}

/** Shoots that have reached the version with which their migration begins: that of their annotation, or `version`. */
export function clusterShootKubernetesVersionForCSIMigrationAtLeast(version: string): ClusterPredicate {
  return (cluster) => {
    const shoot = shootOf(cluster);
    if (shoot === undefined) return false;
    const minimum = migrationVersionOf(shoot, version);
    const areVersions = isVersion(shoot.kubernetesVersion) && isVersion(minimum);
    return areVersions && compareVersions(shoot.kubernetesVersion, ">=", minimum);
  };
}

/** Clusters for which the controller has something left to do. */
export function clusterCSIMigrationControllerNotFinished(): ClusterPredicate {
  return (cluster) => !hasAnnotation(cluster, annotationKeyControllerFinished);
}

/** The version with which the migration of the shoot begins. */
export function migrationVersionOf(shoot: Shoot, configured: string): string {
  return shoot.annotations[annotationKeyKubernetesVersion] ?? configured;
}

/**
 * Whether the Cluster is malformed and may be one of this provider's: its Shoot cannot be read, or its version cannot be
 * compared. The predicates leave such a Cluster out; the controller reports it.
 */
export function isMalformed(cluster: Cluster, type: string): boolean {
  const shoot = shootOf(cluster);
  if (shoot === undefined) return (rawProviderType(cluster.spec?.shoot) ?? type) === type;
  const versions = [shoot.kubernetesVersion, migrationVersionOf(shoot, "1")];
  return shoot.providerType === type && !versions.every(isVersion);
}

/** `spec.provider.type`, as far as a malformed Shoot has one. */
function rawProviderType(shoot: unknown): unknown {
  return (shoot as { spec?: { provider?: { type?: unknown } | null } | null } | null | undefined)?.spec
    ?.provider?.type;
}

function shootOf(cluster: Cluster): Shoot | undefined {
  try {
    return decodeShoot(cluster);
  } catch (error) {
    if (error instanceof ShootError) return undefined;
    throw error;
  }
}
