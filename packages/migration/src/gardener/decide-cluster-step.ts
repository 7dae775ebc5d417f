/**
 * The next step of a Cluster's migration. Pure. Source: docs/behaviour/migration-controllers.md A4.
 *
 *     new shoot ──────────────────────────────────────────────────────────────────────► markNew
 *     readControlPlane ─► listNodes ─► waitForNodes, or listClasses ─► deleteClass … ─► markNeedsComplete
 *                                                    ─► wakeDeployment (three, in order) ─► markFinished
 *
 * Invariants
 *  - Legacy classes are gone before the gates are asked for; that is stored before a Deployment is patched, since the
 *    webhook must see it; `finished` is last. So each crash leaves a state from which the same steps go on.
 *  - A class whose provisioner is not the legacy one stays, whatever its name.
 */
import { isDeleting, type Stored } from "@longshore/kube";
import {
  annotationKeyControllerFinished,
  annotationKeyNeedsComplete,
  type Cluster,
  decodeShoot,
  hasAnnotation,
  type Shoot,
  ShootError,
} from "./cluster.ts";
import { compareVersions, isVersion, VersionError } from "./compare-versions.ts";
import { migrationVersionOf } from "./predicates.ts";

/** What the controller is started with. */
export interface MigrationOptions {
  /** The lowest version of Kubernetes with which the migration begins. */
  readonly csiMigrationKubernetesVersion: string;
  /** Legacy provisioner by name of a StorageClass: such classes are deleted, to be made again with a CSI provisioner. */
  readonly storageClassNameToLegacyProvisioner: Readonly<Record<string, string>>;
}

/** A node of the shoot. */
export interface ShootNode {
  readonly name: string;
  /** `status.nodeInfo.kubeletVersion`; empty when the node has not said it. */
  readonly kubeletVersion: string;
}

/** A StorageClass of the shoot. */
export interface ShootClass {
  readonly name: string;
  readonly uid: string;
  readonly provisioner: string;
}

/** What is known about a Cluster; what is not there has not been read in this pass. */
export interface ClusterObservation {
  readonly cluster: Stored<Cluster>;
  readonly options: MigrationOptions;
  /** Whether its control plane exists. */
  readonly hasControlPlane?: boolean;
  readonly nodes?: readonly ShootNode[];
  readonly classes?: readonly ShootClass[];
  /** Deployments of the control plane that were patched in this pass. */
  readonly woken?: readonly string[];
}

/** Why nothing is done. */
export type Rest = "finished" | "shoot failed" | "being deleted" | "other minor version" | "hibernated";

/** One action of the controller. */
export type ClusterStep =
  | { readonly step: "settle"; readonly because: Rest }
  /** The Cluster is malformed: nothing is done before it changes. */
  | { readonly step: "refuse"; readonly message: string }
  /** A node says nothing readable of its version, as one that has just joined: it is read again, with growing pauses. */
  | { readonly step: "refuseNode"; readonly message: string }
  | { readonly step: "readControlPlane"; readonly namespace: string; readonly name: string }
  /** A new shoot has nothing to migrate: both annotations, in one update. */
  | { readonly step: "markNew" }
  | { readonly step: "listNodes" }
  /** Workers of the old version are still there. */
  | { readonly step: "waitForNodes"; readonly old: readonly string[] }
  | { readonly step: "listClasses" }
  | { readonly step: "deleteClass"; readonly storageClass: ShootClass }
  | { readonly step: "markNeedsComplete" }
  /** An empty patch, which has the control-plane webhook write the Deployment again. */
  | { readonly step: "wakeDeployment"; readonly name: string }
  | { readonly step: "markFinished" };

/** Deployments of the control plane, in the order in which they are patched. */
export const controlPlaneDeployments = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
] as const;

/** Decides on the next step. */
export function decideClusterStep(observed: ClusterObservation): ClusterStep {
  try {
    return decide(observed);
  } catch (error) {
    if (error instanceof ShootError) return { step: "refuse", message: error.message };
    throw error;
  }
}

function decide(observed: ClusterObservation): ClusterStep {
  const { cluster, options } = observed;
  if (hasAnnotation(cluster, annotationKeyControllerFinished)) return { step: "settle", because: "finished" };
  const shoot = decodeShoot(cluster);
  if (shoot.lastOperationState === "Failed") return { step: "settle", because: "shoot failed" };
  if (isDeleting(cluster)) return { step: "settle", because: "being deleted" };
  const isReached = isMigrationVersion(cluster.metadata.name, shoot, options);
  if (hasAnnotation(cluster, annotationKeyNeedsComplete)) return decideCompletion(observed);
  if (observed.hasControlPlane === undefined) {
    return { step: "readControlPlane", namespace: cluster.metadata.name, name: shoot.name };
  }
  if (!observed.hasControlPlane) return { step: "markNew" };
  if (!isReached) return { step: "settle", because: "other minor version" };
  if (shoot.isHibernated) return { step: "settle", because: "hibernated" };
  return decideMigration(observed, migrationVersionOf(shoot, options.csiMigrationKubernetesVersion));
}

function isMigrationVersion(name: string, shoot: Shoot, options: MigrationOptions): boolean {
  const minimum = migrationVersionOf(shoot, options.csiMigrationKubernetesVersion);
  return compared(`Cluster ${name}: spec.shoot.spec.kubernetes.version`, () =>
    compareVersions(shoot.kubernetesVersion, "~", minimum),
  );
}

function decideCompletion({ woken = [] }: ClusterObservation): ClusterStep {
  const name = controlPlaneDeployments.find((one) => !woken.includes(one));
  return name === undefined ? { step: "markFinished" } : { step: "wakeDeployment", name };
}

function decideMigration(observed: ClusterObservation, minimum: string): ClusterStep {
  const { cluster, options, nodes, classes } = observed;
  if (nodes === undefined) return { step: "listNodes" };
  const unread = nodes.find(({ kubeletVersion }) => !isVersion(kubeletVersion));
  if (unread !== undefined) {
    const { name, kubeletVersion } = unread;
    const field = `Cluster ${cluster.metadata.name}: node ${name}: status.nodeInfo.kubeletVersion`;
    return { step: "refuseNode", message: `${field}: "${kubeletVersion}" is not a version` };
  }
  const old = nodes.filter(({ kubeletVersion }) => compareVersions(kubeletVersion, "<", minimum));
  if (old.length > 0) return { step: "waitForNodes", old: old.map((node) => node.name) };
  if (classes === undefined) return { step: "listClasses" };
  const legacy = classes.find((one) => isLegacy(one, options));
  return legacy === undefined ? { step: "markNeedsComplete" } : { step: "deleteClass", storageClass: legacy };
}

function isLegacy({ name, provisioner }: ShootClass, options: MigrationOptions): boolean {
  const { storageClassNameToLegacyProvisioner: legacy } = options;
  return Object.hasOwn(legacy, name) && legacy[name] === provisioner;
}

/** Names the field of a version that cannot be read. */
function compared(field: string, compare: () => boolean): boolean {
  try {
    return compare();
  } catch (error) {
    if (error instanceof VersionError) throw new ShootError(`${field}: ${error.message}`, { cause: error });
    throw error;
  }
}
