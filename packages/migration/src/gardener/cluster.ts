/**
 * Gardener's Cluster: one for each shoot, in the seed, named for the shoot's namespace there. It holds the Shoot, its
 * CloudProfile and its Seed as they are in the garden. Source: docs/behaviour/migration-controllers.md A1, A2.
 */
import type { KubeObject, Resource } from "@longshore/kube";

/** `extensions.gardener.cloud/v1alpha1` Cluster. */
export interface Cluster extends KubeObject {
  readonly spec?: {
    readonly cloudProfile?: unknown;
    readonly seed?: unknown;
    readonly shoot?: unknown;
  };
}

/** `extensions.gardener.cloud/v1alpha1` ControlPlane: there is one once the shoot's control plane was made. */
export interface ControlPlane extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** Where Clusters are served. */
export const clusters: Resource<Cluster> = {
  group: "extensions.gardener.cloud",
  versions: ["v1alpha1"],
  kind: "Cluster",
  plural: "clusters",
  namespaced: false,
};

/** Where ControlPlanes are served. */
export const controlPlanes: Resource<ControlPlane> = {
  group: "extensions.gardener.cloud",
  versions: ["v1alpha1"],
  kind: "ControlPlane",
  plural: "controlplanes",
  namespaced: true,
};

/** The directory with the CustomResourceDefinitions of both, one a file. */
export const gardenerCrdsUrl: URL = new URL("../../crds/gardener/", import.meta.url);

/** On a Cluster: its control plane needs `CSIMigration<Provider>Complete`, and no cloud-provider flags. */
export const annotationKeyNeedsComplete =
  "csi-migration.extensions.gardener.cloud/needs-complete-feature-gates";
/** On a Cluster: the controller has nothing left to do. */
export const annotationKeyControllerFinished = "csi-migration.extensions.gardener.cloud/controller-finished";
/** On a Shoot: the version with which its migration begins, in place of the configured one. */
export const annotationKeyKubernetesVersion =
  "alpha.csimigration.shoot.extensions.gardener.cloud/kubernetes-version";

/** Whether the annotation is there; its value means nothing (A1). */
export function hasAnnotation(cluster: Cluster, key: string): boolean {
  return Object.hasOwn(cluster.metadata?.annotations ?? {}, key);
}

/** What the controller needs of a Shoot. */
export interface Shoot {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly providerType: string;
  readonly kubernetesVersion: string;
  readonly isHibernated: boolean;
  /** `status.lastOperation.state`. */
  readonly lastOperationState: string | undefined;
  readonly workers: readonly ShootWorker[];
}

/** One worker pool. */
export interface ShootWorker {
  readonly name: string;
  /** Its own version, where it is not that of the control plane. */
  readonly kubernetesVersion: string | undefined;
}

/** The Shoot inside a Cluster is missing or malformed. */
export class ShootError extends Error {
  override readonly name = "ShootError";
}

/** The Shoot inside the Cluster. @throws ShootError naming the Cluster and the field */
export function decodeShoot(cluster: Cluster): Shoot {
  const path = `Cluster ${cluster.metadata?.name ?? ""}: spec.shoot`;
  const shoot = objectAt(cluster.spec?.shoot, path);
  if (shoot === undefined) throw new ShootError(`${path} is missing: it holds the Shoot`);
  const metadata = objectAt(shoot.metadata, `${path}.metadata`) ?? {};
  const spec = objectAt(shoot.spec, `${path}.spec`) ?? {};
  const provider = objectAt(spec.provider, `${path}.spec.provider`) ?? {};
  const kubernetes = objectAt(spec.kubernetes, `${path}.spec.kubernetes`) ?? {};
  const hibernation = objectAt(spec.hibernation, `${path}.spec.hibernation`);
  const status = objectAt(shoot.status, `${path}.status`);
  const last = objectAt(status?.lastOperation, `${path}.status.lastOperation`);
  return {
    name: requiredText(metadata.name, `${path}.metadata.name`),
    annotations: texts(metadata.annotations, `${path}.metadata.annotations`),
    providerType: requiredText(provider.type, `${path}.spec.provider.type`),
    kubernetesVersion: requiredText(kubernetes.version, `${path}.spec.kubernetes.version`),
    isHibernated: optionalFlag(hibernation?.enabled, `${path}.spec.hibernation.enabled`) ?? false,
    lastOperationState: optionalText(last?.state, `${path}.status.lastOperation.state`),
    workers: workersOf(provider.workers, `${path}.spec.provider.workers`),
  };
}

function workersOf(given: unknown, path: string): readonly ShootWorker[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given)) throw new ShootError(`${path} must be a list`);
  return given.map((one: unknown, index) => {
    const worker = objectAt(one, `${path}[${index}]`) ?? {};
    const kubernetes = objectAt(worker.kubernetes, `${path}[${index}].kubernetes`);
    return {
      name: optionalText(worker.name, `${path}[${index}].name`) ?? "",
      kubernetesVersion: optionalText(kubernetes?.version, `${path}[${index}].kubernetes.version`),
    };
  });
}

type Members = Readonly<Record<string, unknown>>;

function objectAt(value: unknown, path: string): Members | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) throw new ShootError(`${path} must be an object`);
  return value as Members;
}

function optionalText(value: unknown, path: string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw new ShootError(`${path} must be a string`);
  return value;
}

function optionalFlag(value: unknown, path: string): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "boolean") throw new ShootError(`${path} must be true or false`);
  return value;
}

function requiredText(value: unknown, path: string): string {
  const text = optionalText(value, path);
  if (text === undefined) throw new ShootError(`${path} is missing: the Shoot must have it`);
  return text;
}

function texts(value: unknown, path: string): Readonly<Record<string, string>> {
  const members = objectAt(value, path) ?? {};
  for (const [key, one] of Object.entries(members)) {
    if (typeof one !== "string") throw new ShootError(`${path}: "${key}" must be a string`);
  }
  return members as Readonly<Record<string, string>>;
}
