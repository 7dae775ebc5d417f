/** What a volume costs in requests, what users and operators see, and clusters of an older Kubernetes. */
import { type KubeClient, resources } from "@longshore/kube";
import { recordingMeter } from "@longshore/runtime";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { type ProvisionerOptions, startProvisioner } from "./provisioner.ts";

const intent = "longshore.dev/provisioning";
const reads = new Set(["list", "watch", "servedVersion"]);

/** The client, and the requests made through it, without those of the caches. */
function counted(kube: KubeClient): { readonly kube: KubeClient; readonly requests: string[] } {
  const requests: string[] = [];
  const client = new Proxy(kube, {
    get(target, name: keyof KubeClient) {
      const member = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const { kind } = args[0] as { readonly kind: string };
        if (!reads.has(name)) requests.push(`${name} ${kind}`);
        return member.apply(target, args);
      };
    },
  });
  return { kube: client, requests };
}

const withoutEvents = (requests: readonly string[]) =>
  requests.filter((request) => !request.endsWith(" Event"));

async function worldWith(options: { readonly emulatedVersion?: string } = {}): Promise<World> {
  const world = await sidecarWorld({}, { extend: new FakeProvisioning().extend, ...options });
  await addNode(world, "node-a", "us-east-1a");
  await world.kube.create(resources.storageClasses, aStorageClass(), { signal: world.signal });
  return world;
}

const claimsOf = async ({ kube, signal }: World) =>
  (await kube.list(resources.persistentVolumeClaims, { signal })).items;
const pvsOf = async ({ kube, signal }: World) =>
  (await kube.list(resources.persistentVolumes, { signal })).items;

const provisioned = (world: World, count: number) =>
  world.eventually(`${count} volumes`, async () => {
    const claims = await claimsOf(world);
    const isDone = claims.every(({ metadata }) => !(metadata.finalizers ?? []).includes(intent));
    return isDone && (await pvsOf(world)).length === count;
  });

async function createClaims({ kube, signal }: World, count: number) {
  for (let n = 0; n < count; n++) {
    await kube.create(resources.persistentVolumeClaims, aClaim({ name: `data-web-${n}` }), { signal });
  }
}

