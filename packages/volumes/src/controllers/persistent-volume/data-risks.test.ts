/** What could lose or double a disk, or bind one twice: stale caches, uncertain results, several workers. */
import {
  interceptWrites,
  isConflict,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { laggingClient } from "@longshore/testing/kube";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError, type DiskCloud } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { aBoundEbsVolume, ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startPersistentVolumeController } from "./persistent-volume-controller.ts";

const intent = "longshore.dev/provisioning";
const { persistentVolumes, persistentVolumeClaims, storageClasses } = resources;

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

function world() {
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
  return { plane, cloud, start };
}

const aClaim = (name: string, storageClassName: string): PersistentVolumeClaim => ({
  metadata: { name, namespace: "default" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } }, storageClassName },
});

const aVolume = (name: string): PersistentVolume => ({
  metadata: { name },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "5Gi" },
    awsElasticBlockStore: { volumeID: `vol-${name}` },
    persistentVolumeReclaimPolicy: "Retain",
    storageClassName: "manual",
  },
});

async function aClass(plane: ControlPlane): Promise<void> {
  await plane.create(storageClasses, { metadata: { name: "ebs" }, provisioner: "kubernetes.io/aws-ebs" });
}

const claimOf = (plane: ControlPlane, name: string) => plane.get(persistentVolumeClaims, name, "default");

/** Takes the finalizers of its protection off a deleted object, as their controllers would. */
async function unprotect(plane: ControlPlane, name: string): Promise<void> {
  const claim = await claimOf(plane, name);
  const finalizers = (claim?.metadata.finalizers ?? []).filter((finalizer) => finalizer === intent);
  if (claim === undefined) return;
  await plane.merge(persistentVolumeClaims, { name, namespace: "default" }, { metadata: { finalizers } });
}

describe("several workers", () => {
  it("bind each volume to one claim, and each claim to one volume (controllers.md B1, B4)", async () => {
    const { plane, start } = world();
    for (let i = 0; i < 25; i++) await plane.create(persistentVolumes, aVolume(`v${i}`));
    for (let i = 0; i < 40; i++) await plane.create(persistentVolumeClaims, aClaim(`c${i}`, "manual"));
    const conflicts: string[] = [];
    const writes: string[] = [];
    const watched = interceptWrites(
      plane.kube,
      async ({ verb, key, resource, subresource }, signal, send) => {
        try {
          await plane.clock.sleep(5, signal);
          const answer = await send(signal);
          if (resource.plural === "persistentvolumes" && verb === "update" && subresource === undefined)
            writes.push(key ?? "");
          return answer;
        } catch (error) {
          if (isConflict(error) && resource.plural === "persistentvolumes") conflicts.push(key ?? "");
          throw error;
        }
      },
    );
    start(laggingClient(plane.clock, watched, { lagMs: 50, isDead: false }));
    await plane.pass(120_000);
    const claims = await plane.list(persistentVolumeClaims);
    const volumes = await plane.list(persistentVolumes);
    const bound = claims.filter((claim) => claim.status?.phase === "Bound");
    expect(bound).toHaveLength(25);
    expect(new Set(bound.map((claim) => claim.spec?.volumeName)).size).toBe(25);
    for (const claim of bound) {
      const volume = volumes.find(({ metadata }) => metadata.name === claim.spec?.volumeName);
      expect(volume?.spec?.claimRef?.uid).toBe(claim.metadata.uid);
    }
    // A claimRef is written once for each volume, and workers do not run for the same one.
    expect(writes.sort()).toEqual([...new Set(writes)].sort());
    expect(conflicts.length).toBeLessThan(25);
  });

  it("lose a volume that another binds in between, and choose again with fresh state (controllers.md B1, B4)", async () => {
    const { plane, start } = world();
    await plane.create(persistentVolumes, aVolume("a"));
    await plane.create(persistentVolumes, aVolume("b"));
    const other = await plane.create(persistentVolumeClaims, aClaim("other", "elsewhere"));
    let isRaced = false;
    const raced = interceptWrites(plane.kube, async ({ verb, key, subresource }, signal, send) => {
      if (verb === "update" && key === "a" && subresource === undefined && !isRaced) {
        isRaced = true;
        const { name, namespace, uid } = other.metadata;
        const body = { spec: { claimRef: { kind: "PersistentVolumeClaim", name, namespace, uid } } };
        await plane.kube.patch(persistentVolumes, { name: "a" }, { type: "merge", body }, { signal });
      }
      return send(signal);
    });
    start(raced);
    await plane.pass(2_000);
    await plane.create(persistentVolumeClaims, aClaim("c", "manual"));
    await plane.pass(10_000);
    expect(isRaced).toBe(true);
    expect((await claimOf(plane, "c"))?.spec?.volumeName).toBe("b");
    expect((await plane.get(persistentVolumes, "a"))?.spec?.claimRef?.uid).toBe(other.metadata.uid);
  });

  it("do not take a second volume when the answer to the first binding was lost (controllers.md B4)", async () => {
    const { plane, start } = world();
    await plane.create(persistentVolumes, aVolume("a"));
    await plane.create(persistentVolumes, aVolume("b"));
    let lost = 0;
    const losing = interceptWrites(plane.kube, async ({ verb, resource, subresource }, signal, send) => {
      const answer = await send(signal);
      const isBinding =
        verb === "update" && resource.plural === "persistentvolumes" && subresource === undefined;
      if (isBinding && lost++ === 0) throw new KubeTransportError("the answer was lost");
      return answer;
    });
    start(laggingClient(plane.clock, losing, { lagMs: 3_000, isDead: false }));
    await plane.pass(5_000);
    await plane.create(persistentVolumeClaims, aClaim("c", "manual"));
    await plane.pass(60_000);
    const taken = (await plane.list(persistentVolumes)).filter(({ spec }) => spec?.claimRef !== undefined);
    expect(taken.map(({ metadata }) => metadata.name)).toEqual([
      (await claimOf(plane, "c"))?.spec?.volumeName,
    ]);
  });
});

