/** What claims and volumes are shown, and which of them fit: the persistent-volume controller under the virtual clock. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startPersistentVolumeController } from "./persistent-volume-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const provisioner = "volume.beta.kubernetes.io/storage-provisioner";
const namespace = "default";

/** Deleted, as far as the finalizer of its protection, which no controller takes off here, lets it go. */
const isGone = (volume: Stored<PersistentVolume> | undefined) =>
  volume === undefined || volume.metadata.deletionTimestamp !== undefined;

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

function world() {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1"]);
  const launch = (isMigrated = false) =>
    startPersistentVolumeController(
      { ...plane.env, kube: plane.kube, plugins: [awsEbsPlugin({ cloud }), csiPlugin()] },
      { gates: featureGates(volumeGates, { CSIMigrationAWS: isMigrated }) },
    );
  const start = (isMigrated?: boolean) => plane.running(launch(isMigrated));
  const aClass = (name: string, fields: Partial<StorageClass> = {}) =>
    plane.create(resources.storageClasses, {
      metadata: { name },
      provisioner: ebs,
      reclaimPolicy: "Delete",
      ...fields,
    });
  const aClaim = (name: string, spec: Partial<NonNullable<PersistentVolumeClaim["spec"]>> = {}) =>
    plane.create(resources.persistentVolumeClaims, {
      metadata: { name, namespace },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "5Gi" } },
        storageClassName: "manual",
        ...spec,
      },
    });
  const aVolume = (name: string, spec: Partial<PersistentVolume["spec"]> = {}, metadata: object = {}) =>
    plane.create(resources.persistentVolumes, {
      metadata: { name, ...metadata },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "5Gi" },
        awsElasticBlockStore: { volumeID: `vol-${name}` },
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "manual",
        ...spec,
      },
    });
  const claim = async (name: string) => plane.get(resources.persistentVolumeClaims, name, namespace);
  const volume = async (name: string) => plane.get(resources.persistentVolumes, name);
  const shown = (name: string) => plane.eventsOn("PersistentVolumeClaim", name);
  return { plane, cloud, launch, start, aClass, aClaim, aVolume, claim, volume, shown };
}

describe("a claim without a volume", () => {
  it("and without a class is shown that nothing fits, and is bound when something does (controllers.md B3)", async () => {
    const { plane, start, aClaim, aVolume, claim, shown } = world();
    start();
    await aClaim("c", { storageClassName: "" });
    await plane.pass(2_000);
    expect(await shown("c")).toEqual([
      "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set",
    ]);
    await aVolume("v", { storageClassName: "" });
    await plane.pass(2_000);
    expect((await claim("c"))?.status?.phase).toBe("Bound");
  });

  it("waits for its first pod where the class says so, and no disk is made (controllers.md B3)", async () => {
    const { plane, cloud, start, aClass, aClaim, shown } = world();
    await aClass("late", { volumeBindingMode: "WaitForFirstConsumer" });
    start();
    await aClaim("c", { storageClassName: "late" });
    await plane.pass(600_000);
    expect(await shown("c")).toEqual([
      "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding",
    ]);
    expect(cloud.calls).toEqual([]);
  });

  it("whose class is not there says so, and goes on once it is (controllers.md B6)", async () => {
    const { plane, start, aClass, aClaim, claim, shown } = world();
    start();
    await aClaim("c", { storageClassName: "missing" });
    await plane.pass(2_000);
    expect(await shown("c")).toEqual([
      'Warning ProvisioningFailed: storageclass.storage.k8s.io "missing" not found',
    ]);
    await aClass("missing");
    await plane.pass(180_000);
    expect((await claim("c"))?.status?.phase).toBe("Bound");
  });

  it("whose in-tree provisioner does not exist says so (controllers.md B6)", async () => {
    const { plane, start, aClass, aClaim, shown } = world();
    await aClass("odd", { provisioner: "kubernetes.io/no-such-plugin" });
    start();
    await aClaim("c", { storageClassName: "odd" });
    await plane.pass(2_000);
    const [event] = await shown("c");
    expect(event).toMatch(/^Warning ProvisioningFailed: .*kubernetes\.io\/no-such-plugin/);
  });

  it("of a driver's class is left to its provisioner, which it names (controllers.md B6)", async () => {
    const { plane, cloud, start, aClass, aClaim, claim, shown } = world();
    await aClass("driver", { provisioner: "d.example.com" });
    start();
    await aClaim("c", { storageClassName: "driver" });
    await plane.pass(2_000);
    expect((await claim("c"))?.metadata.annotations?.[provisioner]).toBe("d.example.com");
    expect((await shown("c"))[0]).toMatch(/^Normal ExternalProvisioning: .*d\.example\.com/);
    expect(cloud.calls).toEqual([]);
  });

  it("of a migrated class is its driver's, and the plugin's no more (controllers.md B6; contract.md C5)", async () => {
    const { plane, cloud, start, aClass, aClaim, claim } = world();
    await aClass("migrated");
    start(true);
    await aClaim("c", { storageClassName: "migrated" });
    await plane.pass(600_000);
    expect((await claim("c"))?.metadata.annotations?.[provisioner]).toBe(driver);
    expect(cloud.calls).toEqual([]);
  });

  it("names its provisioner in both annotations, also where another controller had named the plugin (controllers.md B1, B6)", async () => {
    const { plane, start, aClass, aClaim, claim, shown } = world();
    const both = ["volume.kubernetes.io/storage-provisioner", provisioner];
    await aClass("migrated");
    await aClaim("c", { storageClassName: "migrated" });
    const annotations = Object.fromEntries(both.map((key) => [key, ebs]));
    await plane.merge(
      resources.persistentVolumeClaims,
      { name: "c", namespace },
      { metadata: { annotations } },
    );
    start(true);
    await plane.pass(2_000);
    for (const key of both) expect((await claim("c"))?.metadata.annotations?.[key]).toBe(driver);
    expect(await shown("c")).toEqual([
      expect.stringMatching(/^Normal ExternalProvisioning: .*ebs.csi.aws.com/),
    ]);
    expect(plane.logged).toEqual([]);
  });

  it("is the plugin's again when the gate goes while it waits (controllers.md B6)", async () => {
    const { plane, launch, start, aClass, aClaim, claim } = world();
    await aClass("migrated");
    const first = launch(true);
    await aClaim("c", { storageClassName: "migrated" });
    await plane.pass(2_000);
    await plane.clock.run(first.stop());
    start(false);
    await plane.pass(5_000);
    expect((await claim("c"))?.metadata.annotations?.[provisioner]).toBe(ebs);
    expect((await claim("c"))?.status?.phase).toBe("Bound");
  });
});

