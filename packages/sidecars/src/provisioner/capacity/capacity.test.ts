/** Capacity tracking against the embedded API server: objects, owner, refreshes, and clusters without the kind. */
import { type CSIStorageCapacity, resources, type StorageClass } from "@longshore/kube";
import { type RecordingMeter, recordingMeter } from "@longshore/runtime";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../../testing/world.ts";
import { type ProvisionerOptions, startProvisioner } from "../provisioner.ts";

const ns = "csi";
const zoneKey = "topology.ebs.csi.aws.com/zone";
const lateClass = (over: Partial<StorageClass> = {}) =>
  aStorageClass({ volumeBindingMode: "WaitForFirstConsumer", ...over });

interface CapacityWorld extends World {
  readonly driver: FakeProvisioning;
  readonly meter: RecordingMeter;
  start(options?: Partial<ProvisionerOptions["capacity"]>): ReturnType<typeof startProvisioner>;
}

async function capacityWorld(emulatedVersion?: string): Promise<CapacityWorld> {
  const driver = new FakeProvisioning();
  driver.room.set("us-east-1a", 100n << 30n);
  driver.room.set("us-east-1b", 50n << 30n);
  const world = await sidecarWorld(
    {},
    { extend: driver.extend, ...(emulatedVersion === undefined ? {} : { emulatedVersion }) },
  );
  const { kube, signal } = world;
  await addNode(world, "node-a", "us-east-1a");
  await addNode(world, "node-b", "us-east-1b");
  await kube.create(resources.namespaces, { metadata: { name: ns } }, { signal });
  await kube.create(resources.storageClasses, lateClass(), { signal });
  const labels = { app: "csi" };
  const spec = { containers: [{ name: "c", image: "i" }] };
  const owner = await kube.create(
    resources.statefulSets,
    {
      metadata: { name: "controller", namespace: ns },
      spec: {
        serviceName: "s",
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
      },
    },
    { signal },
  );
  const controller = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    name: "controller",
    uid: owner.metadata.uid,
  };
  await kube.create(
    resources.pods,
    {
      metadata: {
        name: "controller-0",
        namespace: ns,
        ownerReferences: [{ ...controller, controller: true }],
      },
      spec,
    },
    { signal },
  );
  const meter = recordingMeter();
  return {
    ...world,
    driver,
    meter,
    start: (options = {}) =>
      startProvisioner(
        { ...world.env(), meter },
        { capacity: { namespace: ns, podName: "controller-0", ...options } },
      ),
  };
}

const objectsOf = async ({ kube, signal }: World) =>
  (await kube.list(resources.csiStorageCapacities, { signal })).items;
const figures = async (world: World) =>
  Object.fromEntries(
    (await objectsOf(world)).map(({ nodeTopology, capacity }) => [
      nodeTopology?.matchLabels?.[zoneKey],
      capacity,
    ]),
  );
const both = (world: World) =>
  world.eventually("objects for both zones", async () => (await objectsOf(world)).length === 2);

