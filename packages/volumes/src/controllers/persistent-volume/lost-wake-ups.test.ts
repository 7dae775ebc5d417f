/** Changes that no other event follows: each wakes what waits for it. */
import { interceptWrites, type KubeClient, type PersistentVolume, resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { afterEach, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startPersistentVolumeController } from "./persistent-volume-controller.ts";

const { persistentVolumes, persistentVolumeClaims } = resources;

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

function world() {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1"]);
  const start = (kube: KubeClient = plane.kube) =>
    plane.running(
      startPersistentVolumeController(
        { ...plane.env, kube, plugins: [awsEbsPlugin({ cloud })] },
        { gates: featureGates(volumeGates) },
      ),
    );
  return { plane, cloud, start };
}

const aClaim = (name: string, volumeName?: string) => ({
  metadata: { name, namespace: "default" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "5Gi" } },
    storageClassName: "manual",
    ...(volumeName === undefined ? {} : { volumeName }),
  },
});

const aVolume = (name: string, spec: Partial<PersistentVolume["spec"]> = {}): PersistentVolume => ({
  metadata: { name },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "5Gi" },
    awsElasticBlockStore: { volumeID: `vol-${name}` },
    persistentVolumeReclaimPolicy: "Retain",
    storageClassName: "manual",
    ...spec,
  },
});

const claimOf = (plane: ControlPlane, name: string) => plane.get(persistentVolumeClaims, name, "default");
const phaseOf = async (plane: ControlPlane, name: string) => (await claimOf(plane, name))?.status?.phase;

it("a claim that names its volume is bound when that volume appears (controllers.md B1, B3)", async () => {
  const { plane, start } = world();
  start();
  await plane.create(persistentVolumeClaims, aClaim("c", "v"));
  await plane.pass(5_000);
  expect(await phaseOf(plane, "c")).toBe("Pending");
  await plane.create(persistentVolumes, aVolume("v"));
  await plane.pass(5_000);
  expect(await phaseOf(plane, "c")).toBe("Bound");
});

it("a claim that names a volume of another claim is bound when that volume is free (controllers.md B1, B3)", async () => {
  const { plane, start } = world();
  start();
  const other = { name: "other", namespace: "default" };
  await plane.create(persistentVolumes, aVolume("v", { claimRef: other }));
  await plane.create(persistentVolumeClaims, aClaim("c", "v"));
  await plane.pass(5_000);
  expect(await phaseOf(plane, "c")).toBe("Pending");
  await plane.merge(persistentVolumes, { name: "v" }, { spec: { claimRef: null } });
  await plane.pass(5_000);
  expect(await phaseOf(plane, "c")).toBe("Bound");
});

it("a claim that has lost its volume is bound again when the volume is restored (controllers.md B1, B4)", async () => {
  const { plane, start } = world();
  start();
  await plane.create(persistentVolumes, aVolume("v"));
  await plane.create(persistentVolumeClaims, aClaim("c"));
  await plane.pass(5_000);
  const body = { metadata: { finalizers: null } };
  await plane.merge(persistentVolumes, { name: "v" }, body);
  await plane.delete(persistentVolumes, "v");
  await plane.pass(5_000);
  expect(await phaseOf(plane, "c")).toBe("Lost");
  await plane.create(persistentVolumes, aVolume("v"));
  await plane.pass(5_000);
  expect(await phaseOf(plane, "c")).toBe("Bound");
});

it("a volume that was made for a claim is released once the claim has taken another (controllers.md B1, B5)", async () => {
  const { plane, cloud, start } = world();
  const disk = await cloud.createDisk({ name: "d", zone: "z", sizeBytes: 5n, type: "gp2", tags: {} });
  // The claim is written a second after its volume: in between the other one appears.
  const slow = interceptWrites(plane.kube, async ({ resource }, signal, send) => {
    if (resource.plural === "persistentvolumeclaims") await plane.clock.sleep(1_000, signal);
    return send(signal);
  });
  await plane.create(persistentVolumes, aVolume("taken"));
  start(slow);
  await plane.pass(1_000);
  const { metadata } = await plane.create(persistentVolumeClaims, aClaim("c"));
  await plane.pass(500);
  const spare = aVolume("spare", {
    awsElasticBlockStore: { volumeID: disk.id },
    persistentVolumeReclaimPolicy: "Delete",
    claimRef: { name: "c", namespace: "default", uid: metadata.uid },
  });
  const annotations = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };
  await plane.create(persistentVolumes, { ...spare, metadata: { name: "spare", annotations } });
  await plane.pass(30_000);
  expect((await claimOf(plane, "c"))?.spec?.volumeName).toBe("taken");
  expect(cloud.disks.size).toBe(0);
});
