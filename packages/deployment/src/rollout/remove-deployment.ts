/**
 * Takes a deployment out of a cluster: the controller first, so that no volume is made while its nodes lose the driver,
 * then the node part, then the objects that announce the driver.
 *
 * Invariants
 *  - Nothing is touched while something needs the driver, unless that is requested; looked at again once no controller
 *    can make anything any more.
 *  - The topology labels of nodes stay: other volumes' node affinities may name them. So does the namespace.
 */
import { type KubeEnv, resources } from "@longshore/kube";
import { leaseName } from "@longshore/storage";
import { fieldText } from "../deploy-fields.ts";
import { type Dependents, dependentsOf, dependentsText } from "./dependents.ts";
import { assertOurs, type DeployedObject, deployedObjects, partOf } from "./deployed-objects.ts";
import { remove, takeDown, workloadsOf } from "./parts.ts";
import { persistently, type Rollout, RolloutError, type RolloutOptions, runRollout } from "./rollout.ts";

const electedSidecars = ["provisioner", "attacher", "resizer", "snapshotter", "health-monitor"] as const;

/** How a removal is done. */
export interface RemoveOptions extends RolloutOptions {
  /** Although something is stranded. */
  readonly force?: boolean;
}

/** How a removal ended. */
export interface RemoveOutcome {
  /** Objects that were, or would be, deleted. */
  readonly removed: number;
  /** What is stranded. */
  readonly stranded: readonly Dependents[];
  /** Namespaces that were made for the driver and are left. */
  readonly namespaces: readonly string[];
}

/** Removes the deployment of the driver. @throws RolloutError while something needs it, unless forced */
export function removeDeployment(
  env: KubeEnv,
  driver: string,
  options: RemoveOptions,
): Promise<RemoveOutcome> {
  return runRollout(env, options, (rollout) => removeAll(rollout, driver, options.force === true));
}

async function removeAll(rollout: Rollout, driver: string, force: boolean): Promise<RemoveOutcome> {
  const deployed = await deployedObjects(rollout, driver);
  for (const one of deployed) assertOurs(one, driver);
  // The snapshot controller is the cluster's, not the driver's.
  const own = deployed.filter((one) => partOf(one) !== "snapshot-controller");
  const namespaces = own
    .filter(({ resource }) => resource.kind === "Namespace")
    .map(({ object }) => object.metadata.name);
  const rest = own.filter(({ resource }) => resource.kind !== "Namespace");
  await assertUnused(rollout, driver, force, "nothing was changed");
  if (rest.length === 0) return { removed: 0, stranded: [], namespaces };
  const [controllers, nodes] = [workloadsOf(rest, "controller"), workloadsOf(rest, "node")];
  rollout.say("1/3 taking the controller down");
  await takeDown(rollout, driver, "controller", controllers);
  const stranded = await assertUnused(
    rollout,
    driver,
    force,
    "they came while the controller ended; it is down: bring it back with longshore driver upgrade",
  );
  rollout.say("2/3 taking the node part down");
  await takeDown(rollout, driver, "node", nodes);
  rollout.say("3/3 CSIDriver, classes and rights");
  const done = new Set<DeployedObject>([...controllers, ...nodes]);
  for (const one of rest) if (!done.has(one)) await remove(rollout, one);
  const places = new Set(controllers.concat(nodes).map(({ object }) => object.metadata.namespace ?? ""));
  for (const namespace of places) await removeLeases(rollout, driver, namespace);
  return { removed: rest.length, stranded, namespaces };
}

/** @throws RolloutError when something needs the driver, unless forced; then it only reports it */
async function assertUnused(
  rollout: Rollout,
  driver: string,
  force: boolean,
  state: string,
): Promise<readonly Dependents[]> {
  const dependents = await dependentsOf(rollout, driver);
  if (dependents.length === 0) return [];
  const lines = dependents.map((one) => `\n  ${dependentsText(one)}`).join("");
  if (!force) {
    throw new RolloutError(
      `${driver} is still needed (${state}):${lines}\nDelete them first, or strand them with ${fieldText("force")}`,
    );
  }
  rollout.say(`stranded without ${driver}:${lines}`);
  return dependents;
}

/** The sidecars' own Leases, which nothing else removes. */
async function removeLeases(rollout: Rollout, driver: string, namespace: string): Promise<void> {
  const { kube } = rollout.env;
  for (const sidecar of electedSidecars) {
    const ref = { name: leaseName(sidecar, driver), namespace };
    const object = await persistently(rollout, (signal) => kube.get(resources.leases, ref, { signal }));
    if (object !== undefined) await remove(rollout, { resource: resources.leases, object });
  }
}

/** What is left for the user to know. */
export function leftText({ namespaces }: RemoveOutcome): string | undefined {
  if (namespaces.length === 0) return undefined;
  return `left: the namespace ${namespaces.join(", ")} and whatever else is in it, and the topology labels of nodes`;
}
