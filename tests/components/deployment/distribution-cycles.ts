/**
 * A whole cycle of the work of each distribution's controller, under its own account: through it every right is used. The same
 * cycles run on the embedded server under a virtual clock and on a real one.
 */
import type { DistributionOptions } from "@longshore/deployment";
import {
  type HttpKubeClient,
  interceptWrites,
  type KubeClient,
  type KubeObject,
  type Resource,
  resources,
  startUnderLease,
} from "@longshore/kube";
import {
  addCSIMigrationController,
  annotationKeyControllerFinished,
  type Cluster,
  clusters,
  controlPlanes,
  newClientForShoot,
} from "@longshore/migration/gardener";
import {
  clusterOperatorName,
  clusterOperators,
  type FeatureGate,
  type FeatureGateOptions,
  featureGateObjects,
  kubeletConfigName,
  kubeletConfigs,
  machineConfigPools,
  operandKinds,
  startFeatureGateOperator,
} from "@longshore/migration/openshift";
import type { RuntimeEnv } from "@longshore/runtime";
import { volumeGatesFor } from "@longshore/volumes";
import type { AccessWorld } from "./access-world.ts";

/** Namespace of the controllers. */
export const distributionNamespace = "longshore-system";

/** What a cycle works with. */
export interface DistributionWorld extends Pick<AccessWorld, "admin" | "signal" | "start" | "eventually"> {
  /** The seams of the controller, with the client of its own account. */
  readonly env: RuntimeEnv & { readonly kube: KubeClient };
}

/** The cycle of one controller. */
export interface DistributionCycle {
  readonly options: DistributionOptions;
  run(world: DistributionWorld): Promise<void>;
}

const policy = {
  namespace: distributionNamespace,
  identity: "one",
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 1_000,
  releaseOnStop: true,
  recordEvents: true,
};

/** Fails where the work of a term fails: the refusal behind it is what the test looks at. */
const ended = { onLost: () => {}, onFailed: () => {} };

async function leaseIsRenewed({ admin, signal, eventually }: DistributionWorld, name: string) {
  const ref = { namespace: distributionNamespace, name };
  const renewed = async () => (await admin.get(resources.leases, ref, { signal }))?.spec?.renewTime;
  const first = await eventually("the lease is held", renewed);
  await eventually("the lease is renewed", async () => (await renewed()) !== first);
}

/** Sets go on and off: one that waits for nodes, custom ones, and one that is refused twice. */
const operatorCycle: DistributionCycle = {
  options: { controller: "feature-gate-operator", kubernetes: "1.20", order: "two-sets" },
  async run(world) {
    const { admin, env, signal, eventually } = world;
    for (const { resource } of operandKinds) {
      await admin.create(resource, { metadata: { name: "cluster" }, spec: {} }, { signal });
    }
    await admin.create(machineConfigPools, { metadata: { name: "worker" } }, { signal });
    const args: FeatureGateOptions = {
      order: "two-sets",
      plugins: [],
      knownGates: { ...volumeGatesFor("1.20"), CSIStorageCapacity: { default: false, stage: "alpha" } },
    };
    world.start(
      startUnderLease(env, policy, {
        ...ended,
        lease: "longshore-feature-gate-operator",
        serve: async (kube, _term, scope) => {
          scope.own(startFeatureGateOperator({ ...env, kube }, args));
        },
      }),
    );
    let revision = 0;
    const rollOut = async () => {
      revision++;
      const nodeStatuses = [{ nodeName: "m", currentRevision: revision }];
      const masters = { latestAvailableRevision: revision, nodeStatuses };
      for (const { resource } of operandKinds) await report(world, resource, "cluster", masters);
      await report(world, machineConfigPools, "worker", { machineCount: 1, updatedMachineCount: 1 });
    };
    const inForce = (set: string) =>
      eventually(`${set} is in force`, async () => {
        const operator = await admin.get(clusterOperators, { name: clusterOperatorName }, { signal });
        return operator?.status?.extension?.admitted?.featureSet === set;
      });
    const kubeletGates = async () =>
      (await admin.get(kubeletConfigs, { name: kubeletConfigName }, { signal }))?.spec?.kubeletConfig
        ?.featureGates;
    const refused = () =>
      eventually("the set is refused", async () => {
        const operator = await admin.get(clusterOperators, { name: clusterOperatorName }, { signal });
        return operator?.status?.conditions?.some(({ reason }) => reason === "UnknownFeatureSet");
      });
    await inForce("");
    await rollOut();
    await select(world, { featureSet: "CSIMigrationControlPlane" });
    await inForce("CSIMigrationControlPlane");
    for (let flip = 0; flip < 2; flip++) {
      await select(world, { featureSet: "NoSuchSet" });
      await refused();
      await select(world, { featureSet: "CSIMigrationControlPlane" });
      await eventually("nothing is refused", async () => {
        const operator = await admin.get(clusterOperators, { name: clusterOperatorName }, { signal });
        return operator?.status?.conditions?.every(({ reason }) => reason !== "UnknownFeatureSet");
      });
    }
    await eventually("the refusal is counted", async () =>
      (await admin.list(resources.events, { signal })).items.some(
        ({ reason, count = 1 }) => reason === "UnknownFeatureSet" && count > 1,
      ),
    );
    await eventually("the gates are rendered", async () => {
      const operands = await Promise.all(
        operandKinds.map(({ resource }) => admin.get(resource, { name: "cluster" }, { signal })),
      );
      return operands.every((one) => one?.spec?.observedConfig !== undefined);
    });
    await rollOut();
    await select(world, { featureSet: "CSIMigrationNode" });
    await eventually("the kubelets have gates", async () => (await kubeletGates()) !== undefined);
    await select(world, { featureSet: "CSIMigrationControlPlane" });
    await eventually("the kubelets have none", async () => (await kubeletGates()) === undefined);
    await rollOut();
    await select(world, {});
    await inForce("");
    const enabled = ["CSIStorageCapacity"];
    await select(world, { featureSet: "CustomNoUpgrade", customNoUpgrade: { enabled } });
    await eventually("a gate is on", async () => (await kubeletGates())?.CSIStorageCapacity === true);
    const disabled = ["HonorPVReclaimPolicy"];
    await select(world, { featureSet: "CustomNoUpgrade", customNoUpgrade: { enabled, disabled } });
    await eventually("another is off", async () => (await kubeletGates())?.HonorPVReclaimPolicy === false);
    await leaseIsRenewed(world, "longshore-feature-gate-operator");
  },
};