describe("capacity tracking", () => {
  it("has an owned object for each zone and class", async () => {
    const world = await capacityWorld();
    world.driver.maximumBytes = 10n << 30n;
    const provisioner = world.start();
    await both(world);
    const objects = await objectsOf(world);
    expect(await figures(world)).toEqual({ "us-east-1a": "100Gi", "us-east-1b": "50Gi" });
    for (const { metadata, maximumVolumeSize, storageClassName } of objects) {
      expect(storageClassName).toBe("gp2");
      expect(maximumVolumeSize).toBe("10Gi");
      expect(metadata).toMatchObject({
        namespace: ns,
        generateName: "csisc-",
        labels: {
          "csi.storage.k8s.io/drivername": "ebs.csi.aws.com",
          "csi.storage.k8s.io/managed-by": "external-provisioner",
        },
        ownerReferences: [{ kind: "StatefulSet", name: "controller", controller: true }],
      });
    }
    await world.clock.advance(1000);
    expect(world.meter.value("csistoragecapacities_desired_goal")).toBe(2);
    expect(world.meter.value("csistoragecapacities_desired_current")).toBe(2);
    expect(world.meter.value("csistoragecapacities_obsolete")).toBe(0);
    await provisioner.stop();
  });

  it("asks again each poll, and writes only what has changed", async () => {
    const world = await capacityWorld();
    const provisioner = world.start();
    await both(world);
    const versions = async () =>
      (await objectsOf(world)).map(({ metadata }) => metadata.resourceVersion).sort();
    const before = await versions();
    await world.clock.advance(60_000);
    expect(await versions()).toEqual(before);
    world.driver.room.set("us-east-1b", 20n << 30n);
    await world.clock.advance(60_000);
    expect(await figures(world)).toEqual({ "us-east-1a": "100Gi", "us-east-1b": "20Gi" });
    await provisioner.stop();
  });

  it("asks again soon after a volume was made", async () => {
    const world = await capacityWorld();
    const provisioner = world.start({ pollIntervalMs: 3_600_000 });
    await both(world);
    const asked = world.driver.asked.length;
    const claim = aClaim({
      annotations: { ...aClaim().metadata?.annotations, "volume.kubernetes.io/selected-node": "node-a" },
    });
    await world.kube.create(resources.persistentVolumeClaims, claim, { signal: world.signal });
    world.driver.room.set("us-east-1a", 99n << 30n);
    await world.eventually(
      "the new figure",
      async () => (await figures(world))["us-east-1a"] === "99Gi",
      10_000,
    );
    expect(world.driver.asked.length - asked).toBeLessThanOrEqual(2);
    await provisioner.stop();
  });

  it("follows nodes and classes, and drops what nothing asks for any more", async () => {
    const world = await capacityWorld();
    const { kube, signal } = world;
    const provisioner = world.start();
    await both(world);
    await addNode(world, "node-c", "us-east-1c");
    await world.eventually("a third", async () => (await objectsOf(world)).length === 3);
    await kube.delete(resources.csiNodes, { name: "node-c" }, { signal });
    await both(world);
    await kube.create(resources.storageClasses, lateClass({ metadata: { name: "io2" } }), { signal });
    await world.eventually("four", async () => (await objectsOf(world)).length === 4);
    await kube.delete(resources.storageClasses, { name: "gp2" }, { signal });
    await both(world);
    expect((await objectsOf(world)).map(({ storageClassName }) => storageClassName)).toEqual(["io2", "io2"]);
    await provisioner.stop();
  });

  it("resolves duplicates, creates again what was deleted, and leaves others' objects alone", async () => {
    const world = await capacityWorld();
    const { kube, signal } = world;
    const labels = {
      "csi.storage.k8s.io/drivername": "ebs.csi.aws.com",
      "csi.storage.k8s.io/managed-by": "external-provisioner",
    };
    const make = (over: object, more: Record<string, string> = {}) =>
      kube.create(
        resources.csiStorageCapacities,
        {
          metadata: { generateName: "x-", namespace: ns, labels: { ...labels, ...over } },
          storageClassName: "gp2",
          nodeTopology: { matchLabels: { [zoneKey]: "us-east-1a" } },
          ...more,
        } as CSIStorageCapacity,
        { signal },
      );
    await make({});
    await make({});
    const foreign = await make({ "csi.storage.k8s.io/managed-by": "another-controller" });
    const provisioner = world.start();
    await world.eventually(
      "one each, and the foreign one",
      async () => (await objectsOf(world)).length === 3,
    );
    await world.clock.advance(1000);
    const mine = (await objectsOf(world)).filter(({ metadata }) => metadata.uid !== foreign.metadata.uid);
    expect(mine.map(({ nodeTopology }) => nodeTopology?.matchLabels?.[zoneKey]).sort()).toEqual([
      "us-east-1a",
      "us-east-1b",
    ]);
    for (const { metadata } of mine) {
      expect(metadata.ownerReferences).toMatchObject([{ name: "controller" }]);
      await kube.delete(resources.csiStorageCapacities, { name: metadata.name, namespace: ns }, { signal });
    }
    await world.eventually("created again", async () => (await objectsOf(world)).length === 3);
    await provisioner.stop();
  });

  it("keeps the last figure when the driver does not answer", async () => {
    const world = await capacityWorld();
    const provisioner = world.start();
    await both(world);
    world.cloud.next("GetCapacity", { code: "UNAVAILABLE" }, { code: "UNAVAILABLE" });
    await world.clock.advance(60_000);
    expect(await figures(world)).toEqual({ "us-east-1a": "100Gi", "us-east-1b": "50Gi" });
    world.driver.room.set("us-east-1a", 1n << 30n);
    await world.eventually("the next figure", async () => (await figures(world))["us-east-1a"] === "1Gi");
    await provisioner.stop();
  });

  it("writes no faster than asked", async () => {
    const world = await capacityWorld();
    const provisioner = world.start({ writes: { qps: 0.1, burst: 1 } });
    await world.eventually("the first", async () => (await objectsOf(world)).length === 1);
    await world.clock.advance(5000);
    expect(await objectsOf(world)).toHaveLength(1);
    await both(world);
    await provisioner.stop();
  });

  it("needs no owner where none is wanted", async () => {
    const world = await capacityWorld();
    const provisioner = world.start({ ownerRefLevel: -1 });
    await both(world);
    for (const { metadata } of await objectsOf(world)) expect(metadata.ownerReferences).toBeUndefined();
    await provisioner.stop();
  });

  it("waits for an owner that cannot be found, and provisions meanwhile", async () => {
    const world = await capacityWorld();
    const provisioner = world.start({ ownerRefLevel: 2 });
    const claim = aClaim({
      annotations: { ...aClaim().metadata?.annotations, "volume.kubernetes.io/selected-node": "node-a" },
    });
    await world.kube.create(resources.persistentVolumeClaims, claim, { signal: world.signal });
    await world.eventually("a disk", async () => world.cloud.disks.size === 1);
    expect(await objectsOf(world)).toEqual([]);
    await provisioner.stop();
  });

  it("does nothing, and harms nothing, where the kind is absent", async () => {
    const world = await capacityWorld("1.20");
    const provisioner = world.start();
    const claim = aClaim({
      annotations: { ...aClaim().metadata?.annotations, "volume.kubernetes.io/selected-node": "node-a" },
    });
    await world.kube.create(resources.persistentVolumeClaims, claim, { signal: world.signal });
    await world.eventually("a disk", async () => world.cloud.disks.size === 1);
    expect(world.driver.asked).toEqual([]);
    await provisioner.stop();
  });
});
