/** Cycles of the snapshotter and of the snapshot controller: each plays with the other as administrator. */
import { resources, startUnderLease } from "@longshore/kube";
import { startSidecars, startSnapshotter } from "@longshore/sidecars";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { snapshotResources } from "@longshore/storage";
import { FakeSnapshots, snapshotDriver } from "@longshore/testing/sidecars";
import { type AccessCycle, type AccessWorld, accessNames } from "./access-world.ts";
import { addBoundClaim, aLease, change, countedAgain, secretParameters } from "./cycle-objects.ts";

const { driver } = accessNames;
const ref = { namespace: "default", name: "s" };
const {
  volumeSnapshots,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeGroupSnapshots,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
} = snapshotResources;

/** A snapshot is made at the third try, and deleted. */
const snapshotterCycle: AccessCycle = {
  name: "snapshot, delete",
  component: "snapshotter",
  deploy: { snapshot: true },
  services: (cloud) => snapshotDriver(cloud, new FakeSnapshots()),
  async run(world) {
    // The same failure is reported again only after a different one.
    world.cloud.next("CreateSnapshot", { code: "INTERNAL" }, { code: "ABORTED" }, { code: "INTERNAL" });
    world.start(startSnapshotController({ ...world.env, kube: world.admin }));
    const snapshotter = world.start(
      startSidecars(world.env, { sidecars: { snapshotter: {} }, lease: aLease }),
    );
    await snapshotAndDelete(world);
    await world.eventually("the failure is counted", () => countedAgain(world, "SnapshotCreationFailed"));
    await world.pause(3000);
    await snapshotter.stop();
  },
};

/** The same, seen from the controller. */
const controllerCycle: AccessCycle = {
  name: "snapshot, delete",
  component: "snapshot-controller",
  deploy: { snapshot: true, snapshotController: true },
  services: (cloud) => snapshotDriver(cloud, new FakeSnapshots()),
  async run(world) {
    const { admin, env } = world;
    world.start(startSnapshotter({ ...env, kube: admin }));
    const controller = world.start(
      startUnderLease(env, aLease, {
        lease: "snapshot-controller-leader",
        async serve(kube, _, scope) {
          scope.own(startSnapshotController({ ...env, kube }));
        },
        onLost() {},
        onFailed() {},
      }),
    );
    await failTwice(world);
    await snapshotAndDelete(world);
    const missing = { source: { volumeSnapshotContentName: "missing" } };
    const lost = { namespace: "default", name: "lost" };
    await admin.create(volumeSnapshots, { metadata: lost, spec: missing }, { signal: world.signal });
    await world.eventually("the missing content is reported", async () => {
      const { items } = await admin.list(resources.events, { signal: world.signal });
      return items.some(({ involvedObject }) => involvedObject.name === "lost");
    });
    await world.pause(3000);
    await controller.stop();
  },
};

/** A snapshot of a claim that is not there, is not bound, and is not there again. */
async function failTwice(world: AccessWorld): Promise<void> {
  const { admin, signal } = world;
  const claim = { namespace: "default", name: "data" };
  const eventCount = async () => (await admin.list(resources.events, { signal })).items.length;
  const spec = { source: { persistentVolumeClaimName: "data" } };
  await admin.create(volumeSnapshots, { metadata: ref, spec }, { signal });
  await world.eventually("there is no claim", async () => (await eventCount()) > 0);
  const before = await eventCount();
  const unbound = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  await admin.create(resources.persistentVolumeClaims, { metadata: claim, spec: unbound }, { signal });
  await world.eventually("it is not bound", async () => (await eventCount()) > before);
  await admin.delete(resources.persistentVolumeClaims, claim, { signal });
  await change(world, resources.persistentVolumeClaims, claim, { metadata: { finalizers: null } }).catch(
    () => {},
  );
  await world.eventually("the failure is counted", () => countedAgain(world));
  await admin.delete(volumeSnapshots, ref, { signal });
  await world.eventually(
    "the snapshot is gone",
    async () => (await admin.get(volumeSnapshots, ref, { signal })) === undefined,
  );
}

const groupSnapshots = true;

/** A group is made at the second try, and deleted with its members. */
const groupSnapshotterCycle: AccessCycle = {
  name: "snapshot a group, delete",
  component: "snapshotter",
  deploy: { snapshot: true, groupSnapshot: true },
  services: (cloud) => snapshotDriver(cloud, new FakeSnapshots(), { groups: true }),
  async run(world) {
    world.cloud.next("CreateVolumeGroupSnapshot", { code: "INTERNAL" });
    world.start(startSnapshotController({ ...world.env, kube: world.admin }, { groupSnapshots }));
    const options = { snapshotter: { groupSnapshots } };
    const snapshotter = world.start(startSidecars(world.env, { sidecars: options, lease: aLease }));
    await snapshotGroupAndDelete(world);
    await snapshotter.stop();
  },
};

