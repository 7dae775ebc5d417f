/** DeleteSnapshot is decided on what the server has, however old the cache is. */
import type { KubeClient } from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
import { expect, it } from "vitest";
import { startSnapshotController } from "../snapshot-controller/index.ts";
import {
  addBoundClaim,
  aSnapshot,
  aSnapshotClass,
  type SnapshotWorld,
  snapshotWorld,
} from "../testing/snapshot-world.ts";
import { startSnapshotter } from "./index.ts";

const { volumeSnapshots, volumeSnapshotClasses, volumeSnapshotContents } = snapshotResources;

/** The client, in which a GET of a content first waits for `then`: what the server has by that time is the answer. */
function beforeLiveReading(kube: KubeClient, then: (name: string) => Promise<void>): KubeClient {
  return new Proxy(kube, {
    get(target, member) {
      const value: unknown = Reflect.get(target, member, target);
      if (typeof value !== "function") return value;
      if (member !== "get") return value.bind(target);
      return async (...args: Parameters<KubeClient["get"]>) => {
        const [{ kind }, { name }] = args;
        if (kind === "VolumeSnapshotContent") await then(name);
        return target.get(...args);
      };
    },
  });
}

async function withSnapshot(then: (world: SnapshotWorld, name: string) => Promise<void>) {
  const world = await snapshotWorld({});
  const { kube, signal } = world;
  await addBoundClaim(world, "data");
  await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
  const readings: string[] = [];
  const watched = beforeLiveReading(kube, async (name) => {
    readings.push(name);
    await then(world, name);
  });
  const parts = [startSnapshotter(world.env(watched)), startSnapshotController(world.env())];
  await kube.create(volumeSnapshots, aSnapshot(), { signal });
  await world.eventually("ready", async () => (await world.snapshot("s"))?.status?.readyToUse === true);
  expect(readings).toEqual([]);
  await kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal });
  await world.eventually("gone", async () => (await world.contents()).length === 0);
  for (const part of parts) await part.stop();
  return { world, readings };
}

const deletions = ({ cloud }: SnapshotWorld) =>
  cloud.calls.filter((call) => call.startsWith("DeleteSnapshot"));

it("reads the content once before it deletes the snapshot", async () => {
  const { world, readings } = await withSnapshot(async () => {});
  expect(readings).toHaveLength(1);
  expect(deletions(world)).toHaveLength(1);
});

it("keeps a snapshot whose policy is Retain by now, although the cache says Delete", async () => {
  const { world } = await withSnapshot(async ({ kube, signal }, name) => {
    const body = { spec: { deletionPolicy: "Retain" } };
    await kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
  });
  expect(deletions(world)).toEqual([]);
});

it("deletes nothing for a content that is gone, or whose name another has by now", async () => {
  let other: string | undefined;
  const { world } = await withSnapshot(async ({ kube, signal }, name) => {
    const old = await kube.get(volumeSnapshotContents, { name }, { signal });
    if (old === undefined || other !== undefined) return;
    const body = { metadata: { finalizers: null } };
    await kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
    const spec = { ...old.spec, driver: "other.csi", source: { snapshotHandle: "theirs" } };
    const { metadata } = await kube.create(volumeSnapshotContents, { metadata: { name }, spec }, { signal });
    other = metadata.uid;
    await kube.delete(volumeSnapshotContents, { name }, { signal });
  });
  expect(other).toBeDefined();
  expect(deletions(world)).toEqual([]);
});
