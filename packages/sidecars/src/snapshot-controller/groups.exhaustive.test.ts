/** Group snapshots: the snapshot controller and a driver's snapshotter together, on the embedded API server. */
import { resources } from "@longshore/kube";
import { recordingMeter } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { Life } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { startSnapshotter } from "../index.ts";
import { mortal } from "../testing/crashing.ts";
import {
  addBoundClaim,
  aGroupClass,
  aGroupSnapshot,
  type SnapshotWorld,
  snapshotWorld,
} from "../testing/snapshot-world.ts";
import { startSnapshotController } from "./index.ts";

const {
  volumeSnapshots,
  volumeSnapshotContents,
  volumeGroupSnapshots,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
} = snapshotResources;
const groupSnapshots = true;
const labels = { app: "db" };

async function aWorld(options: Parameters<typeof snapshotWorld>[0] = {}): Promise<SnapshotWorld> {
  const world = await snapshotWorld({ groups: true, ...options });
  await addBoundClaim(world, "data", undefined, labels);
  await addBoundClaim(world, "log", undefined, labels);
  await addBoundClaim(world, "other");
  return world;
}

const groupOf = ({ kube, signal }: SnapshotWorld) =>
  kube.get(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
const members = async ({ kube, signal }: SnapshotWorld) =>
  (await kube.list(volumeSnapshots, { signal })).items;
const groupContents = async ({ kube, signal }: SnapshotWorld) =>
  (await kube.list(volumeGroupSnapshotContents, { signal })).items;
const allReady = (world: SnapshotWorld, count: number) => async () => {
  const group = await groupOf(world);
  const found = await members(world);
  const ready = found.length === count && found.every(({ status }) => status?.readyToUse === true);
  return group?.status?.readyToUse === true && ready && { group, found };
};

function startBoth(world: SnapshotWorld) {
  return [
    startSnapshotController(world.env(), { groupSnapshots }),
    startSnapshotter(world.env(), { groupSnapshots }),
  ];
}

describe("group snapshots", () => {
  it("are made of all claims that the selector chooses, with an object for each of their snapshots", async () => {
    const world = await aWorld({ looksUntilReady: 1 });
    const { kube, signal, cloud } = world;
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    const parts = startBoth(world);
    const { metadata } = await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    const { group, found } = await world.eventually("ready", allReady(world, 2));
    expect(new Set(cloud.calls)).toEqual(
      new Set([`CreateVolumeGroupSnapshot groupsnapshot-${metadata.uid}`]),
    );
    expect(group).toMatchObject({
      metadata: { finalizers: ["groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection"] },
      spec: { volumeGroupSnapshotClassName: "groups" },
      status: {
        boundVolumeGroupSnapshotContentName: `groupsnapcontent-${metadata.uid}`,
        creationTime: "2023-11-14T22:13:20Z",
      },
    });
    expect(found.map(({ spec }) => spec.source.persistentVolumeClaimName).toSorted()).toEqual([
      "data",
      "log",
    ]);
    for (const member of found) {
      expect(member.metadata.ownerReferences).toEqual([
        {
          apiVersion: "groupsnapshot.storage.k8s.io/v1",
          kind: "VolumeGroupSnapshot",
          name: "g",
          uid: metadata.uid,
        },
      ]);
      expect(member.metadata.finalizers).toContain(
        "snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection",
      );
      expect(member.status).toMatchObject({ volumeGroupSnapshotName: "g", restoreSize: "1Gi" });
    }
    for (const content of await world.contents()) {
      expect(content.status?.volumeGroupSnapshotHandle).toBe(`group-of-groupsnapshot-${metadata.uid}`);
      expect(content.spec.sourceVolumeMode).toBe("Filesystem");
    }
    for (const part of parts) await part.stop();
  });

  it("go as a whole, and their members not alone", async () => {
    const meter = recordingMeter();
    const world = await aWorld({ runtime: { meter } });
    const { kube, signal, cloud, clock } = world;
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    const parts = startBoth(world);
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    const { found } = await world.eventually("ready", allReady(world, 2));
    const [first] = found;
    await kube.delete(
      volumeSnapshots,
      { namespace: "default", name: first?.metadata.name ?? "" },
      { signal },
    );
    await clock.advance(60_000);
    expect(await members(world)).toHaveLength(2);
    expect(await world.reasons()).toContain("SnapshotDeletePending");
    expect(world.snapshots.byId.size).toBe(2);

    await kube.delete(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
    await world.eventually("all gone", async () => {
      const left = [await groupOf(world), ...(await members(world)), ...(await world.contents())];
      return left.every((object) => object === undefined) && (await groupContents(world)).length === 0;
    });
    expect(world.snapshots.byId.size).toBe(0);
    expect(cloud.calls.filter((call) => call.startsWith("DeleteSnapshot"))).toEqual([]);
    const name = "snapshot_controller_operation_total_seconds";
    for (const operation of ["CreateGroupSnapshot", "CreateGroupSnapshotAndReady", "DeleteGroupSnapshot"]) {
      const labels = {
        driver_name: "ebs.csi.aws.com",
        snapshot_type: "dynamic",
        operation_status: "success",
      };
      expect(meter.observations(name, { ...labels, operation_name: operation }), operation).toHaveLength(1);
    }
    for (const part of parts) await part.stop();
  });

  it("are kept at the driver with policy Retain", async () => {
    const world = await aWorld();
    const { kube, signal } = world;
    await kube.create(volumeGroupSnapshotClasses, aGroupClass({ deletionPolicy: "Retain" }), { signal });
    const parts = startBoth(world);
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    await world.eventually("ready", allReady(world, 2));
    await kube.delete(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
    await world.eventually("the user's objects are gone", async () => {
      return (await groupOf(world)) === undefined && (await members(world)).length === 0;
    });
    expect(await world.contents()).toHaveLength(2);
    expect(await groupContents(world)).toHaveLength(1);
    expect(world.snapshots.byId.size).toBe(2);
    for (const part of parts) await part.stop();
  });

  it("wait for the restore of one of them", async () => {
    const world = await aWorld();
    const { kube, signal, clock } = world;
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    const parts = startBoth(world);
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    const { found } = await world.eventually("ready", allReady(world, 2));
    const dataSource = {
      apiGroup: "snapshot.storage.k8s.io",
      kind: "VolumeSnapshot",
      name: found[0]?.metadata.name ?? "",
    };
    const restored = { name: "restored", namespace: "default" };
    await kube.create(
      resources.persistentVolumeClaims,
      {
        metadata: restored,
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, dataSource },
      },
      { signal },
    );
    await clock.settle();
    await kube.delete(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
    await clock.advance(10_000);
    expect(world.snapshots.byId.size).toBe(2);
    await kube.delete(resources.persistentVolumeClaims, restored, { signal });
    await kube
      .patch(
        resources.persistentVolumeClaims,
        restored,
        { type: "merge", body: { metadata: { finalizers: null } } },
        { signal },
      )
      .catch(() => {});
    await world.eventually("gone", async () => (await groupOf(world)) === undefined);
    expect(world.snapshots.byId.size).toBe(0);
    for (const part of parts) await part.stop();
  });

  it("that exist are bound, and their members learn of them", async () => {
    const world = await aWorld({ listsSnapshots: true });
    const { kube, signal } = world;
    const handle = "group-1";
    const handles = ["data", "log"].map((volume) => world.snapshots.create(volume, volume, 0, handle));
    world.snapshots.groups.set(handle, { name: "by hand", members: handles });
    const parts = startBoth(world);
    for (const snapshotHandle of handles) {
      const ref = { name: snapshotHandle, namespace: "default" };
      await kube.create(
        volumeSnapshotContents,
        {
          metadata: { name: `content-${snapshotHandle}` },
          spec: {
            driver: "ebs.csi.aws.com",
            deletionPolicy: "Delete",
            source: { snapshotHandle },
            volumeSnapshotRef: ref,
          },
        },
        { signal },
      );
      await kube.create(
        volumeSnapshots,
        {
          metadata: ref,
          spec: { source: { volumeSnapshotContentName: `content-${snapshotHandle}` } },
        },
        { signal },
      );
    }
    await kube.create(
      volumeGroupSnapshotContents,
      {
        metadata: { name: "by-hand" },
        spec: {
          driver: "ebs.csi.aws.com",
          deletionPolicy: "Delete",
          source: {
            groupSnapshotHandles: { volumeGroupSnapshotHandle: handle, volumeSnapshotHandles: handles },
          },
          volumeGroupSnapshotRef: { name: "g", namespace: "default" },
        },
      },
      { signal },
    );
    const source = { volumeGroupSnapshotContentName: "by-hand" };
    const { metadata } = await kube.create(volumeGroupSnapshots, aGroupSnapshot({ source }), { signal });
    await world.eventually("ready", allReady(world, 2));
    await world.eventually("owned", async () =>
      (await members(world)).every(
        (member) =>
          member.status?.volumeGroupSnapshotName === "g" &&
          member.metadata.ownerReferences?.[0]?.uid === metadata.uid,
      ),
    );
    await kube.delete(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
    await world.eventually("all gone", async () => {
      return (await groupOf(world)) === undefined && (await members(world)).length === 0;
    });
    expect(world.snapshots.byId.size).toBe(0);
    for (const part of parts) await part.stop();
  });

  it("are refused where a volume is of another driver, and where the class is missing", async () => {
    const world = await aWorld();
    const { kube, signal } = world;
    const parts = startBoth(world);
    await kube.create(volumeGroupSnapshots, aGroupSnapshot({ volumeGroupSnapshotClassName: "groups" }), {
      signal,
    });
    const error = async () => (await groupOf(world))?.status?.error?.message;
    await world.eventually("no class", async () => (await error())?.includes('"groups" not found'));
    await kube.create(volumeGroupSnapshotClasses, aGroupClass({ driver: "other.csi" }), { signal });
    await world.eventually("another driver", async () => (await error())?.includes("is of driver other.csi"));
    for (const part of parts) await part.stop();
  });

  it.each(["v1beta1", "v1beta2"])("are made where the server has %s only", async (groupVersion) => {
    const world = await aWorld({ groupVersion, looksUntilReady: 1 });
    const { kube, signal } = world;
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    const parts = startBoth(world);
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    const { found } = await world.eventually("ready", allReady(world, 2));
    const [content] = await groupContents(world);
    const list =
      groupVersion === "v1beta1"
        ? content?.status?.volumeSnapshotHandlePairList
        : content?.status?.volumeSnapshotInfoList;
    expect(list).toHaveLength(2);
    expect(found[0]?.metadata.ownerReferences?.[0]?.apiVersion).toBe(
      `groupsnapshot.storage.k8s.io/${groupVersion}`,
    );
    await kube.delete(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
    await world.eventually("all gone", async () => {
      return (await members(world)).length === 0 && (await groupContents(world)).length === 0;
    });
    expect(world.snapshots.byId.size).toBe(0);
    for (const part of parts) await part.stop();
  });

  it("do nothing unless they are switched on", async () => {
    const world = await aWorld();
    const { kube, signal, clock, cloud } = world;
    const parts = [startSnapshotController(world.env()), startSnapshotter(world.env())];
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    await clock.advance(60_000);
    expect((await groupOf(world))?.status).toBeUndefined();
    expect(cloud.calls).toEqual([]);
    for (const part of parts) await part.stop();
  });
});

describe("a crash at every point of group snapshots", () => {
  const start = {
    controller: startSnapshotController,
    snapshotter: startSnapshotter,
  };
  const points = (["controller", "snapshotter"] as const).flatMap((name) =>
    (["before", "after"] as const).map((side) => ({ name, side })),
  );
  it.each(points)("of the $name, $side each, leaks and loses nothing", async ({ name, side }) => {
    const live = async (life: Life) => {
      const world = await aWorld({ looksUntilReady: 1 });
      const { kube, signal } = world;
      await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
      let part = start[name](mortal(world.env(), life), { groupSnapshots });
      void life.death.then(() => {
        part = start[name](world.env(), { groupSnapshots });
      });
      const other = name === "controller" ? "snapshotter" : "controller";
      const rest = start[other](world.env(), { groupSnapshots });
      await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
      await world.eventually(`ready: ${life.log.join(", ")}`, allReady(world, 2));
      expect(world.snapshots.byId.size).toBe(2);
      await kube.delete(volumeGroupSnapshots, { namespace: "default", name: "g" }, { signal });
      await world.eventually(`gone: ${life.log.join(", ")}`, async () => {
        const left = [
          ...(await members(world)),
          ...(await world.contents()),
          ...(await groupContents(world)),
        ];
        return (await groupOf(world)) === undefined && left.length === 0;
      });
      expect(world.snapshots.byId.size).toBe(0);
      await part.stop();
      await rest.stop();
      return life;
    };
    const { calls } = await live(new Life());
    for (let at = 1; at <= calls; at++) {
      await live(new Life(at, side));
    }
  });
});
