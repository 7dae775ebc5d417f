/** The persistent-volume controller against the embedded API server, under the virtual clock. */
import {
  interceptWrites,
  isConflict,
  KubeApiError,
  type KubeClient,
  type PersistentVolume,
  resources,
  type StorageClass,
} from "@longshore/kube";
import { type FeatureGates, featureGates } from "@longshore/runtime";
import { laggingClient } from "@longshore/testing/kube";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { aBoundEbsVolume, aNode, ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startPersistentVolumeController } from "./persistent-volume-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const on: FeatureGates = featureGates(volumeGates, { CSIMigrationAWS: true });
const off: FeatureGates = featureGates(volumeGates);
const intent = "longshore.dev/provisioning";
const provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

function world() {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1", "n2"]);
  /** Without a call to `stop`, as a crash leaves it. */
  const launch = (gates: FeatureGates = off, kube: KubeClient = plane.kube) =>
    startPersistentVolumeController(
      { ...plane.env, kube, plugins: [awsEbsPlugin({ cloud }), csiPlugin()] },
      { gates },
    );
  const start = (gates?: FeatureGates, kube?: KubeClient) => plane.running(launch(gates, kube));
  return { plane, cloud, start, launch };
}

function aClass(name: string, fields: Partial<StorageClass> = {}): StorageClass {
  return { metadata: { name }, provisioner: ebs, reclaimPolicy: "Delete", ...fields };
}

function aClaim(name: string, storageClassName: string, annotations?: Record<string, string>) {
  return {
    metadata: { name, namespace: "default", ...(annotations === undefined ? {} : { annotations }) },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "5Gi" } },
      storageClassName,
    },
  };
}

function aVolume(
  name: string,
  storage: string,
  spec: Partial<PersistentVolume["spec"]> = {},
): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage },
      awsElasticBlockStore: { volumeID: `vol-${name}` },
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: "manual",
      ...spec,
    },
  };
}

const claimOf = (plane: ControlPlane, name: string) =>
  plane.get(resources.persistentVolumeClaims, name, "default");

