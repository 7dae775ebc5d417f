/**
 * May a worker pool have a version of its own? Not before the migration is complete: its machines would not be replaced when the
 * control plane reaches the version of the migration, and the migration would wait for them. Pure.
 * Source: docs/behaviour/migration-controllers.md A7, the warning.
 */
import { type Cluster, checkCSIConditions, decodeShoot } from "@longshore/migration/gardener";

/**
 * Why the Cluster is refused; undefined when it is not. An update that leaves versions as they are is never refused, so that
 * what was stored before can still be annotated and deleted.
 *
 * @throws ShootError or VersionError when the Cluster is malformed
 */
export function refusalOfWorkers(
  cluster: Cluster,
  before: Cluster | undefined,
  csiMigrationVersion: string,
): string | undefined {
  if (before !== undefined && versionsOf(before) === versionsOf(cluster)) return undefined;
  if (checkCSIConditions(cluster, csiMigrationVersion).csiMigrationComplete) return undefined;
  const { kubernetesVersion, workers } = decodeShoot(cluster);
  const index = workers.findIndex(
    (one) => (one.kubernetesVersion ?? kubernetesVersion) !== kubernetesVersion,
  );
  if (index === -1) return undefined;
  const { name, kubernetesVersion: own } = workers[index] ?? {};
  return (
    `spec.shoot.spec.provider.workers[${index}].kubernetes.version: pool ${name} has ${own} and the control plane ` +
    `${kubernetesVersion}: remove the pool's version until the migration to CSI, with ${csiMigrationVersion}, is complete`
  );
}

/** All versions of the Shoot in one text; empty for a malformed one. */
function versionsOf(cluster: Cluster): string {
  const shoot = cluster.spec?.shoot as
    | { spec?: { kubernetes?: { version?: unknown }; provider?: { workers?: unknown } } }
    | null
    | undefined;
  const workers = shoot?.spec?.provider?.workers;
  const pools = Array.isArray(workers) ? workers : [];
  const own = pools.map((one: { name?: unknown; kubernetes?: { version?: unknown } } | null) => [
    one?.name,
    one?.kubernetes?.version,
  ]);
  return JSON.stringify([shoot?.spec?.kubernetes?.version, own]);
}
