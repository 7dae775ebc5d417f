/**
 * A whole cycle of the work of each distribution's controller, wherever it runs: in one process under a virtual clock, or in a process
 * of its own that is killed. What a cycle makes it takes away again; it throws at a wrong end, and where gates flip too early.
 */
import type { KubeClient, KubeObject, Resource } from "@longshore/kube";
import { isNotFound, resources } from "@longshore/kube";
import {
  annotationKeyControllerFinished,
  annotationKeyNeedsComplete,
  type Cluster,
  clusters,
  controlPlanes,
} from "@longshore/migration/gardener";
import {
  clusterOperatorName,
  clusterOperators,
  featureGateObjects,
  kubeletConfigName,
  kubeletConfigs,
  machineConfigPools,
  operandKinds,
} from "@longshore/migration/openshift";

/** What a cycle works with. Nothing else is at work in it but the controller. */
export interface MigrationWorld {
  readonly kube: KubeClient;
  readonly signal: AbortSignal;
  /** Kubeconfig of a shoot; the seed itself plays it. */
  readonly shootKubeconfig: string;
  /** Waits for `condition`. @throws Error when it does not come */
  eventually<T>(what: string, condition: () => Promise<T | undefined | false>): Promise<T>;
}

/** Names of the cycles. */
export type MigrationCycleName =
  | "feature-gate-operator"
  | "feature-gate-operator with two sets"
  | "migration-controller";

/** One run; `id` makes its names unique. @returns what there was at each rest, which a crash must not change */
export type MigrationCycle = (world: MigrationWorld, id: string) => Promise<readonly unknown[]>;

/** The cycles. */
export const migrationCycles: Readonly<Record<MigrationCycleName, MigrationCycle>> = {
  "feature-gate-operator": onAndOff,
  "feature-gate-operator with two sets": onAndOffInOrder,
  "migration-controller": carryOver,
};

const cluster = { name: "cluster" };
/** One pass may wait for nodes, 30 s at a time; the test's own report of a pool ends the wait. */
const pool = { name: "worker" };

/** The objects of a platform of which nothing is rendered, once for all cycles. */
export async function preparePlatform({ kube, signal }: MigrationWorld): Promise<void> {
  for (const { resource } of operandKinds) {
    await kube.create(resource, { metadata: cluster, spec: {} }, { signal });
  }
  await kube.create(machineConfigPools, { metadata: pool }, { signal });
  await kube.create(resources.csiNodes, { metadata: { name: "node-1" }, spec: { drivers: [] } }, { signal });
}

async function select({ kube, signal }: MigrationWorld, featureSet: string | undefined): Promise<void> {
  const present = await kube.get(featureGateObjects, cluster, { signal });
  if (featureSet === undefined) {
    if (present !== undefined) await kube.delete(featureGateObjects, cluster, { signal });
  } else if (present === undefined) {
    await kube.create(featureGateObjects, { metadata: cluster, spec: { featureSet } }, { signal });
  } else await kube.update(featureGateObjects, { ...present, spec: { featureSet } }, { signal });
}

/** As OpenShift's own operators report: a revision of the present configuration is on each node. */
async function rollOut(world: MigrationWorld): Promise<void> {
  const { kube, signal } = world;
  for (const { resource } of operandKinds) {
    const operand = await kube.get(resource, cluster, { signal });
    const revision = (operand?.status?.latestAvailableRevision ?? 0) + 1;
    await report(world, resource, cluster, {
      observedGeneration: operand?.metadata.generation,
      latestAvailableRevision: revision,
      nodeStatuses: [{ nodeName: "m", currentRevision: revision }],
    });
  }
  await updatePool(world);
}

/** Counts up, so that each report is a change. */
async function updatePool(world: MigrationWorld): Promise<void> {
  const { kube, signal } = world;
  const present = await kube.get(machineConfigPools, pool, { signal });
  const count = (present?.status?.machineCount ?? 0) + 1;
  const observedGeneration = present?.metadata.generation;
  await report(world, machineConfigPools, pool, {
    observedGeneration,
    machineCount: count,
    updatedMachineCount: count,
  });
}

async function report(
  { kube, signal }: MigrationWorld,
  resource: Resource<KubeObject>,
  ref: { readonly name: string },
  status: object,
): Promise<void> {
  await kube.patch(resource, ref, { type: "merge", body: { status } }, { signal, subresource: "status" });
}