describe("binding", () => {
  it("takes the smallest volume that is large enough (controllers.md B3, B4)", async () => {
    const { plane, start } = world();
    for (const [name, size] of [
      ["small", "1Gi"],
      ["large", "20Gi"],
      ["right", "6Gi"],
    ] as const) {
      await plane.create(resources.persistentVolumes, aVolume(name, size));
    }
    start();
    await plane.pass(1_000);
    await plane.create(resources.persistentVolumeClaims, aClaim("c", "manual"));
    await plane.pass(2_000);
    const claim = await claimOf(plane, "c");
    expect(claim?.spec?.volumeName).toBe("right");
    expect(claim?.status).toMatchObject({ phase: "Bound", capacity: { storage: "6Gi" } });
    expect(claim?.metadata.annotations).toEqual({
      "pv.kubernetes.io/bind-completed": "yes",
      "pv.kubernetes.io/bound-by-controller": "yes",
    });
    const volume = await plane.get(resources.persistentVolumes, "right");
    expect(volume?.status?.phase).toBe("Bound");
    expect(volume?.spec?.claimRef?.uid).toBe(claim?.metadata.uid);
    expect((await plane.get(resources.persistentVolumes, "large"))?.status?.phase).toBe("Available");
  });

  it("takes over the class of attributes once, and takes no volume of another (controllers.md B3, B4)", async () => {
    const { plane, start } = world();
    const csi = (name: string, volumeAttributesClassName?: string): PersistentVolume => ({
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "6Gi" },
        csi: { driver, volumeHandle: `vol-${name}` },
        storageClassName: "manual",
        ...(volumeAttributesClassName === undefined ? {} : { volumeAttributesClassName }),
      },
    });
    const asking = (name: string, attributesClass: string) => {
      const claim = aClaim(name, "manual");
      return { ...claim, spec: { ...claim.spec, volumeAttributesClassName: attributesClass } };
    };
    await plane.create(resources.persistentVolumes, csi("plain"));
    await plane.create(resources.persistentVolumes, csi("golden", "gold"));
    start();
    await plane.create(resources.persistentVolumeClaims, asking("c", "gold"));
    await plane.create(resources.persistentVolumeClaims, asking("d", "iron"));
    await plane.pass(2_000);
    expect(await claimOf(plane, "c")).toMatchObject({
      spec: { volumeName: "golden" },
      status: { phase: "Bound", currentVolumeAttributesClassName: "gold" },
    });
    expect((await claimOf(plane, "d"))?.status?.phase).toBe("Pending");
    // What the resizer has done since is not taken back.
    const status = { currentVolumeAttributesClassName: "iron" };
    const ref = { namespace: "default", name: "c" };
    await plane.merge(resources.persistentVolumeClaims, ref, { status }, "status");
    await plane.pass(2_000);
    expect((await claimOf(plane, "c"))?.status).toMatchObject({ phase: "Bound", ...status });
    await plane.merge(resources.persistentVolumes, { name: "golden" }, { metadata: { finalizers: null } });
    await plane.kube.delete(resources.persistentVolumes, { name: "golden" }, { signal: plane.signal });
    await plane.pass(2_000);
    const lost = (await claimOf(plane, "c"))?.status;
    expect(lost?.phase).toBe("Lost");
    expect(lost?.currentVolumeAttributesClassName).toBeUndefined();
  });

  it("never acts on a cache that is older than what it wrote (controllers.md B1)", async () => {
    const { plane, start } = world();
    const conflicts: string[] = [];
    const watched = interceptWrites(plane.kube, async ({ verb, key }, signal, send) => {
      try {
        return await send(signal);
      } catch (error) {
        if (isConflict(error)) conflicts.push(`${verb} ${key}`);
        throw error;
      }
    });
    start(off, laggingClient(plane.env.clock, watched, { lagMs: 1000, isDead: false }));
    await plane.create(resources.storageClasses, aClass("manual"));
    await plane.pass(2_000);
    await plane.create(resources.persistentVolumes, aVolume("v", "5Gi"));
    await plane.pass(5_000);
    await plane.create(resources.persistentVolumeClaims, aClaim("c", "manual"));
    await plane.pass(500);
    // Sent half a second after the controller has bound, and half a second before its cache shows that.
    const body = { metadata: { labels: { touched: "yes" } } };
    const ref = { name: "manual" };
    await plane.kube.patch(resources.storageClasses, ref, { type: "merge", body }, { signal: plane.signal });
    await plane.pass(10_000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    expect(conflicts).toEqual([]);
  });

  it("binds a waiting claim when a volume for it appears (controllers.md B1, B3)", async () => {
    const { plane, start } = world();
    await plane.create(resources.persistentVolumeClaims, aClaim("c", ""));
    start();
    await plane.pass(2_000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Pending");
    await plane.create(resources.persistentVolumes, aVolume("v", "5Gi", { storageClassName: "" }));
    await plane.pass(2_000);
    expect((await claimOf(plane, "c"))?.spec?.volumeName).toBe("v");
  });

  it("prefers the volume that names the claim, and leaves others to the scheduler when binding is delayed (controllers.md B3)", async () => {
    const { plane, start } = world();
    await plane.create(
      resources.storageClasses,
      aClass("wait", { volumeBindingMode: "WaitForFirstConsumer" }),
    );
    await plane.create(resources.persistentVolumes, aVolume("free", "5Gi", { storageClassName: "wait" }));
    await plane.create(resources.persistentVolumeClaims, aClaim("c", "wait"));
    start();
    await plane.pass(2_000);
    expect((await claimOf(plane, "c"))?.spec?.volumeName).toBeUndefined();
    const claimRef = { kind: "PersistentVolumeClaim", name: "c", namespace: "default" };
    await plane.create(
      resources.persistentVolumes,
      aVolume("mine", "9Gi", { storageClassName: "wait", claimRef }),
    );
    await plane.pass(2_000);
    expect((await claimOf(plane, "c"))?.spec?.volumeName).toBe("mine");
  });

  it("calls a claim lost only when its volume is gone from the API server as well (controllers.md B4)", async () => {
    const { plane, start } = world();
    await aBoundEbsVolume(plane, "a", "vol-a");
    start();
    await plane.pass(2_000);
    await plane.delete(resources.persistentVolumes, "pv-a");
    await plane
      .merge(resources.persistentVolumes, { name: "pv-a" }, { metadata: { finalizers: null } })
      .catch(() => {});
    await plane.pass(2_000);
    expect((await claimOf(plane, "a"))?.status?.phase).toBe("Lost");
    expect((await plane.eventsOn("PersistentVolumeClaim", "a"))[0]).toContain("Warning ClaimLost");
  });
});