describe("a disk is deleted on a live reading", () => {
  /** A released volume whose disk is still attached, and a cache that shows changes after a minute only. */
  async function released() {
    const { plane, cloud, start } = world();
    await aBoundEbsVolume(plane, "a", "vol-a", { pv: { persistentVolumeReclaimPolicy: "Delete" } });
    await cloud.attachDisk("vol-a", "i-n1");
    const link = { lagMs: 0, isDead: false };
    start(laggingClient(plane.clock, plane.kube, link));
    await plane.pass(2_000);
    await plane.delete(persistentVolumeClaims, "a", "default");
    await unprotect(plane, "a");
    await plane.pass(5_000);
    expect((await plane.get(persistentVolumes, "pv-a"))?.status?.phase).toBe("Released");
    link.lagMs = 60_000;
    const detachedFor = async (ms: number) => {
      await cloud.detachDisk("vol-a", "i-n1");
      await plane.pass(ms);
      return cloud.disks.has("vol-a");
    };
    return { plane, cloud, detachedFor };
  }

  const change = (plane: ControlPlane, body: object) =>
    plane.merge(persistentVolumes, { name: "pv-a" }, body);

  it("which shows it released: it goes (controllers.md B5)", async () => {
    const { detachedFor } = await released();
    expect(await detachedFor(50_000)).toBe(false);
  });

  it.each([
    ["a policy that was changed", { spec: { persistentVolumeReclaimPolicy: "Retain" } }],
    ["a claimRef that was taken off", { spec: { claimRef: null } }],
    ["a claimRef without UID, for the next claim", { spec: { claimRef: { uid: null, name: "next" } } }],
    ["an external provisioner", { metadata: { annotations: { "pv.kubernetes.io/migrated-to": "x.csi" } } }],
  ])("which shows %s: it stays (controllers.md B5)", async (_name, body) => {
    const { plane, detachedFor } = await released();
    await change(plane, body);
    expect(await detachedFor(50_000)).toBe(true);
  });

  it("which shows the volume being deleted: it stays, and so does the volume's object (controllers.md B5)", async () => {
    const { plane, detachedFor } = await released();
    await change(plane, { metadata: { finalizers: ["example.dev/keep"] } });
    await plane.delete(persistentVolumes, "pv-a");
    expect(await detachedFor(50_000)).toBe(true);
  });

  it("which shows another volume of that name: it stays (controllers.md B5)", async () => {
    const { plane, detachedFor } = await released();
    await change(plane, { metadata: { finalizers: null } });
    await plane.delete(persistentVolumes, "pv-a");
    await plane.create(persistentVolumes, { ...aVolume("pv-a"), status: { phase: "Available" } });
    expect(await detachedFor(50_000)).toBe(true);
  });

  it("and a volume that takes the name meanwhile keeps its object (controllers.md B5)", async () => {
    const { plane, cloud, detachedFor } = await released();
    cloud.before = async (call) => {
      if (call !== "delete vol-a") return;
      const { kube, signal } = plane;
      const ref = { name: "pv-a" };
      const body = { metadata: { finalizers: null } };
      await kube.patch(persistentVolumes, ref, { type: "merge", body }, { signal });
      await kube.delete(persistentVolumes, ref, { signal });
      await kube.create(persistentVolumes, aVolume("pv-a"), { signal });
    };
    expect(await detachedFor(50_000)).toBe(false);
    expect((await plane.get(persistentVolumes, "pv-a"))?.metadata.deletionTimestamp).toBeUndefined();
    expect(await plane.get(persistentVolumes, "pv-a")).toBeDefined();
  });

  it("which shows its claim: it stays (controllers.md B5)", async () => {
    const { plane, detachedFor } = await released();
    const claim = await plane.create(persistentVolumeClaims, aClaim("again", ""));
    await change(plane, { spec: { claimRef: { name: "again", uid: claim.metadata.uid } } });
    expect(await detachedFor(50_000)).toBe(true);
  });
});

