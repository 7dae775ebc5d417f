/** Cycles of the provisioner. */
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import type { ProvisionerOptions } from "@longshore/sidecars";
import { startSidecars } from "@longshore/sidecars";
import { snapshotResources } from "@longshore/storage";
import { FakeProvisioning, fakeDriver } from "@longshore/testing/sidecars";
import { type AccessCycle, type AccessWorld, accessNames } from "./access-world.ts";
import { addNode, aLease, change, countedAgain, secretParameters } from "./cycle-objects.ts";

const { driver, namespace } = accessNames;

/** A claim gets its volume at the third try, and the volume goes with the claim; another's intent is from before a restart. */
export const provisionerCycle: AccessCycle = {
  name: "provision, delete",
  component: "provisioner",
  deploy: { topology: true },
  async run(world) {
    const { admin, cloud, signal } = world;
    await addClass(world);
    cloud.next("CreateVolume", { code: "INTERNAL" }, { code: "INTERNAL" });
    await admin.create(
      resources.persistentVolumeClaims,
      aClaim("begun", {}, ["longshore.dev/provisioning"]),
      { signal },
    );
    const provisioner = startProvisioner(world);
    await world.eventually("what was begun is finished", () => volumeOf(world, "begun"));
    await provisionAndDelete(world, aClaim("data"));
    await world.eventually("the failure is counted", () => countedAgain(world, "ProvisioningFailed"));
    await world.pause(3000);
    await provisioner.stop();
  },
};

/** A claim gets a volume made of a snapshot; what a crash has left on another snapshot is swept. */
export const restoreCycle: AccessCycle = {
  name: "restore a snapshot",
  component: "provisioner",
  deploy: { topology: true, snapshot: true },
  services: (cloud) => new FakeProvisioning().extend(fakeDriver(cloud), cloud),
  async run(world) {
    await addClass(world);
    await addSnapshot(world, "s", []);
    await addSnapshot(world, "left", [
      "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection",
    ]);
    const provisioner = startProvisioner(world, { snapshotSweepMs: 2000 });
    const dataSource = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" };
    await world.admin.create(resources.persistentVolumeClaims, aClaim("data", { dataSource }), {
      signal: world.signal,
    });
    await world.eventually("the volume is made", () => volumeOf(world, "data"));
    await world.eventually("the snapshot left behind is let go", async () => {
      const ref = { namespace: "default", name: "left" };
      const left = await world.admin.get(snapshotResources.volumeSnapshots, ref, { signal: world.signal });
      return (left?.metadata.finalizers ?? []).length === 0;
    });
    await provisioner.stop();
  },
};

/** A claim gets a volume with attributes of a class. */
export const attributesCycle: AccessCycle = {
  name: "provision with attributes",
  component: "provisioner",
  deploy: { topology: true, modify: true },
  sinceMinor: 34,
  services: (cloud) => new FakeProvisioning().extend(fakeDriver(cloud), cloud),
  async run(world) {
    const { admin, signal } = world;
    await addClass(world);
    await admin.create(
      resources.volumeAttributesClasses,
      { metadata: { name: "gold" }, driverName: driver, parameters: { iops: "10" } },
      { signal },
    );
    const provisioner = startProvisioner(world);
    const claim = aClaim("data", { volumeAttributesClassName: "gold" });
    await admin.create(resources.persistentVolumeClaims, claim, { signal });
    await world.eventually("the volume is made", () => volumeOf(world, "data"));
    await provisioner.stop();
  },
};