describe("provisioning in-tree", () => {
  it("makes the disk, stores the volume, binds, and leaves no intent behind (controllers.md B6)", async () => {
    const { plane, cloud, start } = world();
    await plane.create(resources.storageClasses, aClass("ebs"));
    const claim = await plane.create(resources.persistentVolumeClaims, aClaim("c", "ebs"));
    const intents: boolean[] = [];
    cloud.before = async (call) => {
      if (!call.startsWith("create")) return;
      const ref = { namespace: "default", name: "c" };
      const seen = await plane.kube.get(resources.persistentVolumeClaims, ref, { signal: plane.signal });
      intents.push(seen?.metadata.finalizers?.includes(intent) ?? false);
    };
    start();
    await plane.pass(5_000);
    expect(intents).toEqual([true]);
    const name = `pvc-${claim.metadata.uid}`;
    const volume = await plane.get(resources.persistentVolumes, name);
    const zone = [...cloud.disks.values()][0]?.zone ?? "";
    expect(volume?.metadata.labels).toEqual({
      "topology.kubernetes.io/region": "us-east-1",
      "topology.kubernetes.io/zone": zone,
    });
    expect(volume?.spec?.awsElasticBlockStore?.volumeID).toBe(`aws://${zone}/vol-1`);
    expect(volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions).toEqual([
      { key: "topology.kubernetes.io/zone", operator: "In", values: [zone] },
      { key: "topology.kubernetes.io/region", operator: "In", values: ["us-east-1"] },
    ]);
    expect(volume?.metadata.annotations).toMatchObject({
      "pv.kubernetes.io/bound-by-controller": "yes",
      "pv.kubernetes.io/provisioned-by": ebs,
    });
    const bound = await claimOf(plane, "c");
    expect(bound?.status?.phase).toBe("Bound");
    expect(bound?.metadata.finalizers ?? []).not.toContain(intent);
    expect(bound?.metadata.annotations?.["volume.beta.kubernetes.io/storage-provisioner"]).toBe(ebs);
  });

  it.each<[string, Partial<StorageClass>, object]>([
    ["an access mode", {}, { accessModes: ["ReadWriteMany"] }],
    ["a selector", {}, { selector: { matchLabels: { disk: "mine" } } }],
    ["a parameter", { parameters: { longshoreUnknown: "1" } }, {}],
    ["a data source", {}, { dataSource: { apiGroup: "g", kind: "VolumeSnapshot", name: "s" } }],
    [
      "its zones",
      {
        parameters: { zone: "us-east-1a" },
        allowedTopologies: [
          { matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["us-east-1b"] }] },
        ],
      },
      {},
    ],
  ])(
    "a claim refused for %s goes when it is deleted, and nothing is changed at the provider (controllers.md B6)",
    async (_what, ofClass, spec) => {
      const { plane, cloud, start } = world();
      const calls: string[] = [];
      cloud.before = (call) => void calls.push(call);
      await plane.create(resources.storageClasses, aClass("ebs", ofClass));
      const plain = aClaim("c", "ebs");
      await plane.create(resources.persistentVolumeClaims, { ...plain, spec: { ...plain.spec, ...spec } });
      start();
      await plane.pass(5_000);
      expect((await plane.eventsOn("PersistentVolumeClaim", "c"))[0]).toContain("Warning ProvisioningFailed");
      await plane.delete(resources.persistentVolumeClaims, "c", "default");
      const finalizers = (await claimOf(plane, "c"))?.metadata.finalizers ?? [];
      // What pvc-protection does, which is not run here.
      const rest = finalizers.filter((finalizer) => finalizer !== "kubernetes.io/pvc-protection");
      const ref = { name: "c", namespace: "default" };
      await plane.merge(resources.persistentVolumeClaims, ref, { metadata: { finalizers: rest } });
      await plane.pass(60_000);
      expect(await claimOf(plane, "c")).toBeUndefined();
      expect(calls.filter((call) => call !== "listInstances")).toEqual([]);
    },
  );

  it("goes to the zone of the selected node, and lets the scheduler choose again after a final failure (controllers.md B6)", async () => {
    const { plane, cloud, start } = world();
    await plane.create(
      resources.storageClasses,
      aClass("wait", { volumeBindingMode: "WaitForFirstConsumer" }),
    );
    const node = aNode("n2");
    await plane.create(resources.nodes, {
      metadata: { ...node.metadata, labels: { "topology.kubernetes.io/zone": "us-east-1b" } },
    });
    const selected = { "volume.kubernetes.io/selected-node": "n2" };
    await plane.create(resources.persistentVolumeClaims, aClaim("c", "wait", selected));
    let failWith: CloudError | undefined = new CloudError("Unavailable", "no answer");
    cloud.before = () => {
      if (failWith !== undefined) throw failWith;
    };
    start();
    await plane.pass(5_000);
    // It is not known whether the disk was made: the same place is asked again.
    expect((await claimOf(plane, "c"))?.metadata.annotations).toMatchObject(selected);
    failWith = new CloudError("LimitExceeded", "quota");
    await plane.pass(130_000);
    expect((await claimOf(plane, "c"))?.metadata.annotations).not.toHaveProperty(
      "volume.kubernetes.io/selected-node",
    );
    failWith = undefined;
    await plane.merge(
      resources.persistentVolumeClaims,
      { name: "c", namespace: "default" },
      { metadata: { annotations: selected } },
    );
    await plane.pass(130_000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    expect([...cloud.disks.values()].map(({ zone }) => zone)).toEqual(["us-east-1b"]);
  });

  it("loses no disk and makes no second one, wherever it crashes (controllers.md B6; contract.md C3)", async () => {
    const points = new Set<string | undefined>();
    for (let run = 2; run < 80; run++) {
      const crashAt = run >> 1;
      const abandoned = run % 2 === 1;
      const { plane, cloud, start, launch } = world();
      await plane.create(resources.storageClasses, aClass("ebs"));
      const claim = await plane.create(resources.persistentVolumeClaims, aClaim("c", "ebs"));
      const crash = crashingAt(plane.kube, crashAt);
      cloud.before = (call) => crash.step(`cloud ${call.split(" ")[0]}`);
      launch(off, crash.kube);
      await plane.pass(10_000);
      if (!crash.happened()) break;
      cloud.before = () => {};
      const crashed = crash.trace.at(-1);
      points.add(crashed);
      if (abandoned) await plane.delete(resources.persistentVolumeClaims, "c", "default");
      start();
      await plane.pass(200_000);
      const disks = [...cloud.disks.values()];
      const stored = await plane.list(resources.persistentVolumes);
      if (abandoned) {
        // The claim was given up: nothing may be left (pvc-protection is not run here).
        await plane
          .merge(
            resources.persistentVolumeClaims,
            { name: "c", namespace: "default" },
            { metadata: { finalizers: null } },
          )
          .catch(() => {});
        await plane.pass(200_000);
        expect({ crashed, disks: cloud.disks.size }).toEqual({ crashed, disks: 0 });
      } else {
        expect({ crashed, disks: disks.length, stored: stored.length }).toEqual({
          crashed,
          disks: 1,
          stored: 1,
        });
        expect(disks[0]?.name).toBe(`pvc-${claim.metadata.uid}`);
        expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
        expect((await claimOf(plane, "c"))?.metadata.finalizers ?? []).not.toContain(intent);
      }
      await plane.stop();
    }
    expect([...points]).toEqual(expect.arrayContaining(["cloud create", "create persistentvolumes"]));
  });
});