it("a claim that is being deleted takes no volume with it (controllers.md B3)", async () => {
  const { plane, cloud, start } = world();
  const disk = await cloud.createDisk({ name: "d", zone: "z", sizeBytes: 5n, type: "gp2", tags: {} });
  const old = aClaim("c", "manual");
  await plane.create(persistentVolumeClaims, {
    ...old,
    metadata: { ...old.metadata, finalizers: ["example.dev/backup"] },
  });
  start();
  await plane.pass(1_000);
  await plane.delete(persistentVolumeClaims, "c", "default");
  await plane.pass(1_000);
  const volume = aVolume("restored");
  const restored = {
    ...volume.spec,
    awsElasticBlockStore: { volumeID: disk.id },
    persistentVolumeReclaimPolicy: "Delete",
    claimRef: { namespace: "default", name: "c" },
  };
  await plane.create(persistentVolumes, { ...volume, spec: restored });
  await plane.pass(1_000);
  await plane.merge(
    persistentVolumeClaims,
    { name: "c", namespace: "default" },
    { metadata: { finalizers: null } },
  );
  await plane.pass(1_000);
  await plane.create(persistentVolumeClaims, old);
  await plane.pass(30_000);
  expect(cloud.disks.size).toBe(1);
  expect((await claimOf(plane, "c"))?.spec?.volumeName).toBe("restored");
});

it("a claim that only a cache still shows takes no volume with it (controllers.md B3)", async () => {
  const { plane, cloud, start } = world();
  const disk = await cloud.createDisk({ name: "d", zone: "z", sizeBytes: 5n, type: "gp2", tags: {} });
  await plane.create(persistentVolumeClaims, aClaim("c", "manual"));
  const late = laggingClient(plane.clock, plane.kube, { lagMs: 5_000, isDead: false });
  start({
    ...late,
    watch: (resource, options) =>
      resource.plural === "persistentvolumeclaims"
        ? late.watch(resource, options)
        : plane.kube.watch(resource, options),
  });
  await plane.pass(10_000);
  await plane.delete(persistentVolumeClaims, "c", "default");
  await unprotect(plane, "c");
  const volume = aVolume("restored");
  const restored = {
    ...volume.spec,
    awsElasticBlockStore: { volumeID: disk.id },
    persistentVolumeReclaimPolicy: "Delete",
    claimRef: { namespace: "default", name: "c" },
  };
  await plane.create(persistentVolumes, { ...volume, spec: restored });
  await plane.pass(1_000);
  await plane.create(persistentVolumeClaims, aClaim("c", "manual"));
  await plane.pass(60_000);
  expect(cloud.disks.size).toBe(1);
  expect((await claimOf(plane, "c"))?.spec?.volumeName).toBe("restored");
});

