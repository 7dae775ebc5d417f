/** What a provider extension configures, from its Cluster. Source: docs/behaviour/migration-controllers.md A6. */
import { annotationKeyNeedsComplete, type Cluster, decodeShoot, hasAnnotation } from "./cluster.ts";
import { compareVersions } from "./compare-versions.ts";

/** See {@link checkCSIConditions}. */
export interface CSIConditions {
  /** Deploy CSI, with the gates `CSIMigration` and `CSIMigration<Provider>`. */
  readonly useCSI: boolean;
  /** Also `CSIMigration<Provider>Complete`, and no cloud-provider flags. */
  readonly csiMigrationComplete: boolean;
}

/**
 * Whether the shoot uses CSI, and whether its migration is complete: neither below `csiMigrationVersion`, both above its
 * minor version; at it, the migration is complete once the Cluster's annotation says so. The shoot's own annotation about
 * the version is not asked.
 *
 * @throws ShootError when the Cluster holds no proper Shoot; VersionError when a version cannot be read
 */
export function checkCSIConditions(cluster: Cluster, csiMigrationVersion: string): CSIConditions {
  const { kubernetesVersion } = decodeShoot(cluster);
  if (compareVersions(kubernetesVersion, "<", csiMigrationVersion)) {
    return { useCSI: false, csiMigrationComplete: false };
  }
  if (compareVersions(kubernetesVersion, "~", csiMigrationVersion)) {
    return { useCSI: true, csiMigrationComplete: hasAnnotation(cluster, annotationKeyNeedsComplete) };
  }
  return { useCSI: true, csiMigrationComplete: true };
}