describe("the default class", () => {
  it("is given to a waiting claim when it comes, and the newest of several (controllers.md B3)", async () => {
    const { plane, start } = world();
    start();
    const { storageClassName: _, ...spec } = aClaim("a", "").spec;
    await plane.create(resources.persistentVolumeClaims, { ...aClaim("a", ""), spec });
    await plane.create(resources.persistentVolumeClaims, aClaim("none", ""));
    await plane.pass(1_000);
    const classOf = async (name: string) =>
      (await plane.get(resources.persistentVolumeClaims, name, "default"))?.spec?.storageClassName;
    expect(await classOf("a")).toBeUndefined();
    const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
    await plane.create(resources.storageClasses, aClass("old", { metadata: { name: "old", annotations } }));
    await plane.pass(60_000);
    expect(await classOf("a")).toBe("old");
    expect(await classOf("none")).toBe("");
    const claim = await plane.get(resources.persistentVolumeClaims, "a", "default");
    expect(claim?.status?.phase).toBe("Bound");
  });

  it("is not given where the API server lets no class be given later (controllers.md B3)", async () => {
    const { plane, start } = world();
    const refusals: string[] = [];
    start(
      off,
      interceptWrites(plane.kube, async ({ verb, key, subresource }, signal, send) => {
        if (verb !== "update" || key !== "default/a" || subresource !== undefined) return send(signal);
        refusals.push(key);
        throw new KubeApiError({
          kind: "Status",
          apiVersion: "v1",
          status: "Failure",
          code: 422,
          reason: "Invalid",
          message: "spec is immutable",
        });
      }),
    );
    const { storageClassName: _, ...spec } = aClaim("a", "").spec;
    await plane.create(resources.persistentVolumeClaims, { ...aClaim("a", ""), spec });
    const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
    await plane.create(resources.storageClasses, aClass("c", { metadata: { name: "c", annotations } }));
    await plane.pass(60_000);
    const claim = await plane.get(resources.persistentVolumeClaims, "a", "default");
    expect([claim?.status?.phase, claim?.spec?.storageClassName]).toEqual(["Pending", undefined]);
    expect(refusals.length).toBeGreaterThan(0);
    expect(refusals.length).toBeLessThan(5);
  });
});