it("a volume that only a cache has lost is not lost (controllers.md B4)", async () => {
  const { plane, start } = world();
  await aBoundEbsVolume(plane, "a", "vol-a");
  const blind = new Proxy(plane.kube, {
    get(target, property) {
      const method = Reflect.get(target, property).bind(target);
      if (property !== "list") return method;
      return async (resource: { plural: string }, ...rest: unknown[]) => {
        const page = await method(resource, ...rest);
        return resource.plural === "persistentvolumes" ? { ...page, items: [] } : page;
      };
    },
  });
  start(blind);
  await plane.pass(60_000);
  expect((await claimOf(plane, "a"))?.status?.phase).toBe("Bound");
});

describe("an uncertain result", () => {
  /** The cloud makes the disk, and its answer is lost as often as `answersLost` says. */
  function forgetful(cloud: FakeCloud, answersLost: number): DiskCloud {
    const made = new Proxy(cloud, {
      get(target, property) {
        const method = Reflect.get(target, property);
        if (property !== "createDisk") return typeof method === "function" ? method.bind(target) : method;
        return async (...args: Parameters<FakeCloud["createDisk"]>) => {
          const disk = await target.createDisk(...args);
          if (answersLost-- > 0) throw new CloudError("Unavailable", "no answer");
          return disk;
        };
      },
    });
    return made;
  }

  it("of making a disk: it is found again under its name (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    const claim = await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(plane.kube, forgetful(cloud, 3));
    await plane.pass(60_000);
    expect([...cloud.disks.values()].map(({ name }) => name)).toEqual([`pvc-${claim.metadata.uid}`]);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
  });

  it("of making a disk for a claim that is then deleted: it is found and deleted (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(plane.kube, forgetful(cloud, 2));
    await plane.pass(300);
    expect(cloud.disks.size).toBe(1);
    await plane.delete(persistentVolumeClaims, "c", "default");
    await unprotect(plane, "c");
    expect((await claimOf(plane, "c"))?.metadata.finalizers).toEqual([intent]);
    await plane.pass(60_000);
    expect(cloud.disks.size).toBe(0);
    expect(await claimOf(plane, "c")).toBeUndefined();
  });

  it("of storing a volume, stored while its claim is given up: its disk is the reclaim policy's (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    const claim = await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(plane.kube, forgetful(cloud, 1));
    await plane.pass(300);
    // The request of an earlier attempt, which reaches the API server only now.
    cloud.before = async (call) => {
      if (!call.startsWith("create")) return;
      const volume = aVolume(`pvc-${claim.metadata.uid}`);
      await plane.kube.create(persistentVolumes, volume, { signal: plane.signal }).catch(() => {});
    };
    await plane.delete(persistentVolumeClaims, "c", "default");
    await unprotect(plane, "c");
    await plane.pass(60_000);
    expect(cloud.disks.size).toBe(1);
    expect(await claimOf(plane, "c")).toBeUndefined();
  });

  /** Storing volumes fails `times` times, after the write or instead of it. */
  function storing(plane: ControlPlane, times: number, error: Error, isWritten: boolean): KubeClient {
    return interceptWrites(plane.kube, async ({ verb, resource }, signal, send) => {
      if (verb !== "create" || resource.plural !== "persistentvolumes" || times-- <= 0) return send(signal);
      if (isWritten) await send(signal).catch(() => {});
      throw error;
    });
  }
  const refused = new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: 403,
    reason: "Forbidden",
    message: "refused",
  });

  it("of storing a volume: its disk is not deleted, however often the answer is lost (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(storing(plane, 12, new KubeTransportError("the answer was lost"), true));
    await plane.pass(200_000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    expect(cloud.calls.filter((call) => call.startsWith("delete"))).toEqual([]);
    expect(cloud.disks.size).toBe(1);
  });

  // Found by the simulation. The attempt was made again after ten seconds, with the policy of the class: the disk was deleted.
  it("of storing a volume that is kept and given up before the next attempt: it is not stored again (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    const claim = await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(storing(plane, 1, new KubeTransportError("the answer was lost"), true));
    await plane.pass(3000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    const name = `pvc-${claim.metadata.uid}`;
    await plane.merge(persistentVolumes, { name }, { spec: { persistentVolumeReclaimPolicy: "Retain" } });
    await plane.delete(persistentVolumeClaims, "c", "default");
    await unprotect(plane, "c");
    await plane.pass(1000);
    expect(await claimOf(plane, "c")).toBeUndefined();
    await plane.delete(persistentVolumes, name);
    await plane.merge(persistentVolumes, { name }, { metadata: { finalizers: [] } }).catch(() => {});
    expect(await plane.list(persistentVolumes)).toEqual([]);
    await plane.pass(60_000);
    expect(await plane.list(persistentVolumes)).toEqual([]);
    expect(cloud.disks.size).toBe(1);
  });

  it("of storing a volume, nothing stored: its disk is kept for the next attempt (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(storing(plane, 7, new KubeTransportError("no connection"), false));
    await plane.pass(200_000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    expect(cloud.disks.size).toBe(1);
    expect(cloud.calls.filter((call) => call.startsWith("delete"))).toEqual([]);
  });

  it("and a refusal: the disk of a volume that cannot be stored is deleted, and made again (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    start(storing(plane, 5, refused, false));
    await plane.pass(40_300);
    expect(cloud.disks.size).toBe(0);
    const events = await plane.eventsOn("PersistentVolumeClaim", "c");
    expect(events.find((event) => event.includes("Deleting the volume."))).toContain("refused");
    await plane.pass(10_000);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    expect(cloud.disks.size).toBe(1);
  });

  it("and a disk that cannot be deleted either: that is reported, and it is found again (controllers.md B6; contract.md C3)", async () => {
    const { plane, cloud, start } = world();
    await aClass(plane);
    await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    cloud.before = (call) => {
      if (call.startsWith("delete")) throw new CloudError("Throttled", "slow down");
    };
    start(storing(plane, 5, refused, false));
    await plane.pass(100_000);
    const events = await plane.eventsOn("PersistentVolumeClaim", "c");
    expect(events.some((event) => event.includes("ProvisioningCleanupFailed"))).toBe(true);
    expect((await claimOf(plane, "c"))?.status?.phase).toBe("Bound");
    expect(cloud.disks.size).toBe(1);
  });
});