/** What the operator has written, without times and revisions. */
async function written({ kube, signal }: MigrationWorld) {
  const operands = await Promise.all(
    operandKinds.map(async ({ resource }) => (await kube.get(resource, cluster, { signal }))?.spec ?? null),
  );
  const config = await kube.get(kubeletConfigs, { name: kubeletConfigName }, { signal });
  const operator = await kube.get(clusterOperators, { name: clusterOperatorName }, { signal });
  const { conditions = [], relatedObjects, extension } = operator?.status ?? {};
  return {
    operands,
    kubelet: config === undefined ? null : { labels: config.metadata.labels, spec: config.spec },
    conditions: conditions.map(({ lastTransitionTime: _, ...state }) => state),
    relatedObjects,
    admitted: extension?.admitted,
  };
}

type Written = Awaited<ReturnType<typeof written>>;

const areGatesOn = ({ operands }: Written) => operands.every((spec) => spec?.observedConfig !== undefined);
const areGatesOff = ({ operands }: Written) =>
  operands.every((spec) => Object.keys(spec?.observedConfig ?? {}).length === 0);

/** Reasons of the conditions that are not as in quiet times; `Unknown` before there are any. */
function reasons({ conditions }: Written): string {
  if (conditions.length === 0) return "Unknown";
  return conditions
    .map(({ reason }) => reason)
    .filter((reason) => reason !== "AsExpected")
    .join();
}

function atRest(
  world: MigrationWorld,
  what: string,
  rest: {
    /** The set that is in force; empty: the gates of the release. */
    readonly inForce: string;
    readonly reasons: string;
    readonly controlPlane: boolean;
    readonly nodes: boolean;
  },
): Promise<Written> {
  return world.eventually(what, async () => {
    const found = await written(world);
    const inForce = rest.inForce === "" ? "the gates of the release" : rest.inForce;
    const isReported = found.conditions.some(({ message }) => message === `in force: ${inForce}`);
    const isAsked = isReported && reasons(found) === rest.reasons;
    const isGiven =
      (rest.controlPlane ? areGatesOn(found) : areGatesOff(found)) && (found.kubelet !== null) === rest.nodes;
    return isAsked && isGiven && found;
  });
}

const off = { inForce: "", controlPlane: false, nodes: false };
const on = { inForce: "CSIMigration", controlPlane: true, nodes: true };