describe("which volume a claim gets", () => {
  it("only one with its labels (controllers.md B3)", async () => {
    const { plane, start, aClaim, aVolume, claim } = world();
    await aVolume("hdd");
    await aVolume("ssd", { capacity: { storage: "50Gi" } }, { labels: { disk: "ssd" } });
    start();
    await aClaim("c", { selector: { matchLabels: { disk: "ssd" } } });
    await plane.pass(2_000);
    expect((await claim("c"))?.spec?.volumeName).toBe("ssd");
  });

  it.each<[string, Partial<PersistentVolume["spec"]>]>([
    ["access modes", { accessModes: ["ReadOnlyMany"] }],
    ["volume mode", { volumeMode: "Block" }],
    ["class", { storageClassName: "other" }],
    ["size", { capacity: { storage: "4Gi" } }],
  ])("none of another %s (controllers.md B3)", async (_, spec) => {
    const { plane, start, aClaim, aVolume, claim } = world();
    await aVolume("v", spec);
    start();
    await aClaim("c");
    await plane.pass(60_000);
    expect((await claim("c"))?.status?.phase).toBe("Pending");
    await aVolume("fits");
    await plane.pass(5_000);
    expect((await claim("c"))?.spec?.volumeName).toBe("fits");
  });

  it("not the one that it names, where that is too small, and says so (controllers.md B3)", async () => {
    const { plane, start, aClaim, aVolume, claim, volume, shown } = world();
    await aVolume("small", { capacity: { storage: "1Gi" } });
    start();
    await aClaim("c", { volumeName: "small" });
    await plane.pass(2_000);
    expect((await shown("c"))[0]).toMatch(/^Warning VolumeMismatch: .*"small"/);
    expect((await claim("c"))?.status?.phase).toBe("Pending");
    expect((await volume("small"))?.spec?.claimRef).toBeUndefined();
  });

  it("not the one that it names, where another claim has it, and says so (controllers.md B3)", async () => {
    const { plane, start, aClaim, aVolume, claim, shown } = world();
    await aVolume("v");
    start();
    await aClaim("first", { volumeName: "v" });
    await plane.pass(2_000);
    await aClaim("second", { volumeName: "v" });
    await plane.pass(2_000);
    expect((await shown("second"))[0]).toMatch(/^Warning FailedBinding: .*"v"/);
    expect((await claim("second"))?.status?.phase).toBe("Pending");
    expect((await claim("first"))?.status?.phase).toBe("Bound");
  });
});