describe("a claim that is deleted while its volume is made", () => {
  async function inFlight() {
    const { plane, cloud, start } = world();
    await aClass(plane);
    await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
    let answer: (error?: Error) => void = () => {};
    cloud.before = (call) => {
      if (!call.startsWith("create")) return;
      cloud.before = () => {};
      return new Promise<void>((resolve, reject) => {
        answer = (error) => (error === undefined ? resolve() : reject(error));
      });
    };
    start();
    await plane.pass(1_000);
    await plane.delete(persistentVolumeClaims, "c", "default");
    await unprotect(plane, "c");
    await plane.pass(5_000);
    const claim: Stored<PersistentVolumeClaim> | undefined = await claimOf(plane, "c");
    expect(claim?.metadata.finalizers).toEqual([intent]);
    return { plane, cloud, answer };
  }

  it.each([
    ["is made", undefined],
    ["has no answer", new CloudError("Unavailable", "no answer")],
    ["fails", new CloudError("LimitExceeded", "quota")],
  ])(
    "leaves neither disk nor volume: the disk %s (controllers.md B6; contract.md C4)",
    async (_name, error) => {
      const { plane, cloud, answer } = await inFlight();
      answer(error);
      await plane.pass(60_000);
      expect(await claimOf(plane, "c")).toBeUndefined();
      expect(cloud.disks.size).toBe(0);
      const left = (await plane.list(persistentVolumes)).filter(
        (pv) => pv.metadata.deletionTimestamp === undefined,
      );
      expect(left).toEqual([]);
    },
  );
});

it("the back-off of a failed operation holds against every event (controllers.md B1)", async () => {
  const { plane, cloud, start } = world();
  await aClass(plane);
  await plane.create(persistentVolumeClaims, aClaim("c", "ebs"));
  cloud.before = (call) => {
    if (call.startsWith("create")) throw new CloudError("Throttled", `request ${cloud.calls.length}`);
  };
  start();
  for (let i = 0; i < 100; i++) {
    await plane.pass(100);
    const body = { metadata: { labels: { touched: String(i) } } };
    await plane.merge(persistentVolumeClaims, { name: "c", namespace: "default" }, body);
  }
  // At 0, 0.5, 1.5, 3.5 and 7.5 s.
  expect(cloud.calls.filter((call) => call.startsWith("create"))).toHaveLength(5);
});
