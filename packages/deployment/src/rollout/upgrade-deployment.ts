/**
 * Brings a deployment to a cluster, new or over an older one, in the design's order (docs/behaviour/sidecars.md 9):
 *
 *     look at everything ──► controller down ──► rights, CSIDriver, classes ──► nodes ──► controller up ──► leftovers
 *
 * The controller comes last, since it makes volumes by what the nodes say of their topology.
 *
 * Invariants
 *  - Nothing is changed before the server has accepted every object in a dry run.
 *  - The cluster shows what was done: an interrupted upgrade continues when it is run again.
 *  - Labels of nodes, classes that are not requested any more, and the namespace are left as they are.
 */
import { type DaemonSet, type KubeEnv, type KubeObject, resources, type StatefulSet } from "@longshore/kube";
import type { DeployOptions } from "../deploy-options.ts";
import { resourceOf } from "../deployed-kinds.ts";
import { type DeploymentPlan, planDeployment } from "../deployment-plan.ts";
import { allObjects, type RenderedDeployment, renderDeployment } from "../render-deployment.ts";
import { apply, type Change, changeOf } from "./apply.ts";
import {
  type DeployedObject,
  deployedObjects,
  deployedOptions,
  listAll,
  mergedOptions,
  nameOf,
} from "./deployed-objects.ts";
import { podsOf, remove, takeDown, workloadsOf } from "./parts.ts";
import { missingOfController, missingOfNodes } from "./readiness.ts";
import { persistently, type Rollout, type RolloutOptions, runRollout, waitUntil } from "./rollout.ts";

/** How an upgrade is done. */
export interface UpgradeOptions extends RolloutOptions {
  /** Objects of these names that other tools created are taken over. */
  readonly adopt?: boolean;
}

/** How an upgrade ended. */
export interface UpgradeOutcome {
  readonly plan: DeploymentPlan;
  /** False: everything was as asked for already. */
  readonly changed: boolean;
}

/**
 * Upgrades, or deploys for the first time.
 * @param asked what is to be different from the last time; all of it the first time
 * @throws DeployOptionError, RolloutError, KubeApiError
 */
export function upgradeDeployment(
  env: KubeEnv,
  asked: Partial<DeployOptions> & { readonly name: string },
  options: UpgradeOptions,
): Promise<UpgradeOutcome> {
  return runRollout(env, options, (rollout) => upgrade(rollout, asked, options.adopt === true));
}

async function upgrade(
  rollout: Rollout,
  asked: Partial<DeployOptions> & { readonly name: string },
  adopt: boolean,
): Promise<UpgradeOutcome> {
  const driver = asked.name;
  const merged = mergedOptions(await deployedOptions(rollout, driver, adopt), asked);
  const plan = planDeployment({ ...merged, ...(await versionOf(rollout, merged)) });
  for (const warning of plan.warnings) rollout.say(`warning: ${warning}`);
  const rendered = renderDeployment(plan);
  const deployed = await deployedObjects(rollout, driver);
  const changes = await look(rollout, plan, rendered, adopt);
  const controllers = workloadsOf(deployed, "controller");
  const leftovers = leftoversOf(deployed, rendered).filter((one) => !controllers.includes(one));
  const outdated = leftoversOf(controllers, rendered);
  const changed =
    leftovers.length + outdated.length > 0 || [...changes.values()].some((change) => change !== "none");
  if (!changed) {
    // An upgrade that was interrupted while it waited has nothing left to change, and may not have come up.
    await waitForNodes(rollout, plan, rendered);
    await waitForControllers(rollout, rendered);
    return { plan, changed };
  }
  for (const [object, change] of changes)
    if (change !== "none") rollout.say(`${verb(rollout, change)} ${displayName(object)}`);
  if (rollout.dryRun) {
    for (const one of [...outdated, ...leftovers]) await remove(rollout, one);
    return { plan, changed };
  }
  rollout.say("1/4 taking the controller down");
  await takeDown(rollout, driver, "controller", controllers);
  rollout.say("2/4 rights, CSIDriver and classes");
  for (const { object } of [...rendered.shared, ...rendered.snapshotController]) await apply(rollout, object);
  rollout.say("3/4 the node part");
  await apply(rollout, rendered.node.object);
  await waitForNodes(rollout, plan, rendered);
  rollout.say("4/4 bringing the controller up");
  for (const { object } of rendered.controller) await apply(rollout, object);
  await waitForControllers(rollout, rendered);
  for (const one of leftovers) await remove(rollout, one);
  return { plan, changed };
}

const verb = ({ dryRun }: Rollout, change: Change) => `${dryRun ? "would " : "will "}${change}`;
const displayName = (object: KubeObject) => nameOf({ resource: resourceOf(object), object });

/** The server's version, unless one was requested: by what it serves. */
async function versionOf(rollout: Rollout, asked: DeployOptions): Promise<Partial<DeployOptions>> {
  if (asked.kubernetesVersion !== undefined) return {};
  const budgets = await persistently(rollout, (signal) =>
    rollout.env.kube.servedVersion(resources.podDisruptionBudgets, { signal }),
  );
  // policy/v1 came with 1.21.
  return budgets === "v1" ? {} : { kubernetesVersion: "1.20" };
}

async function look(
  rollout: Rollout,
  plan: DeploymentPlan,
  rendered: RenderedDeployment,
  adopt: boolean,
): Promise<ReadonlyMap<KubeObject, Change>> {
  const changes = new Map<KubeObject, Change>();
  for (const { object } of allObjects(rendered)) {
    changes.set(object, await changeOf(rollout, plan.driver, object, adopt));
  }
  return changes;
}

/** Objects of the deployment that are not requested any more. Of classes users may have claims. */
function leftoversOf(
  deployed: readonly DeployedObject[],
  rendered: RenderedDeployment,
): readonly DeployedObject[] {
  const kept = new Set([
    "StorageClass",
    "VolumeSnapshotClass",
    "VolumeGroupSnapshotClass",
    "Namespace",
    "CSIDriver",
  ]);
  const wanted = new Set(allObjects(rendered).map(({ object }) => displayName(object)));
  return deployed.filter((one) => !kept.has(one.resource.kind) && !wanted.has(nameOf(one)));
}

async function waitForNodes(
  rollout: Rollout,
  { driver }: DeploymentPlan,
  { node }: RenderedDeployment,
): Promise<void> {
  if (rollout.dryRun) return;
  const { kube } = rollout.env;
  const ref = refOf(node.object);
  await waitUntil(rollout, async (signal) => {
    const daemonSet: DaemonSet | undefined = await kube.get(resources.daemonSets, ref, { signal });
    const pods = await podsOf(rollout, driver, "node", signal);
    return missingOfNodes(daemonSet, pods, await listAll(kube, resources.csiNodes, { signal }), driver);
  });
}

async function waitForControllers(rollout: Rollout, rendered: RenderedDeployment): Promise<void> {
  if (rollout.dryRun) return;
  const workloads = [...rendered.controller, ...rendered.snapshotController].filter(
    ({ object: { kind } }) => kind === "StatefulSet" || kind === "Deployment",
  );
  for (const { object } of workloads) {
    const resource = resourceOf(object);
    await waitUntil(rollout, async (signal) =>
      missingOfController(
        (await rollout.env.kube.get(resource, refOf(object), { signal })) as StatefulSet | undefined,
      ),
    );
  }
}

function refOf({ metadata: { name = "", namespace = "" } = {} }: KubeObject) {
  return { name, namespace };
}
