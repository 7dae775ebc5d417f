import {
  ControllerGetCapabilitiesResponseSchema,
  type ControllerPublishVolumeRequest,
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  create,
  type ListVolumesRequest,
  ListVolumesResponseSchema,
  lostReply,
  VolumeCapability_AccessMode_Mode as Mode,
} from "@longshore/csi";
import {
  interceptWrites,
  isNotFound,
  KubeApiError,
  type KubeClient,
  type PersistentVolumeSpec,
  resources,
} from "@longshore/kube";
import { recordingMeter } from "@longshore/runtime";
import { Life, laggingClient } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { startAttacher } from "../index.ts";
import { mortal } from "../testing/crashing.ts";
import { addNode, anAttachment, anInTreeVolume, sidecarWorld, type World } from "../testing/world.ts";

const driver = "ebs.csi.aws.com";
const finalizer = "external-attacher/ebs-csi-aws-com";

const getVa = ({ kube, signal }: World) =>
  kube.get(resources.volumeAttachments, { name: "csi-1" }, { signal });
const getPv = ({ kube, signal }: World) =>
  kube.get(resources.persistentVolumes, { name: "pv-1" }, { signal });
const attached = (world: World) => async () => {
  const va = await getVa(world);
  return va?.status?.attached === true && va;
};
const vaGone = (world: World) => async () => (await getVa(world)) === undefined;

async function worldWithVolume(options = {}): Promise<World> {
  const world = await sidecarWorld(options);
  await addNode(world, "node-a", "us-east-1a");
  await world.kube.create(resources.persistentVolumes, anInTreeVolume(), { signal: world.signal });
  return world;
}

const deleteVa = ({ kube, signal }: World) =>
  kube.delete(resources.volumeAttachments, { name: "csi-1" }, { signal });