describe("a volume whose claim is gone", () => {
  /** Bound, and the claim then deleted. */
  async function released(spec: Partial<PersistentVolume["spec"]>, metadata: object = {}) {
    const all = world();
    const { plane, start, aClaim, aVolume } = all;
    await aVolume("v", spec, metadata);
    start();
    await aClaim("c");
    await plane.pass(2_000);
    await plane.merge(
      resources.persistentVolumeClaims,
      { name: "c", namespace },
      { metadata: { finalizers: null } },
    );
    await plane.delete(resources.persistentVolumeClaims, "c", namespace);
    await plane.pass(5_000);
    return all;
  }

  it("is kept with its disk under Retain, and given to no other claim (controllers.md B5; contract.md C3)", async () => {
    const { plane, cloud, aClaim, claim, volume } = await released({});
    await aClaim("c");
    await plane.pass(600_000);
    expect((await volume("v"))?.status?.phase).toBe("Released");
    expect((await claim("c"))?.status?.phase).toBe("Pending");
    expect(cloud.calls).toEqual([]);
  });

  it("is deleted with its disk under Delete (controllers.md B5)", async () => {
    const { cloud, volume } = await released({ persistentVolumeReclaimPolicy: "Delete" });
    expect(isGone(await volume("v"))).toBe(true);
    expect(cloud.calls).toEqual(["delete vol-v"]);
  });

  it("is Failed under Recycle, with what to do, and keeps its disk (controllers.md B5)", async () => {
    const { plane, cloud, volume } = await released({ persistentVolumeReclaimPolicy: "Recycle" });
    expect(cloud.calls).toEqual([]);
    expect((await volume("v"))?.status?.phase).toBe("Failed");
    const [event] = await plane.eventsOn("PersistentVolume", "v");
    expect(event).toMatch(
      /^Warning VolumeFailedRecycle: No recycler plugin found for the volume!.*Retain.*Delete/,
    );
  });

  it("and that another provisioner has made is left to that (controllers.md B5)", async () => {
    const annotations = { "pv.kubernetes.io/provisioned-by": "d.example.com" };
    const spec = { persistentVolumeReclaimPolicy: "Delete" };
    const { plane, cloud, volume } = await released(spec, { annotations });
    await plane.pass(600_000);
    expect((await volume("v"))?.status?.phase).toBe("Released");
    expect(cloud.calls).toEqual([]);
  });

  it("and whose disk the cloud keeps says why, until the disk is deleted after all (controllers.md B5)", async () => {
    const { plane, cloud, start, aClaim, aVolume, volume } = world();
    let isRefused = true;
    cloud.before = (call) => {
      if (isRefused && call.startsWith("delete")) throw new CloudError("Unavailable", "no answer today");
    };
    await aVolume("v", { persistentVolumeReclaimPolicy: "Delete" });
    start();
    await aClaim("c");
    await plane.pass(2_000);
    await plane.merge(
      resources.persistentVolumeClaims,
      { name: "c", namespace },
      { metadata: { finalizers: null } },
    );
    await plane.delete(resources.persistentVolumeClaims, "c", namespace);
    await plane.pass(10_000);
    expect((await volume("v"))?.status?.phase).toBe("Failed");
    const [event] = await plane.eventsOn("PersistentVolume", "v");
    expect(event).toMatch(/^Warning VolumeFailedDelete: .*no answer today/);
    isRefused = false;
    expect(isGone(await volume("v"))).toBe(false);
    await plane.pass(180_000);
    expect(isGone(await volume("v"))).toBe(true);
  });
});

it("a claim whose volume is another claim's by now is lost, and says so (controllers.md B4)", async () => {
  const { plane, start, aClaim, aVolume, claim, shown } = world();
  await aVolume("v");
  start();
  await aClaim("c");
  await plane.pass(2_000);
  const claimRef = { name: "other", uid: "of-the-other" };
  await plane.merge(resources.persistentVolumes, { name: "v" }, { spec: { claimRef } });
  await plane.pass(5_000);
  expect((await claim("c"))?.status?.phase).toBe("Lost");
  expect((await shown("c")).some((event) => /^Warning Claim(Misbound|Lost): /.test(event))).toBe(true);
});