/** The same, seen from the controller; and a group whose content is not there. */
const groupControllerCycle: AccessCycle = {
  name: "snapshot a group, delete",
  component: "snapshot-controller",
  deploy: { snapshot: true, groupSnapshot: true, snapshotController: true },
  services: (cloud) => snapshotDriver(cloud, new FakeSnapshots(), { groups: true }),
  async run(world) {
    const { admin, env, signal } = world;
    world.start(startSnapshotter({ ...env, kube: admin }, { groupSnapshots }));
    const controller = world.start(startSnapshotController(env, { groupSnapshots }));
    await snapshotGroupAndDelete(world);
    const source = { volumeGroupSnapshotContentName: "missing" };
    const metadata = { namespace: "default", name: "lost" };
    await admin.create(volumeGroupSnapshots, { metadata, spec: { source } }, { signal });
    await world.eventually("the missing content is reported", async () => {
      const { items } = await admin.list(resources.events, { signal });
      return items.some(({ involvedObject }) => involvedObject.name === "lost");
    });
    await controller.stop();
  },
};

/** All of them. */
export const snapshotCycles: readonly AccessCycle[] = [
  snapshotterCycle,
  controllerCycle,
  groupSnapshotterCycle,
  groupControllerCycle,
];

async function snapshotGroupAndDelete(world: AccessWorld): Promise<void> {
  const { admin, signal } = world;
  await addBoundClaim(world, { app: "db" });
  const parameters = secretParameters("group-snapshotter");
  await admin.create(
    volumeGroupSnapshotClasses,
    { metadata: { name: "groups" }, driver, deletionPolicy: "Delete", parameters },
    { signal },
  );
  const group = { namespace: "default", name: "g" };
  const source = { selector: { matchLabels: { app: "db" } } };
  const spec = { source, volumeGroupSnapshotClassName: "groups" };
  await admin.create(volumeGroupSnapshots, { metadata: group, spec }, { signal });
  await world.eventually("the group is ready, and so are its members", async () => {
    const found = await admin.get(volumeGroupSnapshots, group, { signal });
    const members = (await admin.list(volumeSnapshots, { signal })).items;
    const areReady = members.length === 1 && members.every(({ status }) => status?.readyToUse === true);
    return found?.status?.readyToUse === true && areReady;
  });
  await admin.delete(volumeGroupSnapshots, group, { signal });
  await world.eventually(
    "the group is gone",
    async () => (await admin.get(volumeGroupSnapshots, group, { signal })) === undefined,
  );
  await world.eventually("nothing of it is left", async () => {
    const left = await Promise.all([
      admin.list(volumeSnapshots, { signal }),
      admin.list(volumeSnapshotContents, { signal }),
      admin.list(volumeGroupSnapshotContents, { signal }),
    ]);
    return left.every(({ items }) => items.length === 0);
  });
}

async function snapshotAndDelete(world: AccessWorld): Promise<void> {
  const { admin, signal } = world;
  await addBoundClaim(world);
  await admin.create(
    volumeSnapshotClasses,
    {
      metadata: { name: "c" },
      driver,
      deletionPolicy: "Delete",
      parameters: secretParameters("snapshotter"),
    },
    { signal },
  );
  const spec = { source: { persistentVolumeClaimName: "data" }, volumeSnapshotClassName: "c" };
  await admin.create(volumeSnapshots, { metadata: ref, spec }, { signal });
  await world.eventually("ready", async () => {
    const snapshot = await admin.get(volumeSnapshots, ref, { signal });
    return snapshot?.status?.readyToUse === true;
  });
  await world.eventually("the claim is let go", async () => {
    const claim = await admin.get(resources.persistentVolumeClaims, { ...ref, name: "data" }, { signal });
    return !claim?.metadata.finalizers?.some((one) => one.startsWith("snapshot.storage.kubernetes.io"));
  });
  // The content alone is deleted: its snapshot still decides.
  for (const { metadata } of (await admin.list(volumeSnapshotContents, { signal })).items) {
    await admin.delete(volumeSnapshotContents, { name: metadata.name }, { signal });
  }
  await world.pause(1000);
  await admin.delete(volumeSnapshots, ref, { signal });
  await world.eventually(
    "the snapshot is gone",
    async () => (await admin.get(volumeSnapshots, ref, { signal })) === undefined,
  );
  await world.eventually("its content is gone", async () => {
    const { items } = await admin.list(volumeSnapshotContents, { signal });
    return items.length === 0;
  });
}
