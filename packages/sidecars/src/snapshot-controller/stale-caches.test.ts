/** What only a cache says lets nothing go and deletes nothing: neither snapshots, nor contents, nor members of groups. */
import {
  interceptWrites,
  isDeleting,
  type KubeClient,
  type KubeObject,
  type WatchEvent,
} from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { startSnapshotter } from "../index.ts";
import {
  addBoundClaim,
  aGroupClass,
  aGroupSnapshot,
  aSnapshot,
  aSnapshotClass,
  type SnapshotWorld,
  snapshotWorld,
} from "../testing/snapshot-world.ts";
import { startSnapshotController } from "./index.ts";

const {
  volumeSnapshots,
  volumeSnapshotContents,
  volumeSnapshotClasses,
  volumeGroupSnapshots,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
} = snapshotResources;
const ref = { namespace: "default", name: "s" };
const groupRef = { namespace: "default", name: "g" };

/** What becomes of a watch event: what the cache is shown in its place. */
type Distortion = (event: WatchEvent<KubeObject>) => WatchEvent<KubeObject> | undefined;

/** The client whose watches of the kind are distorted. */
function distorted(kube: KubeClient, kind: string, link: { distort: Distortion }): KubeClient {
  async function* changed<T extends KubeObject>(events: AsyncIterable<WatchEvent<T>>) {
    for await (const event of events) {
      const shown = link.distort(event) as WatchEvent<T> | undefined;
      if (shown !== undefined) yield shown;
    }
  }
  return {
    ...interceptWrites(kube, (_, signal, send) => send(signal)),
    watch(resource, options) {
      const events = kube.watch(resource, options);
      return resource.kind === kind ? changed(events) : events;
    },
  };
}

const asItIs: Distortion = (event) => event;
const asDeleted: Distortion = (event) =>
  event.type === "BOOKMARK" ? event : { type: "DELETED", object: event.object };

async function readySnapshot(world: SnapshotWorld): Promise<void> {
  const { kube, signal } = world;
  await addBoundClaim(world, "data");
  await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
  await kube.create(volumeSnapshots, aSnapshot(), { signal });
  await world.eventually("ready", async () => (await world.snapshot("s"))?.status?.readyToUse === true);
}

const onlyContent = async (world: SnapshotWorld) => {
  const [content] = await world.contents();
  if (content === undefined) throw new Error("there is no content");
  return content;
};

/** A change that the watch delivers. */
async function touch({ kube, signal, clock }: SnapshotWorld, name: string): Promise<void> {
  const body = { metadata: { labels: { touched: String(clock.monotonicMs()) } } };
  await kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
  await clock.settle();
}

describe("a content that only the cache has lost", () => {
  it("keeps its snapshot, and goes with it in the end", async () => {
    const world = await snapshotWorld();
    const { kube, signal, clock } = world;
    const link = { distort: asItIs };
    const client = distorted(kube, "VolumeSnapshotContent", link);
    const parts = [startSnapshotController(world.env(client)), startSnapshotter(world.env())];
    await readySnapshot(world);
    const { name } = (await onlyContent(world)).metadata;
    link.distort = asDeleted;
    await touch(world, name);
    await kube.delete(volumeSnapshots, ref, { signal });
    await clock.advance(30_000);
    expect(await world.snapshot("s")).toBeDefined();
    link.distort = asItIs;
    await touch(world, name);
    await world.eventually("gone", async () => (await world.snapshot("s")) === undefined);
    expect(await world.contents()).toEqual([]);
    expect(world.snapshots.byId.size).toBe(0);
    for (const part of parts) await part.stop();
  });
});