describe("the attacher", () => {
  it("attaches a migrated volume by its CSI handle and detaches it when the attachment is deleted", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud } = world;
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    const va = await world.eventually("attached", attached(world));
    expect(va.metadata.finalizers).toEqual([finalizer]);
    expect(va.metadata.annotations).toMatchObject({ "csi.alpha.kubernetes.io/node-id": "i-node-a" });
    expect(va.status).toMatchObject({ attached: true, attachmentMetadata: { devicePath: "/dev/xvdba" } });
    expect((await getPv(world))?.metadata.finalizers).toContain(finalizer);
    expect([...cloud.attached]).toEqual(["vol-9/i-node-a"]);

    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    expect(cloud.attached.size).toBe(0);
    // Still migrated: the volume keeps our finalizer.
    expect((await getPv(world))?.metadata.finalizers).toContain(finalizer);
    await attacher.stop();
  });

  it("asks the driver once for each attachment and detachment, also for a volume without any finalizer", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud, clock } = world;
    const body = { metadata: { finalizers: null } };
    await kube.patch(resources.persistentVolumes, { name: "pv-1" }, { type: "merge", body }, { signal });
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    await clock.advance(60_000);
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    await clock.advance(60_000);
    expect(cloud.calls).toEqual([
      "ControllerPublishVolume vol-9/i-node-a",
      "ControllerUnpublishVolume vol-9/i-node-a",
    ]);
    expect((await getPv(world))?.metadata.finalizers).toEqual([finalizer]);
    await attacher.stop();
  });

  it("never acts on a cache that is older than what it wrote", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud, clock } = world;
    const env = world.env();
    const writes: string[] = [];
    const watched = interceptWrites(env.kube, (request, within, send) => {
      if (request.resource.kind !== "Event")
        writes.push(`${request.verb} ${request.key} ${request.subresource ?? ""}`);
      return send(within);
    });
    const lagging = laggingClient(clock, watched, { lagMs: 2000, isDead: false });
    const attacher = startAttacher({ ...env, kube: lagging }, { resyncMs: 1000 });
    await clock.advance(5000);
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    // Woken every second, while the cache shows two seconds late that the volume is attached.
    await clock.advance(20_000);
    expect((await getVa(world))?.status?.attached).toBe(true);
    expect(cloud.calls).toEqual(["ControllerPublishVolume vol-9/i-node-a"]);
    expect(writes).toEqual(["patch pv-1 ", "patch csi-1 ", "patch csi-1 status"]);
    await attacher.stop();
  });

  it("attaches an inline volume without any PersistentVolume", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud } = world;
    const attacher = startAttacher(world.env());
    const inlineVolumeSpec = {
      accessModes: ["ReadWriteOnce"],
      csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-7" },
    };
    await kube.create(resources.volumeAttachments, anAttachment({ source: { inlineVolumeSpec } }), {
      signal,
    });
    await world.eventually("attached", attached(world));
    expect([...cloud.attached]).toEqual(["vol-7/i-node-a"]);
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    expect(cloud.attached.size).toBe(0);
    await attacher.stop();
  });

  it("writes three times to attach and once to detach", async () => {
    const world = await worldWithVolume();
    const { kube, signal } = world;
    const writes: string[] = [];
    const attacher = startAttacher(world.env(countingWrites(world, writes)));
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    await world.clock.advance(60_000);
    expect(writes.splice(0)).toEqual(["patch pv-1", "patch csi-1", "patch csi-1 status"]);
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    await world.clock.advance(60_000);
    expect(writes.splice(0)).toEqual(["patch csi-1"]);
    // The volume has our finalizer by now.
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    expect(writes).toEqual(["patch csi-1", "patch csi-1 status"]);
    await attacher.stop();
  });

  it("reports a detached attachment that others hold as detached, in a second write", async () => {
    const world = await worldWithVolume();
    const { kube, signal } = world;
    const writes: string[] = [];
    const attacher = startAttacher(world.env(countingWrites(world, writes)));
    const held = { ...anAttachment(), metadata: { name: "csi-1", finalizers: ["example.com/holds"] } };
    await kube.create(resources.volumeAttachments, held, { signal });
    await world.eventually("attached", attached(world));
    await deleteVa(world);
    const detached = await world.eventually("detached", async () => {
      const va = await getVa(world);
      return va?.status?.attached === false && va;
    });
    expect(detached.metadata.finalizers).toEqual(["example.com/holds"]);
    expect(detached.status).toEqual({ attached: false });
    await world.clock.advance(60_000);
    expect(writes.slice(3)).toEqual(["patch csi-1", "patch csi-1 status"]);
    await attacher.stop();
  });

  it.each(["csi-1", "csi-1 status", "pv-1"])(
    "reports no failure for a conflict of the write to %s",
    async (key) => {
      const world = await worldWithVolume();
      const { kube, signal } = world;
      const refused: string[] = [];
      const attacher = startAttacher(world.env(refusingOnce(world, key, 409, refused)));
      await kube.create(resources.volumeAttachments, anAttachment(), { signal });
      const va = await world.eventually("attached", attached(world));
      expect(refused).toEqual([key]);
      expect(va.status?.attachError).toBeUndefined();
      const { items } = await kube.list(resources.events, { signal });
      expect(items.map(({ reason }) => reason)).not.toContain("FailedAttachVolume");
      await attacher.stop();
    },
  );

  it("lets an attachment go in a later try, where the write that does so fails", async () => {
    const world = await worldWithVolume();
    const { kube, signal } = world;
    const refused: string[] = [];
    const first = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    await first.stop();
    const second = startAttacher(world.env(refusingOnce(world, "csi-1", 500, refused)));
    await deleteVa(world);
    const startMs = world.clock.monotonicMs();
    await world.eventually("gone", vaGone(world));
    // By the back-off, not when every object is looked at again.
    expect(world.clock.monotonicMs() - startMs).toBeLessThan(30_000);
    expect(refused).toEqual(["csi-1"]);
    await second.stop();
  });

  it("leaves nothing of an earlier publish context behind when it publishes again", async () => {
    const world = await worldWithVolume({ listsVolumes: true });
    const { kube, signal, cloud } = world;
    cloud.disks.set("vol-9", { name: "x", bytes: 1n, zone: "us-east-1a" });
    let publishContext: Record<string, string> = { devicePath: "/dev/a", lun: "3" };
    world.csi.intercept(async (call, proceed) => {
      const answer = await proceed();
      return call.rpc === "ControllerPublishVolume" ? { ...answer, publishContext } : answer;
    });
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    const va = await world.eventually("attached", attached(world));
    expect(va.status?.attachmentMetadata).toEqual({ devicePath: "/dev/a", lun: "3" });
    publishContext = { devicePath: "/dev/b" };
    cloud.attached.clear();
    await world.eventually("published again", async () => cloud.attached.size === 1);
    await world.clock.advance(1000);
    expect((await getVa(world))?.status?.attachmentMetadata).toEqual({ devicePath: "/dev/b" });
    await attacher.stop();
  });

  it.each<[string, readonly string[], string[], Mode]>([
    ["ReadWriteOnce", ["ReadWriteOnce"], [], Mode.SINGLE_NODE_WRITER],
    [
      "ReadWriteOnce, distinguished",
      ["ReadWriteOnce"],
      ["SINGLE_NODE_MULTI_WRITER"],
      Mode.SINGLE_NODE_MULTI_WRITER,
    ],
    ["ReadWriteOncePod", ["ReadWriteOncePod"], [], Mode.SINGLE_NODE_WRITER],
    [
      "ReadWriteOncePod, distinguished",
      ["ReadWriteOncePod"],
      ["SINGLE_NODE_MULTI_WRITER"],
      Mode.SINGLE_NODE_SINGLE_WRITER,
    ],
    ["ReadOnlyMany", ["ReadOnlyMany"], [], Mode.MULTI_NODE_READER_ONLY],
    ["ReadWriteMany beside others", ["ReadWriteOnce", "ReadWriteMany"], [], Mode.MULTI_NODE_MULTI_WRITER],
  ])("asks for the access mode: %s", async (_, accessModes, capabilities, mode) => {
    const { request } = await publishOf({ accessModes: [...accessModes] }, capabilities);
    expect(request.volumeCapability?.accessMode?.mode).toBe(mode);
  });

  it.each<[string, boolean, string[], boolean]>([
    ["only with PUBLISH_READONLY", true, ["PUBLISH_READONLY"], true],
    ["not without", true, [], false],
    ["not a volume that is not so", false, ["PUBLISH_READONLY"], false],
  ])("publishes read-only: %s", async (_, readOnly, capabilities, expected) => {
    const { request } = await publishOf({ csi: { driver, volumeHandle: "vol-5", readOnly } }, capabilities);
    expect(request.readonly).toBe(expected);
  });

  it("hands over the secret that the volume names, as it is at the time of each call", async () => {
    const controllerPublishSecretRef = { name: "cloud", namespace: "kube-system" };
    const csi = { driver, volumeHandle: "vol-5", controllerPublishSecretRef };
    const { world, request, next } = await publishOf({ csi }, [], async ({ kube, signal }) => {
      const metadata = { name: "cloud", namespace: "kube-system" };
      await kube.create(resources.secrets, { metadata, stringData: { token: "one" } }, { signal });
    });
    expect(request.secrets).toEqual({ token: "one" });
    const { kube, signal } = world;
    const ref = { name: "cloud", namespace: "kube-system" };
    await kube.patch(
      resources.secrets,
      ref,
      { type: "merge", body: { stringData: { token: "two" } } },
      { signal },
    );
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    expect(next()?.secrets).toEqual({ token: "two" });
  });

  it("measures calls for volumes of the in-tree plugin as migrated", async () => {
    const world = await worldWithVolume();
    const { kube, signal } = world;
    const meter = recordingMeter();
    const attacher = startAttacher({ ...world.env(), meter });
    const { awsElasticBlockStore: _, ...common } = anInTreeVolume().spec ?? {};
    const pv = {
      metadata: { name: "pv-2" },
      spec: { ...common, csi: { driver, volumeHandle: "vol-8" } },
    };
    await kube.create(resources.persistentVolumes, pv, { signal });
    const second = anAttachment({ source: { persistentVolumeName: "pv-2" } });
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await kube.create(resources.volumeAttachments, { ...second, metadata: { name: "csi-2" } }, { signal });
    await world.eventually("both attached", async () => world.cloud.attached.size === 2);
    const of = (migrated: string) =>
      meter.value("csi_sidecar_operations_seconds", {
        driver_name: driver,
        method_name: "/csi.v1.Controller/ControllerPublishVolume",
        grpc_status_code: "OK",
        migrated,
      });
    expect([of("true"), of("false")]).toEqual([1, 1]);
    await attacher.stop();
  });

  it("attaches nothing without its secret, and says which is missing", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud, clock } = world;
    const controllerPublishSecretRef = { name: "cloud", namespace: "kube-system" };
    const csi = { driver, volumeHandle: "vol-5", controllerPublishSecretRef };
    const source = { inlineVolumeSpec: { accessModes: ["ReadWriteOnce"], csi } };
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment({ source }), { signal });
    await clock.advance(5000);
    expect((await getVa(world))?.status?.attachError?.message).toContain(
      'secret "kube-system/cloud" not found',
    );
    expect(cloud.calls).toEqual([]);
    await attacher.stop();
  });

  it("reports a failure in status and event, backs off, and clears it once attached", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud, clock } = world;
    cloud.next(
      "ControllerPublishVolume",
      ...Array.from({ length: 4 }, () => ({ code: "INTERNAL" as const })),
    );
    const attacher = startAttacher(world.env());
    await clock.advance(1000);
    const startMs = clock.monotonicMs();
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    const failed = await world.eventually("an error", async () => {
      const va = await getVa(world);
      return va?.status?.attachError !== undefined && va;
    });
    expect(failed.status?.attachError?.message).toContain("as the test asked");
    expect(failed.status?.attachError).toMatchObject({ errorCode: 13 });
    expect(failed.metadata.finalizers).toEqual([finalizer]);
    const va = await world.eventually("attached", attached(world));
    expect(va.status?.attachError).toBeUndefined();
    // 1 + 2 + 4 + 8 seconds.
    expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(15_000);
    expect(clock.monotonicMs() - startMs).toBeLessThan(20_000);
    const { items } = await kube.list(resources.events, { signal });
    expect(items.map(({ reason, involvedObject }) => [reason, involvedObject?.name])).toContainEqual([
      "FailedAttachVolume",
      "csi-1",
    ]);
    await attacher.stop();
  });

  it("detaches after a failed attach whose outcome is unknown", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud } = world;
    cloud.next("ControllerPublishVolume", { lost: true }, { code: "INTERNAL" }, { code: "INTERNAL" });
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("an error", async () => (await getVa(world))?.status?.attachError !== undefined);
    expect(cloud.attached.size).toBe(1);
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    expect(cloud.attached.size).toBe(0);
    await attacher.stop();
  });

  it("detaches from a node whose CSINode is gone, by the node id it remembers", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud } = world;
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    await kube.delete(resources.csiNodes, { name: "node-a" }, { signal });
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    expect(cloud.attached.size).toBe(0);
    await attacher.stop();
  });

  it("attaches to a node without a CSINode by the id that its Node announces", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud } = world;
    await kube.delete(resources.csiNodes, { name: "node-a" }, { signal });
    const annotations = { "csi.volume.kubernetes.io/nodeid": JSON.stringify({ [driver]: "i-old" }) };
    const body = { metadata: { annotations } };
    await kube.patch(resources.nodes, { name: "node-a" }, { type: "merge", body }, { signal });
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    expect([...cloud.attached]).toEqual(["vol-9/i-old"]);
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    expect(cloud.attached.size).toBe(0);
    await attacher.stop();
  });

  it("waits for a CSINode that is not there yet, calling nothing", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud, clock } = world;
    await kube.delete(resources.csiNodes, { name: "node-a" }, { signal });
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await clock.advance(5_000);
    expect((await getVa(world))?.status?.attachError?.message).toContain('CSINode "node-a" not found');
    expect((await getVa(world))?.metadata.finalizers ?? []).toEqual([]);
    expect(cloud.calls).toEqual([]);
    await deleteVa(world);
    await world.eventually("gone", vaGone(world));
    await attacher.stop();
  });

  it("lets go of a volume that is no longer migrated, once nothing is attached", async () => {
    const world = await worldWithVolume();
    const { kube, signal, clock } = world;
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    const body = { metadata: { annotations: { "pv.kubernetes.io/migrated-to": null } } };
    await kube.patch(resources.persistentVolumes, { name: "pv-1" }, { type: "merge", body }, { signal });
    await clock.advance(10_000);
    expect((await getPv(world))?.metadata.finalizers).toContain(finalizer);
    await deleteVa(world);
    await world.eventually(
      "finalizer gone",
      async () => !(await getPv(world))?.metadata.finalizers?.includes(finalizer),
    );
    await attacher.stop();
  });

  it("only reports for a driver that attaches nothing", async () => {
    const world = await worldWithVolume({ attaches: false });
    const { kube, signal, cloud } = world;
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    const va = await world.eventually("attached", attached(world));
    expect(va.metadata.finalizers ?? []).toEqual([]);
    expect(cloud.calls).toEqual([]);
    await attacher.stop();
  });

  it("leaves attachments of other drivers alone", async () => {
    const world = await worldWithVolume();
    const { kube, signal, cloud, clock } = world;
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment({ attacher: "other.csi" }), { signal });
    await clock.advance(60_000);
    expect((await getVa(world))?.status?.attached).toBeFalsy();
    expect(cloud.calls).toEqual([]);
    await attacher.stop();
  });

  it("reads the driver's list in pages, and does nothing about a list that breaks off", async () => {
    const world = await worldWithVolume({ listsVolumes: true });
    const { kube, signal, cloud, clock, csi } = world;
    const pages: { readonly maxEntries: number; readonly startingToken: string }[] = [];
    let breaks = true;
    csi.intercept(async (call, proceed) => {
      if (call.rpc !== "ListVolumes") return proceed();
      const { maxEntries, startingToken } = call.request as ListVolumesRequest;
      pages.push({ maxEntries, startingToken });
      if (startingToken === "2" && breaks) throw lostReply("ListVolumes");
      const published = { volume: { volumeId: "vol-9" }, status: { publishedNodeIds: ["i-node-a"] } };
      const other = { volume: { volumeId: `other-${startingToken}` } };
      return create(ListVolumesResponseSchema, {
        entries: startingToken === "2" ? [other, published] : [other],
        nextToken: { "": "1", "1": "2", "2": "" }[startingToken] ?? "",
      });
    });
    const attacher = startAttacher(world.env(), { maxEntries: 3 });
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    await clock.advance(10 * 60_000);
    breaks = false;
    await clock.advance(10 * 60_000);
    expect(pages.slice(0, 3).map(({ startingToken }) => startingToken)).toEqual(["", "1", "2"]);
    expect(new Set(pages.map(({ maxEntries }) => maxEntries))).toEqual(new Set([3]));
    // The broken list lacked the volume; the whole one agrees with the attachment.
    expect(cloud.calls).toEqual(["ControllerPublishVolume vol-9/i-node-a"]);
    await attacher.stop();
  });

  it("knows a migrated inline volume in the driver's list, which names what the translation could not", async () => {
    const name = "pd.csi.storage.gke.io";
    const world = await sidecarWorld({ name, listsVolumes: true });
    const { kube, signal, cloud, clock, csi } = world;
    const nodeID = "projects/p/zones/z/instances/node-a";
    const spec = { drivers: [{ name, nodeID }] };
    await kube.create(resources.csiNodes, { metadata: { name: "node-a" }, spec }, { signal });
    let lists = 0;
    csi.intercept(async (call, proceed) => {
      if (call.rpc !== "ListVolumes") return proceed();
      lists++;
      const volume = { volumeId: "projects/p/zones/z/disks/d" };
      return create(ListVolumesResponseSchema, {
        entries: [{ volume, status: { publishedNodeIds: cloud.attached.size > 0 ? [nodeID] : [] } }],
      });
    });
    const attacher = startAttacher(world.env());
    const volumeHandle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d";
    const inlineVolumeSpec = { accessModes: ["ReadWriteOnce"], csi: { driver: name, volumeHandle } };
    const va = anAttachment({ attacher: name, source: { inlineVolumeSpec } });
    await kube.create(resources.volumeAttachments, va, { signal });
    await world.eventually("attached", attached(world));
    await clock.advance(10 * 60_000);
    expect(lists).toBeGreaterThan(5);
    expect(cloud.calls).toEqual([`ControllerPublishVolume ${volumeHandle}/${nodeID}`]);
    await attacher.stop();
  });

  it("detaches what the driver still has although the attachment says otherwise", async () => {
    const world = await worldWithVolume({ listsVolumes: true });
    const { kube, signal, cloud } = world;
    cloud.disks.set("vol-9", { name: "x", bytes: 1n, zone: "us-east-1a" });
    const attacher = startAttacher(world.env());
    const held = { ...anAttachment(), metadata: { name: "csi-1", finalizers: ["example.com/holds"] } };
    await kube.create(resources.volumeAttachments, held, { signal });
    await world.eventually("attached", attached(world));
    await deleteVa(world);
    await world.eventually("detached", async () => cloud.attached.size === 0);
    cloud.attached.add("vol-9/i-node-a");
    await world.eventually("detached again", async () => cloud.attached.size === 0);
    await attacher.stop();
  });

  it("attaches again what the driver lost", async () => {
    const world = await worldWithVolume({ listsVolumes: true });
    const { kube, signal, cloud } = world;
    cloud.disks.set("vol-9", { name: "x", bytes: 1n, zone: "us-east-1a" });
    const attacher = startAttacher(world.env());
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("attached", attached(world));
    cloud.attached.clear();
    await world.eventually("attached in the cloud again", async () => cloud.attached.has("vol-9/i-node-a"));
    await attacher.stop();
  });

  it("reaches the same end from a crash at any call", async () => {
    const measured = await attachAndDetach(new Life());
    expect(measured.calls).toBeGreaterThan(6);
    for (let at = 1; at <= measured.calls; at++) {
      for (const effect of ["before", "after"] as const) await attachAndDetach(new Life(at, effect));
    }
  });
});

