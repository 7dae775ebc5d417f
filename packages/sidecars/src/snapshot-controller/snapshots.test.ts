/** The snapshot controller and a driver's snapshotter together, on the embedded API server. */
import { resources } from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { startSnapshotter } from "../index.ts";
import { addBoundClaim, aSnapshot, aSnapshotClass, snapshotWorld } from "../testing/snapshot-world.ts";
import { startSnapshotController } from "./index.ts";

const { volumeSnapshots, volumeSnapshotClasses } = snapshotResources;
const claimFinalizer = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

describe("snapshots", () => {
  it("are made of a claim with the default class of its driver, and deleted with it", async () => {
    const world = await snapshotWorld();
    const { kube, signal, cloud } = world;
    await addBoundClaim(world, "data");
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    const parts = [startSnapshotController(world.env()), startSnapshotter(world.env())];
    const { metadata } = await kube.create(volumeSnapshots, aSnapshot(), { signal });
    const snapshot = await world.eventually("ready", async () => {
      const found = await world.snapshot("s");
      return found?.status?.readyToUse === true && found;
    });
    expect(cloud.calls).toEqual([`CreateSnapshot snapshot-${metadata.uid} of vol-data`]);
    expect(snapshot).toMatchObject({
      spec: { volumeSnapshotClassName: "snapshots" },
      status: {
        boundVolumeSnapshotContentName: `snapcontent-${metadata.uid}`,
        creationTime: "2023-11-14T22:13:20Z",
        restoreSize: "1Gi",
        readyToUse: true,
      },
    });
    expect(snapshot.metadata.finalizers).toEqual([
      "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection",
      "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
    ]);
    const [content] = await world.contents();
    expect(content).toMatchObject({
      metadata: {
        name: `snapcontent-${metadata.uid}`,
        finalizers: ["snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"],
      },
      spec: {
        deletionPolicy: "Delete",
        driver: "ebs.csi.aws.com",
        source: { volumeHandle: "vol-data" },
        sourceVolumeMode: "Filesystem",
        volumeSnapshotClassName: "snapshots",
        volumeSnapshotRef: {
          apiVersion: "snapshot.storage.k8s.io/v1",
          kind: "VolumeSnapshot",
          name: "s",
          namespace: "default",
          uid: metadata.uid,
        },
      },
      status: {
        snapshotHandle: "snap-0001",
        creationTime: 1_700_000_000_123_456_000,
        restoreSize: 1 << 30,
        readyToUse: true,
      },
    });
    expect(content?.metadata.annotations ?? {}).toEqual({});
    await world.eventually("the claim is let go", async () => {
      const claim = await kube.get(
        resources.persistentVolumeClaims,
        { namespace: "default", name: "data" },
        { signal },
      );
      return !claim?.metadata.finalizers?.includes(claimFinalizer);
    });
    expect((await world.reasons()).toSorted()).toEqual([
      "CreatingSnapshot",
      "SnapshotCreated",
      "SnapshotReady",
    ]);

    await kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal });
    await world.eventually("gone", async () => (await world.snapshot("s")) === undefined);
    expect(await world.contents()).toEqual([]);
    expect(world.snapshots.byId.size).toBe(0);
    for (const part of parts) await part.stop();
  });
});