describe("requests", () => {
  it("are three writes and no read for a claim", async () => {
    const world = await worldWith();
    const { kube, requests } = counted(world.kube);
    const provisioner = startProvisioner(world.env(kube));
    await createClaims(world, 50);
    await provisioned(world, 50);
    await world.clock.advance(60_000);
    const counts = new Map<string, number>();
    for (const request of withoutEvents(requests)) counts.set(request, (counts.get(request) ?? 0) + 1);
    expect(Object.fromEntries(counts)).toEqual({
      "update PersistentVolumeClaim": 100,
      "create PersistentVolume": 50,
    });
    expect(world.cloud.calls).toHaveLength(50);
    await provisioner.stop();
  });

  it("are one write for a claim whose intent is not recorded (compat: reference)", async () => {
    const world = await worldWith();
    const { kube, requests } = counted(world.kube);
    const provisioner = startProvisioner(world.env(kube), { compat: "reference" });
    await createClaims(world, 1);
    await provisioned(world, 1);
    await world.clock.advance(60_000);
    expect(withoutEvents(requests)).toEqual(["create PersistentVolume"]);
    await provisioner.stop();
  });

  it("are a look, a deletion and the finalizer for a volume that is deleted", async () => {
    const world = await worldWith();
    const { kube, requests } = counted(world.kube);
    const provisioner = startProvisioner(world.env(kube));
    await createClaims(world, 1);
    await provisioned(world, 1);
    const [pv] = await pvsOf(world);
    requests.length = 0;
    const body = { status: { phase: "Released" } };
    const ref = { name: pv?.metadata.name ?? "" };
    const options = { signal: world.signal, subresource: "status" } as const;
    await world.kube.patch(resources.persistentVolumes, ref, { type: "merge", body }, options);
    await world.eventually("disk gone", async () => world.cloud.disks.size === 0);
    await world.clock.advance(60_000);
    expect(withoutEvents(requests)).toEqual([
      "get PersistentVolume",
      "delete PersistentVolume",
      "patch PersistentVolume",
    ]);
    await provisioner.stop();
  });

  it("are one patch for a bound volume that is not protected yet", async () => {
    const world = await worldWith();
    const { kube, signal } = world;
    const { kube: client, requests } = counted(kube);
    const provisioner = startProvisioner(world.env(client));
    const spec = {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" },
    };
    await kube.create(resources.persistentVolumes, { metadata: { name: "older" }, spec }, { signal });
    const body = { status: { phase: "Bound" } };
    const options = { signal, subresource: "status" } as const;
    await kube.patch(resources.persistentVolumes, { name: "older" }, { type: "merge", body }, options);
    const finalizers = async () =>
      (await kube.get(resources.persistentVolumes, { name: "older" }, { signal }))?.metadata.finalizers;
    const ours = "external-provisioner.volume.kubernetes.io/finalizer";
    await world.eventually("protected", async () => (await finalizers())?.includes(ours));
    await world.clock.advance(60_000);
    expect(requests).toEqual(["patch PersistentVolume"]);
    await provisioner.stop();
  });

  it("are none for claims and volumes of others, at a resync neither", async () => {
    const world = await worldWith();
    const { kube, signal } = world;
    const { kube: client, requests } = counted(kube);
    const provisioner = startProvisioner(world.env(client), { resyncMs: 60_000 });
    const annotations = { "volume.kubernetes.io/storage-provisioner": "other.example.com" };
    await kube.create(resources.persistentVolumeClaims, aClaim({ annotations }), { signal });
    const spec = {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      csi: { driver: "other.example.com", volumeHandle: "x" },
    };
    await kube.create(resources.persistentVolumes, { metadata: { name: "theirs" }, spec }, { signal });
    await world.clock.advance(300_000);
    expect(requests).toEqual([]);
    await provisioner.stop();
  });

  it("are none for what another driver's provisioner has begun or ended", async () => {
    const world = await worldWith();
    const { kube, signal } = world;
    const { kube: client, requests } = counted(kube);
    const provisioner = startProvisioner(world.env(client), { resyncMs: 60_000 });
    const annotations = { "volume.kubernetes.io/storage-provisioner": "other.example.com" };
    const claim = aClaim({ annotations });
    const { metadata } = await kube.create(
      resources.persistentVolumeClaims,
      { ...claim, metadata: { ...claim.metadata, finalizers: [intent] } },
      { signal },
    );
    await world.clock.advance(120_000);
    const pv = {
      metadata: {
        name: `pvc-${metadata.uid}`,
        annotations: { "volume.kubernetes.io/provisioner-deletion-secret-name": "" },
      },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        csi: { driver: "other.example.com", volumeHandle: "x" },
      },
    };
    await kube.create(resources.persistentVolumes, pv, { signal });
    await world.clock.advance(120_000);
    expect(requests).toEqual([]);
    await provisioner.stop();
  });

  it("are none while a claim waits for its node", async () => {
    const world = await worldWith();
    const late = aStorageClass({ metadata: { name: "late" }, volumeBindingMode: "WaitForFirstConsumer" });
    await world.kube.create(resources.storageClasses, late, { signal: world.signal });
    const { kube, requests } = counted(world.kube);
    const provisioner = startProvisioner(world.env(kube), { resyncMs: 60_000 });
    const claim = aClaim();
    await world.kube.create(
      resources.persistentVolumeClaims,
      { ...claim, spec: { ...claim.spec, storageClassName: "late" } },
      { signal: world.signal },
    );
    await world.clock.advance(300_000);
    expect(requests).toEqual([]);
    await provisioner.stop();
  });
});