/** The client of the world, writing down what is written but for events. */
function countingWrites({ kube }: World, writes: string[]): KubeClient {
  return interceptWrites(kube, (request, signal, send) => {
    if (request.resource.kind !== "Event")
      writes.push([request.verb, request.key, request.subresource].filter(Boolean).join(" "));
    return send(signal);
  });
}

/** The first patch of the object is refused with the code. */
function refusingOnce({ kube }: World, key: string, code: number, refused: string[]): KubeClient {
  return interceptWrites(kube, (request, signal, send) => {
    const is = [request.key, request.subresource].filter(Boolean).join(" ");
    if (is !== key || refused.length > 0) return send(signal);
    refused.push(key);
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", code } as const;
    const reason = code === 409 ? "Conflict" : "InternalError";
    return Promise.reject(new KubeApiError({ ...status, reason, message: "as the test asked" }));
  });
}

/** Attaches an inline volume and returns the driver's request; `next` returns the request after it. */
async function publishOf(
  spec: Partial<PersistentVolumeSpec>,
  capabilities: readonly string[],
  prepare: (world: World) => Promise<void> = async () => {},
) {
  const world = await worldWithVolume();
  const { kube, signal, csi } = world;
  const requests: ControllerPublishVolumeRequest[] = [];
  csi.intercept(async (call, proceed) => {
    if (/Controller(Unp|P)ublishVolume/.test(call.rpc)) {
      requests.push(call.request as ControllerPublishVolumeRequest);
    }
    const answer = await proceed();
    if (call.rpc !== "ControllerGetCapabilities") return answer;
    const more = capabilities.map((name) => ControllerRpc[name as keyof typeof ControllerRpc]);
    const all = [ControllerRpc.PUBLISH_UNPUBLISH_VOLUME, ...more];
    return create(ControllerGetCapabilitiesResponseSchema, {
      capabilities: all.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    });
  });
  await prepare(world);
  const attacher = startAttacher(world.env());
  const inlineVolumeSpec = {
    accessModes: ["ReadWriteOnce"],
    csi: { driver, volumeHandle: "vol-5" },
    ...spec,
  } as PersistentVolumeSpec;
  await kube.create(resources.volumeAttachments, anAttachment({ source: { inlineVolumeSpec } }), { signal });
  await world.eventually("attached", attached(world));
  const request = requests.shift();
  if (request === undefined) throw new Error("the driver was not asked");
  return { world, attacher, request, next: () => requests.shift() };
}

/** Attach, detach, delete the volume; the first incarnation has `life`, those after it live on. */
async function attachAndDetach(life: Life): Promise<Life> {
  const world = await worldWithVolume();
  const { kube, signal, cloud } = world;
  let attacher = startAttacher(mortal(world.env(), life));
  void life.death.then(() => {
    attacher = startAttacher(world.env());
  });
  await kube.create(resources.volumeAttachments, anAttachment(), { signal });
  await world.eventually(`attached, ${life.log.join(", ")}`, attached(world));
  expect([...cloud.attached]).toEqual(["vol-9/i-node-a"]);
  await deleteVa(world).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
  await world.eventually(`detached, ${life.log.join(", ")}`, vaGone(world));
  expect(cloud.attached.size).toBe(0);
  await kube.delete(resources.persistentVolumes, { name: "pv-1" }, { signal });
  await world.eventually(
    "finalizer gone",
    async () => !(await getPv(world))?.metadata.finalizers?.includes(finalizer),
  );
  await attacher.stop();
  return life;
}