describe("a content that is to be retained, which the cache does not show yet", () => {
  it("stays", async () => {
    const world = await snapshotWorld();
    const { kube, signal, clock } = world;
    const isRetained = ({ object }: { readonly object: KubeObject }) =>
      (object as { readonly spec?: { readonly deletionPolicy?: string } }).spec?.deletionPolicy === "Retain";
    const link = { distort: asItIs };
    const slow = distorted(kube, "VolumeSnapshotContent", link);
    // The administrator's change comes right after the announcement.
    const client = {
      ...interceptWrites(slow, async ({ resource, verb }, writeSignal, send) => {
        const answer = await send(writeSignal);
        if (resource.kind === "VolumeSnapshotContent" && verb === "patch") {
          const { name } = (await onlyContent(world)).metadata;
          const body = { spec: { deletionPolicy: "Retain" } };
          await kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
        }
        return answer;
      }),
    };
    const making = [startSnapshotController(world.env()), startSnapshotter(world.env())];
    await readySnapshot(world);
    for (const part of making) await part.stop();
    link.distort = (event) => (event.type !== "BOOKMARK" && isRetained(event) ? undefined : event);
    const controller = startSnapshotController(world.env(client));
    await clock.advance(1000);
    await kube.delete(volumeSnapshots, ref, { signal });
    await clock.advance(30_000);
    const content = await onlyContent(world);
    expect(content.spec.deletionPolicy).toBe("Retain");
    expect(isDeleting(content)).toBe(false);
    link.distort = asItIs;
    await touch(world, content.metadata.name);
    await world.eventually("gone", async () => (await world.snapshot("s")) === undefined);
    expect(isDeleting(await onlyContent(world))).toBe(false);
    expect(world.snapshots.byId.size).toBe(1);
    await controller.stop();
  });
});

describe("a snapshot that a provisioner has protected for a restore", () => {
  it("keeps its content although no claim is in sight", async () => {
    const world = await snapshotWorld();
    const { kube, signal, clock } = world;
    const parts = [startSnapshotController(world.env()), startSnapshotter(world.env())];
    await readySnapshot(world);
    const protection = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";
    const finalizers = (await world.snapshot("s"))?.metadata.finalizers ?? [];
    const set = (list: readonly string[]) => ({ metadata: { finalizers: list } });
    await kube.patch(
      volumeSnapshots,
      ref,
      { type: "merge", body: set([...finalizers, protection]) },
      { signal },
    );
    await kube.delete(volumeSnapshots, ref, { signal });
    await clock.advance(60_000);
    expect(isDeleting(await onlyContent(world))).toBe(false);
    await kube.patch(volumeSnapshots, ref, { type: "merge", body: set(finalizers) }, { signal });
    await world.eventually("gone", async () => (await world.snapshot("s")) === undefined);
    expect(await world.contents()).toEqual([]);
    for (const part of parts) await part.stop();
  });
});

describe("a group content that only the cache has lost", () => {
  it("keeps the members and the group", async () => {
    const world = await snapshotWorld({ groups: true });
    const { kube, signal, clock } = world;
    const link = { distort: asItIs };
    const client = distorted(kube, "VolumeGroupSnapshotContent", link);
    const options = { groupSnapshots: true };
    const parts = [
      startSnapshotController(world.env(client), options),
      startSnapshotter(world.env(), options),
    ];
    for (const name of ["data", "log"]) await addBoundClaim(world, name, undefined, { app: "db" });
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    const group = () => kube.get(volumeGroupSnapshots, groupRef, { signal });
    await world.eventually("ready", async () => (await group())?.status?.readyToUse === true);
    const [content] = (await kube.list(volumeGroupSnapshotContents, { signal })).items;
    const touchContent = async () => {
      const body = { metadata: { labels: { touched: String(clock.monotonicMs()) } } };
      const { name = "" } = content?.metadata ?? {};
      await kube.patch(volumeGroupSnapshotContents, { name }, { type: "merge", body }, { signal });
      await clock.settle();
    };
    link.distort = asDeleted;
    await touchContent();
    await kube.delete(volumeGroupSnapshots, groupRef, { signal });
    await clock.advance(30_000);
    expect(await group()).toBeDefined();
    const members = (await kube.list(volumeSnapshots, { signal })).items;
    expect(members.map(isDeleting)).toEqual([false, false]);
    link.distort = asItIs;
    await touchContent();
    await world.eventually("gone", async () => (await group()) === undefined);
    expect((await kube.list(volumeGroupSnapshotContents, { signal })).items).toEqual([]);
    for (const part of parts) await part.stop();
  });
});