/** Capacity objects are created, updated and deleted; their owner is the workload. */
function capacityCycle(
  name: string,
  deploy: AccessCycle["deploy"],
  owners: readonly (readonly ["replicaSets" | "deployments" | "statefulSets" | "daemonSets", string])[],
): AccessCycle {
  const room = new FakeProvisioning();
  return {
    name,
    component: "provisioner",
    deploy: { topology: true, capacity: true, ...deploy },
    // CSIStorageCapacity is beta since 1.21.
    sinceMinor: 21,
    services: (cloud) => room.extend(fakeDriver(cloud), cloud),
    async run(world) {
      const { admin, signal } = world;
      room.room.set("us-east-1a", 10n);
      await addClass(world, "WaitForFirstConsumer");
      await addWorkload(world, owners);
      const { nodeDeployment } = deploy;
      const provisioner = startProvisioner(world, {
        capacity: { namespace, podName: "pod", ownerRefLevel: owners.length, pollIntervalMs: 1000 },
        ...(nodeDeployment === true ? { nodeDeployment: { nodeName: "node-a" } } : {}),
      });
      const capacities = async () =>
        (await admin.list(resources.csiStorageCapacities, { signal, namespace })).items.map(
          ({ capacity }) => capacity,
        );
      await world.eventually("capacity is published", async () => (await capacities()).length === 1);
      room.room.set("us-east-1a", 20n);
      await world.eventually("its change is published", async () => (await capacities())[0] === "20");
      await admin.delete(resources.storageClasses, { name: "fast" }, { signal });
      await world.eventually("it is deleted with the class", async () => (await capacities()).length === 0);
      await provisioner.stop();
    },
  };
}

/** All of them. */
export const provisionerCycles: readonly AccessCycle[] = [
  provisionerCycle,
  restoreCycle,
  attributesCycle,
  capacityCycle("capacity, from a Deployment", {}, [
    ["replicaSets", "abc"],
    ["deployments", "ebs-csi-aws-com-controller"],
  ]),
  capacityCycle("capacity, from a StatefulSet", { controller: "statefulset" }, [
    ["statefulSets", "ebs-csi-aws-com-controller"],
  ]),
  capacityCycle("capacity, on each node", { nodeDeployment: true }, [["daemonSets", "ebs-csi-aws-com-node"]]),
];

function startProvisioner(world: AccessWorld, options: ProvisionerOptions = {}) {
  // What a deployment without snapshots says.
  const sidecars = { provisioner: { snapshotSweepMs: 0, ...options } };
  // There is no leader election on nodes, nor for a StatefulSet's only pod.
  const isElected = options.nodeDeployment === undefined && options.capacity?.ownerRefLevel !== 1;
  return world.start(startSidecars(world.env, isElected ? { sidecars, lease: aLease } : { sidecars }));
}

async function addClass(world: AccessWorld, volumeBindingMode = "Immediate"): Promise<void> {
  await addNode(world);
  await world.admin.create(
    resources.storageClasses,
    {
      metadata: { name: "fast" },
      provisioner: driver,
      parameters: secretParameters("provisioner"),
      volumeBindingMode,
    },
    { signal: world.signal },
  );
}

/** The claim's life, with what the persistent-volume controller and the protection of claims do. */
async function provisionAndDelete(world: AccessWorld, claim: PersistentVolumeClaim): Promise<void> {
  const { admin, cloud, signal } = world;
  const { name: claimName = "" } = claim.metadata ?? {};
  const ref = { namespace: "default", name: claimName };
  const disks = cloud.disks.size;
  await admin.create(resources.persistentVolumeClaims, claim, { signal });
  const pv = await world.eventually("the volume is made", () => volumeOf(world, claimName));
  await world.eventually("the intent is taken off the claim", async () => {
    const now = await admin.get(resources.persistentVolumeClaims, ref, { signal });
    return !(now?.metadata.finalizers ?? []).includes("longshore.dev/provisioning");
  });
  const { name } = pv.metadata;
  const volumes = resources.persistentVolumes;
  // As of a volume that another provisioner made, without a finalizer.
  await change(world, volumes, { name }, { metadata: { finalizers: null } });
  await change(world, volumes, { name }, { status: { phase: "Bound" } }, "status");
  await world.eventually("the volume is protected", async () =>
    (await volumeOf(world, claimName))?.metadata.finalizers?.some((one) =>
      one.startsWith("external-provisioner"),
    ),
  );
  await admin.delete(resources.persistentVolumeClaims, ref, { signal });
  await change(world, resources.persistentVolumeClaims, ref, { metadata: { finalizers: null } }).catch(
    () => {},
  );
  await change(world, volumes, { name }, { status: { phase: "Released" } }, "status");
  await world.eventually("the volume is gone", async () => {
    const left = await volumeOf(world, claimName);
    const protectedBy = left?.metadata.finalizers ?? [];
    // The protection of volumes has a controller of its own.
    if (protectedBy.includes("kubernetes.io/pv-protection")) {
      const finalizers = protectedBy.filter((one) => one !== "kubernetes.io/pv-protection");
      await change(world, volumes, { name }, { metadata: { finalizers } }).catch(() => {});
    }
    return left === undefined;
  });
  await world.eventually("the disk is gone", async () => cloud.disks.size === disks);
}

