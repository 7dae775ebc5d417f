import { interceptWrites, type KubeClient, resources } from "@longshore/kube";
import { recordingLogger } from "@longshore/runtime";
import { expect, it } from "vitest";
import { startAttacher } from "../index.ts";
import { addNode, anAttachment, anInTreeVolume, sidecarWorld } from "../testing/world.ts";

const finalizer = "external-attacher/ebs-csi-aws-com";
const migrated = { "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" };

/** The client, in which removals of a volume's finalizer wait for `until`. */
function slowRemovals(kube: KubeClient, until: Promise<void>, begun: () => void): KubeClient {
  return interceptWrites(kube, async ({ resource, verb }, signal, send) => {
    if (verb === "patch" && resource.kind === "PersistentVolume") {
      begun();
      await until;
    }
    return send(signal);
  });
}

it("an attachment that arrives while its volume is being released waits, and is published on a held volume", async () => {
  const world = await sidecarWorld();
  const { kube, signal, cloud, clock } = world;
  await addNode(world, "node-a", "us-east-1a");
  const pv = anInTreeVolume({ annotations: {} });
  await kube.create(
    resources.persistentVolumes,
    { ...pv, metadata: { ...pv.metadata, finalizers: [finalizer] } },
    { signal },
  );
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let removals = 0;
  const env = world.env();
  const attacher = startAttacher({ ...env, kube: slowRemovals(env.kube, released, () => removals++) });
  await world.eventually("the removal is under way", async () => removals === 1);
  await kube.create(resources.volumeAttachments, anAttachment(), { signal });
  await clock.advance(5000);
  expect(cloud.calls).toEqual([]);
  release();
  await world.eventually("attached", async () => {
    const va = await kube.get(resources.volumeAttachments, { name: "csi-1" }, { signal });
    return va?.status?.attached === true;
  });
  const held = await kube.get(resources.persistentVolumes, { name: "pv-1" }, { signal });
  expect(held?.metadata.finalizers).toContain(finalizer);
  await attacher.stop();
});

it("is not taken off another volume of the same name", async () => {
  const world = await sidecarWorld();
  const { kube, signal, clock } = world;
  const pv = anInTreeVolume({ annotations: {} });
  await kube.create(
    resources.persistentVolumes,
    { ...pv, metadata: { ...pv.metadata, finalizers: [finalizer] } },
    { signal },
  );
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let removals = 0;
  const env = world.env();
  const attacher = startAttacher({ ...env, kube: slowRemovals(env.kube, released, () => removals++) });
  await world.eventually("the removal is under way", async () => removals === 1);
  // The first one goes, and one that is migrated takes its name.
  const body = { metadata: { finalizers: null } };
  await kube.patch(resources.persistentVolumes, { name: "pv-1" }, { type: "merge", body }, { signal });
  await kube.delete(resources.persistentVolumes, { name: "pv-1" }, { signal });
  await kube.create(
    resources.persistentVolumes,
    { ...pv, metadata: { name: "pv-1", annotations: migrated, finalizers: [finalizer] } },
    { signal },
  );
  release();
  await clock.advance(60_000);
  const other = await kube.get(resources.persistentVolumes, { name: "pv-1" }, { signal });
  expect(other?.metadata.finalizers).toContain(finalizer);
  await attacher.stop();
});

it("a list of finalizers that others change meanwhile is no warning, and the next pass takes ours off", async () => {
  const world = await sidecarWorld();
  const { kube, signal } = world;
  const pv = anInTreeVolume({ annotations: {} });
  const body = {
    ...pv,
    metadata: { ...pv.metadata, finalizers: ["kubernetes.io/pv-protection", finalizer] },
  };
  await kube.create(resources.persistentVolumes, body, { signal });
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let removals = 0;
  const env = world.env();
  const logger = recordingLogger();
  const attacher = startAttacher({
    ...env,
    logger,
    kube: slowRemovals(env.kube, released, () => removals++),
  });
  await world.eventually("the removal is under way", async () => removals === 1);
  // As the volume protection does at the same moment: ours has another place in the list now.
  const others = { metadata: { finalizers: [finalizer] } };
  await kube.patch(
    resources.persistentVolumes,
    { name: "pv-1" },
    { type: "merge", body: others },
    { signal },
  );
  release();
  await world.eventually("ours is off", async () => {
    const volume = await kube.get(resources.persistentVolumes, { name: "pv-1" }, { signal });
    return volume?.metadata.finalizers === undefined;
  });
  expect(removals).toBe(2);
  expect(logger.lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  await attacher.stop();
});
