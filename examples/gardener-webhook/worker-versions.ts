/**
 * May a worker pool have a version of its own? Not before the migration is complete: its machines would not be replaced when the
 * control plane reaches the version of the migration, and the migration would wait for them. Pure.
 * Source: docs/behaviour/migration-controllers.md A7, the warning.
 */
import {
  type Cluster,
  checkCSIConditions,
  compareVersions,
  decodeShoot,
} from "@longshore/migration/gardener";

/**
 * Why a Cluster of the seed is refused; undefined when it is not. An update that leaves versions as they are is never refused, so
 * that what was stored before can still be annotated and deleted.
 *
 * @throws ShootError or VersionError when the Cluster is malformed
 */
export function refusalOfCluster(
  cluster: Cluster,
  before: Cluster | undefined,
  csiMigrationVersion: string,
): string | undefined {
  if (before !== undefined && versionsOf(before) === versionsOf(cluster)) return undefined;
  if (checkCSIConditions(cluster, csiMigrationVersion).csiMigrationComplete) return undefined;
  return refusal(cluster, "spec.shoot.spec", () => true, csiMigrationVersion);
}

/**
 * Why a Shoot of the garden is refused, where users change it and nothing says yet how far its migration is: control plane and
 * pool must both have reached the version, or be the same.
 *
 * @throws ShootError or VersionError when the Shoot is malformed
 */
export function refusalOfShoot(
  shoot: object,
  before: object | undefined,
  csiMigrationVersion: string,
): string | undefined {
  const [cluster, previous] = [shoot, before].map((one) => asCluster(one));
  if (cluster === undefined) return undefined;
  if (previous !== undefined && versionsOf(previous) === versionsOf(cluster)) return undefined;
  const { useCSI } = checkCSIConditions(cluster, csiMigrationVersion);
  const isBehind = (version: string) => !useCSI || compareVersions(version, "<", csiMigrationVersion);
  return refusal(cluster, "spec", isBehind, csiMigrationVersion);
}

function asCluster(shoot: object | undefined): Cluster | undefined {
  if (shoot === undefined) return undefined;
  const { metadata } = shoot as { readonly metadata?: { readonly name?: string } };
  return { metadata: { name: `of Shoot ${metadata?.name ?? ""}` }, spec: { shoot } };
}

/** Refuses the first pool with another version of which `isBehind` holds. */
function refusal(
  cluster: Cluster,
  path: string,
  isBehind: (version: string) => boolean,
  csiMigrationVersion: string,
): string | undefined {
  const { kubernetesVersion, workers } = decodeShoot(cluster);
  for (const [index, { name, kubernetesVersion: own = kubernetesVersion }] of workers.entries()) {
    if (own === kubernetesVersion || !isBehind(own)) continue;
    return (
      `${path}.provider.workers[${index}].kubernetes.version: pool ${name} has ${own} and the control plane ` +
      `${kubernetesVersion}: remove the pool's version until the migration to CSI, with ${csiMigrationVersion}, is complete`
    );
  }
  return undefined;
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
