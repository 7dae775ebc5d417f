/** The objects of a deployment in the cluster: found by their label, whatever options it was made with. */
import { type KubeClient, type KubeObject, type Resource, resources, type Stored } from "@longshore/kube";
import { DeployOptionError, fieldText } from "../deploy-fields.ts";
import type { DeployOptions } from "../deploy-options.ts";
import { deployedKinds } from "../deployed-kinds.ts";
import {
  componentLabel,
  type DeployedPart,
  deployOptionsAnnotation,
  driverLabel,
  managedByLabel,
  managedByLongshore,
} from "../objects/labels.ts";
import { persistently, type Rollout, RolloutError } from "./rollout.ts";

/** An object that there is, and where it is served. */
export interface DeployedObject {
  readonly resource: Resource<KubeObject>;
  readonly object: Stored;
}

/** All pages of a list. */
export async function listAll<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  options: { readonly signal: AbortSignal; readonly labelSelector?: string; readonly namespace?: string },
): Promise<readonly Stored<T>[]> {
  const items: Stored<T>[] = [];
  let next: string | undefined;
  do {
    const page = await kube.list(resource, {
      ...options,
      limit: 500,
      ...(next === undefined ? {} : { continue: next }),
    });
    items.push(...page.items);
    next = page.continue;
  } while (next !== undefined);
  return items;
}

/** Whether the cluster has the kind. */
export async function isServed(rollout: Rollout, resource: Resource<KubeObject>): Promise<boolean> {
  const version = await persistently(rollout, (signal) =>
    rollout.env.kube.servedVersion(resource, { signal }),
  );
  return version !== undefined;
}

/** Every object of the driver's deployment, in the order in which they can be taken away. */
export async function deployedObjects(rollout: Rollout, driver: string): Promise<readonly DeployedObject[]> {
  const { kube } = rollout.env;
  const found: DeployedObject[] = [];
  for (const resource of deployedKinds) {
    if (!(await isServed(rollout, resource))) continue;
    const labelSelector = `${driverLabel}=${driver}`;
    const objects = await persistently(rollout, (signal) =>
      listAll(kube, resource, { signal, labelSelector }),
    );
    found.push(...objects.map((object) => ({ resource, object })));
  }
  return found;
}

/** What the last deployment was asked for, if there is one. @throws RolloutError when another tool made it */
export async function deployedOptions(
  rollout: Rollout,
  driver: string,
  adopt = false,
): Promise<DeployOptions | undefined> {
  const csiDriver = await persistently(rollout, (signal) =>
    rollout.env.kube.get(resources.csiDrivers, { name: driver }, { signal }),
  );
  if (csiDriver === undefined) return undefined;
  assertOurs({ resource: resources.csiDrivers, object: csiDriver }, driver, adopt);
  const text = csiDriver.metadata.annotations?.[deployOptionsAnnotation];
  if (text === undefined) return undefined;
  try {
    return { ...(JSON.parse(text) as DeployOptions), name: driver };
  } catch (cause) {
    throw new RolloutError(
      `CSIDriver "${driver}": its annotation ${deployOptionsAnnotation} cannot be read: remove it, and give everything again`,
      { cause },
    );
  }
}

/** What was requested before, with what is requested now in its place. @throws DeployOptionError when there is no image */
export function mergedOptions(
  before: DeployOptions | undefined,
  now: Partial<DeployOptions> & { readonly name: string },
): DeployOptions {
  const merged = { ...before, ...now };
  if (merged.image === undefined) {
    throw new DeployOptionError("image", `nothing of "${now.name}" is deployed yet: say which image`);
  }
  return { ...merged, image: merged.image };
}

/**
 * @param adopt objects without an owner label may be taken over; a namespace always may
 * @throws RolloutError for an object that is there but not of this deployment
 */
export function assertOurs({ resource, object }: DeployedObject, driver: string, adopt = false): void {
  const { name, namespace, labels } = object.metadata;
  const what = `${resource.kind} "${namespace === undefined ? name : `${namespace}/${name}`}"`;
  const of = labels?.[driverLabel];
  if (of === undefined && !adopt && resource.kind !== resources.namespaces.kind) {
    // With an older deployment of the driver in the cluster, ours would be a second controller outside the leader
    // election.
    throw new RolloutError(
      `${what} is there already and was not deployed by longshore: take away what made it, then take it over with ${fieldText("adopt")}`,
    );
  }
  if (of !== undefined && of !== driver) {
    const remedy =
      labels?.[componentLabel] === "snapshot-controller"
        ? `there is one per cluster, so leave out ${fieldText("snapshotController")}`
        : "deploy into another namespace";
    throw new RolloutError(`${what} belongs to the driver "${of}": ${remedy}`);
  }
  const manager = labels?.[managedByLabel];
  if (of !== undefined && manager !== undefined && manager !== managedByLongshore) {
    throw new RolloutError(`${what} is managed by ${manager}: upgrade and remove the driver with that`);
  }
}

/** The part that the object belongs to. */
export function partOf({ object }: DeployedObject): DeployedPart | undefined {
  return object.metadata.labels?.[componentLabel] as DeployedPart | undefined;
}

/** `StatefulSet "namespace/name"`. */
export function nameOf({
  resource,
  object,
}: {
  readonly resource: Resource<KubeObject>;
  readonly object: KubeObject;
}): string {
  const { name = "", namespace } = object.metadata ?? {};
  return `${resource.kind} "${resource.namespaced && namespace !== undefined ? `${namespace}/${name}` : name}"`;
}