describe("the events of a claim", () => {
  it.each([
    [{}, "external-provisioner "],
    [{ instance: "host_1" }, "_host_1"],
  ])("say which process has made them: %j", async (options, expected) => {
    const world = await worldWith();
    const provisioner = startProvisioner(world.env(), options);
    await createClaims(world, 1);
    await provisioned(world, 1);
    const seen = async () => (await world.kube.list(resources.events, { signal: world.signal })).items;
    await world.eventually("an event", async () => (await seen()).length > 0);
    for (const { source } of await seen()) expect(source?.component).toContain(expected);
    await provisioner.stop();
  });

  const eventsOf = async ({ kube, signal }: World) =>
    (await kube.list(resources.events, { signal })).items.map(({ type, reason, message, count }) => ({
      type,
      reason,
      message,
      count,
    }));

  it("are the reference's events and metrics", async () => {
    const world = await worldWith();
    const meter = recordingMeter();
    const provisioner = startProvisioner({ ...world.env(), meter });
    world.cloud.next("CreateVolume", { code: "INTERNAL" });
    await createClaims(world, 1);
    await provisioned(world, 1);
    const [pv] = await pvsOf(world);
    await world.eventually("all events", async () => (await eventsOf(world)).length === 3);
    const byReason = (await eventsOf(world)).sort((a, b) => ((a.reason ?? "") < (b.reason ?? "") ? -1 : 1));
    expect(byReason).toMatchObject([
      {
        type: "Normal",
        reason: "Provisioning",
        message: 'External provisioner is provisioning volume for claim "default/data-web-0"',
      },
      {
        type: "Warning",
        reason: "ProvisioningFailed",
        message: expect.stringMatching(
          /^failed to provision volume with StorageClass "gp2": the driver gave no volume: CreateVolume failed with INTERNAL: [^:]*$/,
        ),
      },
      {
        type: "Normal",
        reason: "ProvisioningSucceeded",
        message: `Successfully provisioned volume ${pv?.metadata.name}`,
      },
    ]);
    const labels = { class: "gp2", source: "" };
    const claims = "controller_persistentvolumeclaim_provision";
    expect(meter.value(`${claims}_failed_total`, labels)).toBe(1);
    expect(meter.value(`${claims}_total`, labels)).toBe(1);
    expect(meter.observations(`${claims}_duration_seconds`, labels)).toHaveLength(1);
    world.cloud.next("DeleteVolume", { code: "INTERNAL" });
    const body = { status: { phase: "Released" } };
    const options = { signal: world.signal, subresource: "status" } as const;
    const ref = { name: pv?.metadata.name ?? "" };
    await world.kube.patch(resources.persistentVolumes, ref, { type: "merge", body }, options);
    await world.eventually("disk gone", async () => world.cloud.disks.size === 0);
    await world.clock.settle();
    const volumes = "controller_persistentvolume_delete";
    expect(meter.value(`${volumes}_failed_total`, { class: "gp2" })).toBe(1);
    expect(meter.value(`${volumes}_total`, { class: "gp2" })).toBe(1);
    await world.eventually("the event of the failed deletion", async () =>
      (await eventsOf(world)).find(
        ({ type, reason }) => type === "Warning" && reason === "VolumeFailedDelete",
      ),
    );
    await provisioner.stop();
  });

  it("counts CSI calls for migrated objects apart", async () => {
    const world = await worldWith();
    const { kube, signal } = world;
    const migrated = aStorageClass({ metadata: { name: "in-tree" }, provisioner: "kubernetes.io/aws-ebs" });
    await kube.create(resources.storageClasses, migrated, { signal });
    const meter = recordingMeter();
    const provisioner = startProvisioner({ ...world.env(), meter });
    const claim = aClaim();
    await kube.create(
      resources.persistentVolumeClaims,
      { ...claim, spec: { ...claim.spec, storageClassName: "in-tree" } },
      { signal },
    );
    await provisioned(world, 1);
    const labels = {
      driver_name: "ebs.csi.aws.com",
      method_name: "/csi.v1.Controller/CreateVolume",
      grpc_status_code: "OK",
    };
    expect(meter.value("csi_sidecar_operations_seconds", { ...labels, migrated: "true" })).toBe(1);
    await provisioner.stop();
  });

  it("is slow to repeat what can never succeed, until the claim changes", async () => {
    const world = await worldWith();
    const { kube, signal } = world;
    const refusals = Array.from({ length: 3 }, () => ({ code: "INVALID_ARGUMENT" }) as const);
    world.cloud.next("CreateVolume", ...refusals);
    const provisioner = startProvisioner(world.env());
    await createClaims(world, 1);
    await world.clock.advance(290_000);
    expect(world.cloud.calls).toHaveLength(1);
    await world.clock.advance(20_000);
    expect(world.cloud.calls).toHaveLength(2);
    const body = { metadata: { labels: { changed: "yes" } } };
    const ref = { name: "data-web-0", namespace: "default" };
    await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
    await world.clock.advance(1000);
    expect(world.cloud.calls).toHaveLength(3);
    await provisioner.stop();
  });
});

describe("a cluster of Kubernetes 1.20", () => {
  it.each<[string, ProvisionerOptions]>([
    ["as it comes", {}],
    ["with everything switched on", { extraCreateMetadata: true, capacity: { namespace: "default" } }],
  ])("is served, %s", async (_, options) => {
    const world = await worldWith({ emulatedVersion: "1.20" });
    const provisioner = startProvisioner(world.env(), options);
    await createClaims(world, 1);
    await provisioned(world, 1);
    const [pv] = await pvsOf(world);
    expect(pv?.spec?.csi?.volumeHandle).toBe("vol-0001");
    await provisioner.stop();
  });
});