/** The ClusterOperator is made again, and everything is off. */
async function beginOff(world: MigrationWorld): Promise<Written> {
  const { kube, signal } = world;
  await select(world, undefined);
  for (const { resource } of operandKinds) {
    const body = { spec: { observedConfig: null } };
    await kube.patch(resource, cluster, { type: "merge", body }, { signal });
  }
  await rollOut(world);
  try {
    await kube.delete(clusterOperators, { name: clusterOperatorName }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return atRest(world, "everything is off", { ...off, reasons: "" });
}

/** A set is taken, another is refused, and the first is left again. */
async function onAndOff(world: MigrationWorld): Promise<readonly unknown[]> {
  const rests: unknown[] = [await beginOff(world)];
  await select(world, "CSIMigration");
  rests.push(await atRest(world, "the gates are rendered", { ...on, reasons: "RollingOut" }));
  await rollOut(world);
  rests.push(await atRest(world, "the gates are rolled out", { ...on, reasons: "" }));
  await select(world, "NoSuchSet");
  rests.push(await atRest(world, "the set is refused", { ...on, reasons: "UnknownFeatureSet" }));
  await select(world, "");
  rests.push(await atRest(world, "the gates are taken back", { ...off, reasons: "RollingOut" }));
  await rollOut(world);
  rests.push(await atRest(world, "everything is off again", { ...off, reasons: "" }));
  return rests;
}

/** Control plane first, nodes last, and back: at each wait the other side must not have changed. */
async function onAndOffInOrder(world: MigrationWorld): Promise<readonly unknown[]> {
  const { kube, signal } = world;
  const state = async (plugins: string) => {
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": plugins };
    const body = { metadata: { annotations } };
    await kube.patch(resources.csiNodes, { name: "node-1" }, { type: "merge", body }, { signal });
  };
  const controlPlaneOnly = { inForce: "CSIMigrationControlPlane", controlPlane: true, nodes: false };
  const rests: unknown[] = [await beginOff(world)];
  await select(world, "CSIMigrationControlPlane");
  rests.push(
    await atRest(world, "the control plane has gates", { ...controlPlaneOnly, reasons: "RollingOut" }),
  );
  await select(world, "CSIMigrationNode");
  rests.push(
    await atRest(world, "nodes wait for the control plane", {
      ...controlPlaneOnly,
      reasons: "WaitingForControlPlane",
    }),
  );
  await rollOut(world);
  rests.push(
    await atRest(world, "the nodes have gates", { ...on, inForce: "CSIMigrationNode", reasons: "" }),
  );
  await state("kubernetes.io/aws-ebs");
  await select(world, "CSIMigrationControlPlane");
  rests.push(await atRest(world, "the nodes give them back", { ...controlPlaneOnly, reasons: "" }));
  await select(world, "");
  rests.push(
    await atRest(world, "the control plane waits for nodes", {
      ...controlPlaneOnly,
      reasons: "WaitingForNodes",
    }),
  );
  await state("");
  await updatePool(world);
  rests.push(await atRest(world, "the control plane gives them back", { ...off, reasons: "RollingOut" }));
  await rollOut(world);
  rests.push(await atRest(world, "everything is off again", { ...off, reasons: "" }));
  return rests;
}

/** A shoot migrates, and a new one is marked; both are deleted. */
async function carryOver(world: MigrationWorld, id: string): Promise<readonly unknown[]> {
  const { kube, signal } = world;
  const [migrated, fresh] = [`shoot--p--${id}`, `shoot--p--${id}-new`];
  await kube.create(resources.nodes, aNode, { signal });
  await kube.patch(
    resources.nodes,
    aNode.metadata,
    { type: "merge", body: { status: { nodeInfo: { kubeletVersion: "v1.18.3" } } } },
    { signal, subresource: "status" },
  );
  for (const [name, provisioner] of classes) {
    await kube.create(resources.storageClasses, { metadata: { name }, provisioner }, { signal });
  }
  for (const name of [migrated, fresh]) await makeShoot(world, name, name === migrated);
  const rests: unknown[] = [];
  for (const name of [migrated, fresh]) {
    rests.push(
      await world.eventually(`${name} is finished`, async () => {
        const found = await kube.get(clusters, { name }, { signal });
        const keys = Object.keys(found?.metadata.annotations ?? {}).sort();
        // Only with the last gates asked for, and the legacy class gone, is anything finished.
        const isFinished = keys.includes(annotationKeyControllerFinished);
        if (isFinished && !keys.includes(annotationKeyNeedsComplete)) throw new Error("finished too early");
        return isFinished && { keys, spec: found?.spec === undefined };
      }),
    );
  }
  const { items } = await kube.list(resources.storageClasses, { signal });
  rests.push(items.map(({ metadata, provisioner }) => [metadata.name, provisioner]).sort());
  for (const name of [migrated, fresh]) await deleteShoot(world, name);
  for (const { metadata } of items) await kube.delete(resources.storageClasses, metadata, { signal });
  await kube.delete(resources.nodes, aNode.metadata, { signal });
  return rests;
}

const aNode = { metadata: { name: "new-1" } };
const classes = [
  ["default", "kubernetes.io/aws-ebs"],
  ["fast", "ebs.csi.aws.com"],
  ["mine", "kubernetes.io/aws-ebs"],
] as const;
const deployments = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

async function makeShoot(world: MigrationWorld, name: string, hasControlPlane: boolean): Promise<void> {
  const { kube, signal, shootKubeconfig } = world;
  await kube.create(resources.namespaces, { metadata: { name } }, { signal });
  const stringData = { kubeconfig: shootKubeconfig };
  await kube.create(
    resources.secrets,
    { metadata: { namespace: name, name: "gardener-internal" }, stringData },
    { signal },
  );
  for (const component of deployments) {
    const labels = { app: component };
    const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
    const deployment = {
      metadata: { namespace: name, name: component },
      spec: { selector: { matchLabels: labels }, template },
    };
    await kube.create(resources.deployments, deployment, { signal });
  }
  const controlPlane = { metadata: { namespace: name, name: "a" }, spec: { type: "aws" } };
  if (hasControlPlane) await kube.create(controlPlanes, controlPlane, { signal });
  const spec = { provider: { type: "aws" }, kubernetes: { version: "1.18.3" } };
  const object: Cluster = {
    metadata: { name },
    spec: { cloudProfile: {}, seed: {}, shoot: { metadata: { name: "a" }, spec } },
  };
  await kube.create(clusters, object, { signal });
}

async function deleteShoot({ kube, signal }: MigrationWorld, namespace: string): Promise<void> {
  await kube.delete(clusters, { name: namespace }, { signal });
  for (const name of deployments) await kube.delete(resources.deployments, { namespace, name }, { signal });
  await kube.delete(resources.secrets, { namespace, name: "gardener-internal" }, { signal });
  await kube.delete(resources.namespaces, { name: namespace }, { signal });
}