async function select({ admin, signal }: DistributionWorld, spec: NonNullable<FeatureGate["spec"]>) {
  const present = await admin.get(featureGateObjects, { name: "cluster" }, { signal });
  if (present === undefined) {
    await admin.create(featureGateObjects, { metadata: { name: "cluster" }, spec }, { signal });
  } else await admin.update(featureGateObjects, { ...present, spec }, { signal });
}

async function report(
  { admin, signal }: DistributionWorld,
  resource: Resource<KubeObject>,
  name: string,
  reported: object,
) {
  const object = await admin.get(resource, { name }, { signal });
  if (object === undefined) throw new Error(`${name} is gone`);
  const status = { ...reported, observedGeneration: object.metadata.generation };
  await admin.updateStatus(resource, { ...object, status } as KubeObject, { signal });
}

const shootNames = ["shoot--p--new", "shoot--p--old", "shoot--p--malformed"] as const;

/** A new shoot, one that migrates, and a malformed one that is changed and still malformed. */
const controllerCycle: DistributionCycle = {
  options: { controller: "migration-controller", providerType: "aws", csiMigrationKubernetesVersion: "1.18" },
  async run(world) {
    const { admin, env, signal, eventually } = world;
    const [fresh, old, malformed] = shootNames;
    for (const name of shootNames) await addShoot(world, name, name === malformed ? "newest" : "1.18.3");
    await admin.create(
      controlPlanes,
      { metadata: { name: "a", namespace: old }, spec: { type: "aws" } },
      { signal },
    );
    // The seed's own API server plays the shoot's; the Secret is read, and the client made, as always.
    const seedAsShoot = interceptWrites(admin, (_, given, send) => send(given));
    const shoot = { ...seedAsShoot, close: async () => {} } as HttpKubeClient;
    world.start(
      startUnderLease(env, policy, {
        ...ended,
        lease: "longshore-migration-controller-aws",
        serve: async (kube, _term, scope) => {
          const seed = newClientForShoot({ ...env, kube });
          const args = {
            type: "aws",
            csiMigrationKubernetesVersion: "1.18",
            storageClassNameToLegacyProvisioner: {},
            newClientForShoot: async (name: string, passSignal: AbortSignal) => {
              await (await seed(name, passSignal)).close();
              return shoot;
            },
          };
          scope.own(addCSIMigrationController({ ...env, kube }, args));
        },
      }),
    );
    for (const name of [fresh, old]) {
      await eventually(`${name} is finished`, async () => {
        const cluster = await admin.get(clusters, { name }, { signal });
        return cluster?.metadata.annotations?.[annotationKeyControllerFinished] !== undefined;
      });
    }
    const counted = (least: number) =>
      eventually(`the malformed shoot is reported ${least} times`, async () =>
        (await admin.list(resources.events, { signal })).items.some(
          ({ reason, count = 1 }) => reason === "InvalidShoot" && count >= least,
        ),
      );
    await counted(1);
    const cluster = await admin.get(clusters, { name: malformed }, { signal });
    if (cluster === undefined) throw new Error(`${malformed} is gone`);
    const labels = { seen: "again" };
    await admin.update(clusters, { ...cluster, metadata: { ...cluster.metadata, labels } }, { signal });
    await counted(2);
    await leaseIsRenewed(world, "longshore-migration-controller-aws");
  },
};

async function addShoot({ admin, signal }: DistributionWorld, name: string, version: string): Promise<void> {
  await admin.create(resources.namespaces, { metadata: { name } }, { signal });
  const spec = { provider: { type: "aws" }, kubernetes: { version } };
  const cluster: Cluster = {
    metadata: { name },
    spec: { cloudProfile: {}, seed: {}, shoot: { metadata: { name: "a" }, spec } },
  };
  await admin.create(clusters, cluster, { signal });
  const kubeconfig = JSON.stringify({
    clusters: [{ name: "c", cluster: { server: "https://shoot.example.com" } }],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
  // The older name: that of the Secret inside the seed is asked for first, and is not there.
  const metadata = { namespace: name, name: "gardener" };
  await admin.create(resources.secrets, { metadata, stringData: { kubeconfig } }, { signal });
  for (const component of ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]) {
    const labels = { app: component };
    const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
    await admin.create(
      resources.deployments,
      {
        metadata: { namespace: name, name: component },
        spec: { selector: { matchLabels: labels }, template },
      },
      { signal },
    );
  }
}

/** All of them. */
export const distributionCycles: readonly DistributionCycle[] = [operatorCycle, controllerCycle];