async function volumeOf({ admin, signal }: AccessWorld, claimName: string) {
  const { items } = await admin.list(resources.persistentVolumes, { signal });
  return items.find(({ spec }) => spec?.claimRef?.name === claimName);
}

function aClaim(
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
  finalizers: readonly string[] = [],
): PersistentVolumeClaim {
  return {
    metadata: {
      namespace: "default",
      name,
      finalizers: [...finalizers],
      annotations: { "volume.beta.kubernetes.io/storage-provisioner": driver },
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      storageClassName: "fast",
      ...spec,
    },
  };
}

async function addSnapshot(world: AccessWorld, name: string, finalizers: readonly string[]): Promise<void> {
  const { admin, signal } = world;
  const ref = { namespace: "default", name };
  const { volumeSnapshots, volumeSnapshotContents } = snapshotResources;
  const contentName = `content-${name}`;
  const stored = await admin.create(
    volumeSnapshots,
    {
      metadata: { ...ref, finalizers: [...finalizers] },
      spec: { source: { volumeSnapshotContentName: contentName } },
    },
    { signal },
  );
  await admin.create(
    volumeSnapshotContents,
    {
      metadata: { name: contentName },
      spec: {
        driver,
        deletionPolicy: "Retain",
        source: { snapshotHandle: `snap-${name}` },
        volumeSnapshotRef: { ...ref, uid: stored.metadata.uid },
      },
    },
    { signal },
  );
  const handle = { snapshotHandle: `snap-${name}`, readyToUse: true, restoreSize: 1 << 30 };
  await change(world, volumeSnapshotContents, { name: contentName }, { status: handle }, "status");
  const status = { boundVolumeSnapshotContentName: contentName, readyToUse: true, restoreSize: "1Gi" };
  await change(world, volumeSnapshots, ref, { status }, "status");
}

/** A pod below workloads, the nearest first. */
async function addWorkload(
  { admin, signal }: AccessWorld,
  owners: readonly (readonly ["replicaSets" | "deployments" | "statefulSets" | "daemonSets", string])[],
): Promise<void> {
  const containers = [{ name: "c", image: "i" }];
  const template = { metadata: { labels: { app: "x" } }, spec: { containers } };
  const spec = { selector: { matchLabels: { app: "x" } }, template };
  let above: object[] = [];
  for (const [plural, name] of [...owners].reverse()) {
    const resource = resources[plural];
    const metadata = { namespace, name, ownerReferences: above };
    const { uid } = (
      await admin.create(resource as typeof resources.deployments, { metadata, spec } as never, { signal })
    ).metadata;
    above = [{ apiVersion: "apps/v1", kind: resource.kind, name, uid, controller: true }];
  }
  await admin.create(
    resources.pods,
    { metadata: { namespace, name: "pod", ownerReferences: above as never }, spec: { containers } },
    { signal },
  );
}