describe("migration annotations", () => {
  it("come and go with the gate, and never touch a static volume (controllers.md B2)", async () => {
    const { plane, start } = world();
    const provisioned = { "pv.kubernetes.io/provisioned-by": ebs };
    await aBoundEbsVolume(plane, "a", "vol-a", { annotations: provisioned });
    await aBoundEbsVolume(plane, "s", "vol-s");
    const first = start(on);
    await plane.pass(2_000);
    const migrated = async (name: string) =>
      (await plane.get(resources.persistentVolumes, name))?.metadata.annotations?.[
        "pv.kubernetes.io/migrated-to"
      ];
    expect([await migrated("pv-a"), await migrated("pv-s")]).toEqual([driver, undefined]);
    await plane.clock.run(first.stop());
    start(off);
    await plane.pass(2_000);
    expect([await migrated("pv-a"), await migrated("pv-s")]).toEqual([undefined, undefined]);
  });

  it("keep the controller from deleting a volume that is the external provisioner's (controllers.md B2, B5)", async () => {
    const { plane, cloud, start } = world();
    await cloud.attachDisk("vol-a", "i-n1");
    await cloud.detachDisk("vol-a", "i-n1");
    await aBoundEbsVolume(plane, "a", "vol-a", {
      annotations: { "pv.kubernetes.io/provisioned-by": ebs },
      pv: { persistentVolumeReclaimPolicy: "Delete" },
    });
    const first = start(on);
    await plane.pass(2_000);
    await plane.delete(resources.persistentVolumeClaims, "a", "default");
    await release(plane, "a");
    await plane.pass(200_000);
    expect((await plane.get(resources.persistentVolumes, "pv-a"))?.status?.phase).toBe("Released");
    expect(cloud.disks.has("vol-a")).toBe(true);
    await plane.clock.run(first.stop());
    start(off);
    await plane.pass(200_000);
    expect(cloud.disks.has("vol-a")).toBe(false);
  });
});

