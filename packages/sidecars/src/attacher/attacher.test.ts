import { interceptWrites, isNotFound, resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { laggingClient } from "../../../kube/src/testing/lagging-client.ts";
import { startAttacher } from "../index.ts";
import { Life, mortal } from "../testing/crashing.ts";
import { addNode, anAttachment, anInTreeVolume, sidecarWorld, type World } from "../testing/world.ts";

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
