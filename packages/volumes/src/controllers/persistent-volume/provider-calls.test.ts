/** Calls of the provider that end late, or not at all. */
import {
  interceptWrites,
  KubeApiError,
  type KubeClient,
  type PersistentVolume,
  resources,
} from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { afterEach, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import type { DiskCloud } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startPersistentVolumeController } from "./persistent-volume-controller.ts";

const { persistentVolumes, persistentVolumeClaims, storageClasses } = resources;

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

async function world() {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1"]);
  const start = (kube: KubeClient = plane.kube, of: DiskCloud = cloud) =>
    plane.running(
      startPersistentVolumeController(
        { ...plane.env, kube, plugins: [awsEbsPlugin({ cloud: of })] },
        { gates: featureGates(volumeGates) },
      ),
    );
  await plane.create(storageClasses, { metadata: { name: "ebs" }, provisioner: "kubernetes.io/aws-ebs" });
  return { plane, cloud, start };
}

const aClaim = {
  metadata: { name: "c", namespace: "default" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "5Gi" } },
    storageClassName: "ebs",
  },
};

const aVolumeOf = (volumeID: string): NonNullable<PersistentVolume["spec"]> => ({
  accessModes: ["ReadWriteOnce"],
  capacity: { storage: "5Gi" },
  awsElasticBlockStore: { volumeID },
  persistentVolumeReclaimPolicy: "Delete",
});

const refused = new KubeApiError({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  code: 403,
  reason: "Forbidden",
  message: "refused",
});

/** The cloud, whose first call of this method has no answer before its signal aborts. */
function stuckOnce(plane: ControlPlane, cloud: FakeCloud, method: "createDisk" | "deleteDisk"): DiskCloud {
  let isStuck = true;
  return new Proxy(cloud, {
    get(target, property) {
      const call = Reflect.get(target, property);
      if (typeof call !== "function") return call;
      return async (...args: readonly unknown[]) => {
        if (property === method && isStuck) {
          isStuck = false;
          await plane.clock.sleep(1e9, args[1] as AbortSignal);
        }
        return call.apply(target, args);
      };
    },
  });
}

it("a disk whose making has no answer is asked for again (controllers.md B1, B6)", async () => {
  const { plane, cloud, start } = await world();
  await plane.create(persistentVolumeClaims, aClaim);
  start(plane.kube, stuckOnce(plane, cloud, "createDisk"));
  await plane.pass(240_000);
  expect((await plane.get(persistentVolumeClaims, "c", "default"))?.status?.phase).toBe("Bound");
  expect(cloud.disks.size).toBe(1);
});

it("a disk whose deletion has no answer is deleted again (controllers.md B1, B5)", async () => {
  const { plane, cloud, start } = await world();
  const disk = await cloud.createDisk({ name: "d", zone: "z", sizeBytes: 5n, type: "gp2", tags: {} });
  const claimRef = { namespace: "default", name: "gone", uid: "gone" };
  await plane.create(persistentVolumes, {
    metadata: { name: "v" },
    spec: { ...aVolumeOf(disk.id), claimRef },
  });
  start(plane.kube, stuckOnce(plane, cloud, "deleteDisk"));
  await plane.pass(240_000);
  expect(cloud.disks.size).toBe(0);
});

it("a disk that could not be deleted at once stays when its volume is stored meanwhile (controllers.md B6; contract.md C3)", async () => {
  const { plane, cloud, start } = await world();
  const claim = await plane.create(persistentVolumeClaims, aClaim);
  const refusing = interceptWrites(plane.kube, async ({ verb, resource }, signal, send) => {
    if (verb === "create" && resource.plural === "persistentvolumes") throw refused;
    return send(signal);
  });
  cloud.before = (call) => {
    if (!call.startsWith("delete")) return;
    cloud.before = () => {};
    throw new Error("not now");
  };
  start(refusing);
  await plane.pass(41_000);
  expect(cloud.calls.some((call) => call.startsWith("delete"))).toBe(true);
  // By an external provisioner that has taken over.
  const [disk] = await cloud.listDisks();
  await plane.create(persistentVolumes, {
    metadata: { name: `pvc-${claim.metadata.uid}` },
    spec: {
      ...aVolumeOf(disk?.id ?? ""),
      claimRef: { namespace: "default", name: "c", uid: claim.metadata.uid },
      storageClassName: "ebs",
    },
  });
  await plane.pass(60_000);
  expect((await plane.get(persistentVolumeClaims, "c", "default"))?.spec?.volumeName).toBe(
    `pvc-${claim.metadata.uid}`,
  );
  expect(cloud.disks.size).toBe(1);
});