describe("reclaim", () => {
  it("asks the API server whether the claim is gone before a volume is released (controllers.md B5)", async () => {
    const { plane, cloud, start } = world();
    const { pvc } = await aBoundEbsVolume(plane, "a", "vol-a", {
      pv: { persistentVolumeReclaimPolicy: "Delete" },
    });
    await cloud.attachDisk("vol-a", "i-n1");
    // A cache that does not see the claim.
    const blind = new Proxy(plane.kube, {
      get(target, property) {
        const method = Reflect.get(target, property).bind(target);
        if (property !== "list") return method;
        return async (resource: { plural: string }, ...rest: unknown[]) => {
          const page = await method(resource, ...rest);
          return resource.plural === "persistentvolumeclaims" ? { ...page, items: [] } : page;
        };
      },
    });
    start(off, blind);
    await plane.pass(60_000);
    expect((await plane.get(resources.persistentVolumes, "pv-a"))?.status?.phase).toBe("Bound");
    expect(pvc.metadata.name).toBe("a");
  });

  it("a volume that is deleted before its claim stays until its disk is deleted (controllers.md B5)", async () => {
    const { plane, cloud, start } = world();
    await plane.create(resources.storageClasses, aClass("ebs"));
    const { metadata } = await plane.create(resources.persistentVolumeClaims, aClaim("c", "ebs"));
    start();
    await plane.pass(10_000);
    const name = `pvc-${metadata.uid}`;
    const made = await plane.get(resources.persistentVolumes, name);
    expect(made?.metadata.finalizers).toContain("kubernetes.io/pv-controller");
    // pv-protection and pvc-protection are not run here.
    await plane.delete(resources.persistentVolumes, name);
    const only = { metadata: { finalizers: ["kubernetes.io/pv-controller"] } };
    await plane.merge(resources.persistentVolumes, { name }, only);
    await plane.pass(60_000);
    expect((await plane.get(resources.persistentVolumes, name))?.status?.phase).toBe("Bound");
    expect(cloud.disks.size).toBe(1);

    const claim = { name: "c", namespace: "default" };
    await plane.delete(resources.persistentVolumeClaims, "c", "default");
    await plane.merge(resources.persistentVolumeClaims, claim, { metadata: { finalizers: null } });
    await plane.pass(60_000);
    expect(cloud.disks.size).toBe(0);
    expect(await plane.get(resources.persistentVolumes, name)).toBeUndefined();
  });

  it("the finalizer follows the reclaim policy, and goes with a crossing (controllers.md B5)", async () => {
    const { plane, start } = world();
    await plane.create(resources.storageClasses, aClass("ebs"));
    const { metadata } = await plane.create(resources.persistentVolumeClaims, aClaim("c", "ebs"));
    const first = start();
    await plane.pass(10_000);
    const name = `pvc-${metadata.uid}`;
    const isProtected = async () =>
      (await plane.get(resources.persistentVolumes, name))?.metadata.finalizers?.includes(
        "kubernetes.io/pv-controller",
      ) === true;
    const policy = async (persistentVolumeReclaimPolicy: string) => {
      await plane.merge(resources.persistentVolumes, { name }, { spec: { persistentVolumeReclaimPolicy } });
      await plane.pass(1_000);
    };
    expect(await isProtected()).toBe(true);
    await policy("Retain");
    expect(await isProtected()).toBe(false);
    await policy("Delete");
    expect(await isProtected()).toBe(true);
    await plane.clock.run(first.stop());
    start(on);
    await plane.pass(1_000);
    expect(await isProtected()).toBe(false);
  });

  it.each([
    ["an external provisioner's finalizer goes", false, ["kubernetes.io/pv-controller"]],
    ["on a volume that is being deleted it stands for the other", true, [provisionerFinalizer]],
  ])(
    "back in-tree %s, and the volume with its disk (controllers.md B5, Part D)",
    async (_name, isDeleted, kept) => {
      const { plane, cloud, start } = world();
      const name = "pv-a";
      await cloud.attachDisk("vol-a", "i-n1");
      await cloud.detachDisk("vol-a", "i-n1");
      await aBoundEbsVolume(plane, "a", "vol-a", {
        annotations: { "pv.kubernetes.io/provisioned-by": ebs },
        pv: { persistentVolumeReclaimPolicy: "Delete" },
      });
      const finalizers = [provisionerFinalizer];
      await plane.merge(resources.persistentVolumes, { name }, { metadata: { finalizers } });
      const finalizersNow = async () =>
        (await plane.get(resources.persistentVolumes, name))?.metadata.finalizers;
      const first = start(on);
      await plane.pass(2_000);
      expect(await finalizersNow()).toEqual(finalizers);
      if (isDeleted) await plane.delete(resources.persistentVolumes, name);
      await plane.clock.run(first.stop());
      start(off);
      await plane.pass(2_000);
      expect(await finalizersNow()).toEqual(kept);
      await plane.delete(resources.persistentVolumeClaims, "a", "default");
      await release(plane, "a");
      await plane.pass(60_000);
      expect(cloud.disks.has("vol-a")).toBe(false);
      expect(await plane.get(resources.persistentVolumes, name)).toBeUndefined();
    },
  );

  it("waits for a disk that is still attached, and then deletes disk and volume (controllers.md B5)", async () => {
    const { plane, cloud, start } = world();
    await aBoundEbsVolume(plane, "a", "vol-a", { pv: { persistentVolumeReclaimPolicy: "Delete" } });
    await cloud.attachDisk("vol-a", "i-n1");
    start();
    await plane.pass(2_000);
    await plane.delete(resources.persistentVolumeClaims, "a", "default");
    await release(plane, "a");
    await plane.pass(5_000);
    expect((await plane.get(resources.persistentVolumes, "pv-a"))?.status?.phase).toBe("Released");
    expect((await plane.eventsOn("PersistentVolume", "pv-a"))[0]).toContain("Normal VolumeDelete");
    await cloud.detachDisk("vol-a", "i-n1");
    await plane.pass(130_000);
    expect(cloud.disks.has("vol-a")).toBe(false);
    expect((await plane.get(resources.persistentVolumes, "pv-a"))?.metadata.deletionTimestamp).toBeDefined();
  });
});

/** Takes the protection finalizer off a deleted claim, as its controller would. */
async function release(plane: ControlPlane, name: string): Promise<void> {
  await plane
    .merge(
      resources.persistentVolumeClaims,
      { name, namespace: "default" },
      { metadata: { finalizers: null } },
    )
    .catch(() => {});
}

/** A client that from its n-th writing or reading call on answers nothing any more, to anybody. */
function crashingAt(kube: KubeClient, at: number) {
  const trace: string[] = [];
  let happened = false;
  const step = (what: string): Promise<void> => {
    if (!happened) trace.push(what);
    if (trace.length >= at) happened = true;
    return happened ? new Promise(() => {}) : Promise.resolve();
  };
  const crashing = new Proxy(kube, {
    get(target, property) {
      const method = Reflect.get(target, property).bind(target);
      if (property === "watch" || property === "list") return method;
      return async (resource: { plural: string }, ...rest: unknown[]) => {
        if (resource.plural !== "events") await step(`${String(property)} ${resource.plural}`);
        return method(resource, ...rest);
      };
    },
  });
  return { kube: crashing, trace, step, happened: () => happened };
}
