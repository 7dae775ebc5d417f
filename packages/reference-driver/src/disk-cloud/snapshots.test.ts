import { HostError, SimulatedHost } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aDisk, csi, gibibyte, instance, never, openCloud } from "../testing/cloud-fixture.ts";
import { type HostForTest, hostForms } from "../testing/host-forms.ts";
import type { DiskCloudService } from "./disk-cloud.ts";
import type { ProviderCloud } from "./provider-cloud.ts";

const one = instance(1).instanceId;

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    return error instanceof CloudError ? error.code : `not a CloudError: ${error}`;
  }
}

describe.each(hostForms)("copies on the %s host", (_form, make) => {
  let machine: HostForTest;
  let service: DiskCloudService;
  let cloud: ProviderCloud;
  let mounts = 0;
  beforeEach(async () => {
    machine = await make();
    service = await openCloud(machine.host, `${machine.dir}/cloud`);
    cloud = service.forCaller(csi);
  });
  afterEach(async () => {
    await service.stop();
    await machine.close();
  });

  /** Attaches and mounts the disk; formats it when it is blank. */
  async function mounted(diskId: string): Promise<string> {
    const { host, dir } = machine;
    const { devicePath } = await cloud.attachDisk(diskId, one, never);
    if ((await host.fileSystemOf(devicePath)) === undefined) await host.format(devicePath, "ext4");
    const path = `${dir}/m${++mounts}`;
    await host.makeDirectory(path);
    await host.mountDevice(devicePath, path, { fsType: "ext4" });
    return path;
  }

  test("snapshot and clone of a mounted disk hold its data, and a restored disk may be larger", async () => {
    const { host, dir } = machine;
    const { id } = await cloud.createDisk(aDisk, never);
    const m = await mounted(id);
    await host.writeFileAtomic(`${m}/data`, "original");
    const snapshot = await cloud.createSnapshot({ name: "s", diskId: id }, never);
    expect(snapshot).toMatchObject({
      id: expect.stringMatching(/^snap-[0-9a-f]{17}$/),
      name: "s",
      diskId: id,
    });
    expect(snapshot.sizeBytes).toBe(gibibyte);
    expect(await cloud.createSnapshot({ name: "s", diskId: id }, never)).toEqual(snapshot);
    await host.writeFileAtomic(`${m}/data`, "changed");

    const source = { kind: "snapshot", id: snapshot.id } as const;
    const restored = await cloud.createDisk({ ...aDisk, name: "r", sizeBytes: 2n * gibibyte, source }, never);
    expect(restored).toMatchObject({ sizeBytes: 2n * gibibyte, source });
    expect(await host.readFile(`${await mounted(restored.id)}/data`)).toBe("original");
    const clone = await cloud.createDisk({ ...aDisk, name: "c", source: { kind: "disk", id } }, never);
    expect(await host.readFile(`${await mounted(clone.id)}/data`)).toBe("changed");

    // The snapshot outlives its disk, and the copies outlive the snapshot.
    await host.unmount(m);
    await cloud.detachDisk(id, one, never);
    await cloud.deleteDisk(id, never);
    expect(await cloud.listSnapshots(never)).toEqual([snapshot]);
    await cloud.deleteSnapshot(snapshot.id, never);
    await cloud.deleteSnapshot(snapshot.id, never);
    expect(await cloud.listSnapshots(never)).toEqual([]);
    expect(await host.readDirectory(`${dir}/cloud/snapshots`)).toEqual([]);
  });

  test("a group is of one instant, and is created and deleted as a whole", async () => {
    const disks = [];
    for (const name of ["a", "b"]) disks.push((await cloud.createDisk({ ...aDisk, name }, never)).id);
    const [a = "", b = ""] = disks;
    await mounted(a);
    const group = await cloud.createSnapshotGroup({ name: "g", diskIds: disks }, never);
    expect(group.snapshots.map((s) => [s.diskId, s.groupId])).toEqual([
      [a, group.id],
      [b, group.id],
    ]);
    expect(await cloud.createSnapshotGroup({ name: "g", diskIds: [b, a] }, never)).toEqual(group);
    expect(await codeOf(cloud.createSnapshotGroup({ name: "g", diskIds: [a] }, never))).toBe("AlreadyExists");
    expect(await cloud.describeSnapshotGroup(group.id, never)).toEqual(group);
    const member = group.snapshots[0]?.id ?? "";
    expect(await codeOf(cloud.deleteSnapshot(member, never))).toBe("InvalidArgument");
    await cloud.deleteSnapshotGroup(group.id, never);
    await cloud.deleteSnapshotGroup(group.id, never);
    expect(await cloud.listSnapshots(never)).toEqual([]);
    expect(await cloud.describeSnapshotGroup(group.id, never)).toBeUndefined();
  });

  test("a disk that is attached read-only stays so, and is not attached otherwise", async () => {
    const { id } = await cloud.createDisk(aDisk, never);
    const how = { use: "mount", readOnly: true };
    await cloud.attachDisk(id, one, never, how);
    await cloud.attachDisk(id, one, never, how);
    await cloud.attachDisk(id, one, never);
    expect(await codeOf(cloud.attachDisk(id, one, never, { use: "mount" }))).toBe("AlreadyExists");
    expect(await codeOf(cloud.attachDisk(id, one, never, { ...how, use: "block" }))).toBe("AlreadyExists");
    expect((await cloud.describeDisk(id, never))?.attachments).toMatchObject([how]);
    await cloud.detachDisk(id, one, never);
    await cloud.attachDisk(id, one, never, { use: "mount" });
    expect((await cloud.describeDisk(id, never))?.attachments).not.toMatchObject([{ readOnly: true }]);
  });

  test("a disk whose backing file is gone is abnormal", async () => {
    const { id } = await cloud.createDisk(aDisk, never);
    expect(await cloud.diskConditions([id, "vol-0"], never)).toEqual({
      [id]: { abnormal: false, message: "the disk is healthy" },
    });
    await service.setCondition(id, "its shelf burns", never);
    expect((await cloud.diskConditions([id], never))[id]).toEqual({
      abnormal: true,
      message: "its shelf burns",
    });
    await service.setCondition(id, undefined, never);
    await machine.host.removeFile(`${machine.dir}/cloud/disks/${id}`);
    expect((await cloud.diskConditions([id], never))[id]).toMatchObject({ abnormal: true });
  });
});

describe("rules", () => {
  test("names, sources and changes", async () => {
    const cloud = (await openCloud(new SimulatedHost(), "/cloud")).forCaller(csi);
    const { id } = await cloud.createDisk({ ...aDisk, fingerprint: "x" }, never);
    const other = await cloud.createDisk({ ...aDisk, name: "other" }, never);
    expect(await codeOf(cloud.createDisk({ ...aDisk, fingerprint: "y" }, never))).toBe("AlreadyExists");
    expect(await codeOf(cloud.createDisk(aDisk, never))).toBe("ok");
    const source = { kind: "disk", id: other.id } as const;
    expect(await codeOf(cloud.createDisk({ ...aDisk, source }, never))).toBe("AlreadyExists");
    const missing = { kind: "snapshot", id: "snap-0" } as const;
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "c", source: missing }, never))).toBe("NotFound");
    await cloud.resizeDisk(other.id, 2n * gibibyte, never);
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "c", source }, never))).toBe("InvalidArgument");
    // What was made and has changed since is found again by what it was made with.
    await cloud.modifyDisk(other.id, { type: "io2", settings: { iops: "5000" } }, never);
    expect(await cloud.createDisk({ ...aDisk, name: "other" }, never)).toMatchObject({
      sizeBytes: 2n * gibibyte,
      createdBytes: gibibyte,
      type: "io2",
      settings: { iops: "5000" },
    });
    await cloud.modifyDisk(other.id, { settings: { throughput: "250" } }, never);
    expect(await cloud.describeDisk(other.id, never)).toMatchObject({
      type: "io2",
      settings: { iops: "5000", throughput: "250" },
    });
    expect(await codeOf(cloud.modifyDisk("vol-0", {}, never))).toBe("NotFound");
    await cloud.createSnapshot({ name: "s", diskId: id }, never);
    expect(await codeOf(cloud.createSnapshot({ name: "s", diskId: other.id }, never))).toBe("AlreadyExists");
    expect(await codeOf(cloud.createSnapshot({ name: "t", diskId: "vol-0" }, never))).toBe("NotFound");
    expect(await codeOf(cloud.createSnapshotGroup({ name: "t", diskIds: [id, "vol-0"] }, never))).toBe(
      "NotFound",
    );
    expect(await cloud.listSnapshots(never)).toHaveLength(1);
  });

  test("a zone has only so much room", async () => {
    const service = await openCloud(new SimulatedHost(), "/cloud", { zoneCapacityBytes: 3n * gibibyte });
    const cloud = service.forCaller(csi);
    const { id } = await cloud.createDisk({ ...aDisk, sizeBytes: 2n * gibibyte }, never);
    expect(await cloud.zoneCapacity("us-east-1a", never)).toMatchObject({ availableBytes: gibibyte });
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "b", sizeBytes: 2n * gibibyte }, never))).toBe(
      "LimitExceeded",
    );
    expect(await codeOf(cloud.resizeDisk(id, 4n * gibibyte, never))).toBe("LimitExceeded");
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "b", zone: "us-east-1b" }, never))).toBe("ok");
    expect((await cloud.zoneCapacity("mars", never)).availableBytes).toBe(0n);
    expect(await cloud.listZones(never)).toContain("us-east-1b");
  });

  test("what cannot be copied leaves neither disk nor snapshot nor group", async () => {
    let isFull = false;
    const host = new SimulatedHost({
      beforeChange(operation, path) {
        if (isFull && operation === "copyDisks") throw new HostError(operation, path, "ENOSPC");
      },
    });
    const cloud = (await openCloud(host, "/cloud")).forCaller(csi);
    const { id } = await cloud.createDisk(aDisk, never);
    isFull = true;
    const source = { kind: "disk", id } as const;
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "c", source }, never))).toBe("NoSpace");
    expect(await codeOf(cloud.createSnapshot({ name: "s", diskId: id }, never))).toBe("NoSpace");
    expect(await codeOf(cloud.createSnapshotGroup({ name: "g", diskIds: [id] }, never))).toBe("NoSpace");
    expect(await cloud.listDisks(never)).toHaveLength(1);
    expect(await cloud.listSnapshots(never)).toEqual([]);
    expect(await host.readDirectory("/cloud/disks")).toEqual([id]);
    expect(await host.readFile("/cloud/state.json")).not.toMatch(/"(snap|group)-/);
  });
});

test("power lost at any write of copying, cutting and deleting: repeated after the restart, all is as if it had not been", async () => {
  let cuts = 0;
  for (let at = 1; ; at++) {
    let writes = Number.NEGATIVE_INFINITY;
    const host: SimulatedHost = new SimulatedHost({
      beforeChange() {
        if (++writes === at) host.losePower();
      },
    });
    const open = async () => (await openCloud(host, "/cloud")).forCaller(csi);
    const cloud = await open();
    const { id } = await cloud.createDisk(aDisk, never);
    const other = await cloud.createDisk({ ...aDisk, name: "other" }, never);
    const life = async (on: ProviderCloud) => {
      const { id: snapshot } = await on.createSnapshot({ name: "s", diskId: id }, never);
      const group = await on.createSnapshotGroup({ name: "g", diskIds: [id, other.id] }, never);
      const source = { kind: "snapshot", id: snapshot } as const;
      const restored = await on.createDisk({ ...aDisk, name: "r", source, sizeBytes: 2n * gibibyte }, never);
      const clone = await on.createDisk({ ...aDisk, name: "c", source: { kind: "disk", id } }, never);
      for (const disk of [restored, clone]) {
        expect((await host.stat(`/cloud/disks/${disk.id}`))?.sizeBytes).toBe(Number(disk.sizeBytes));
        await on.deleteDisk(disk.id, never);
      }
      await on.deleteSnapshotGroup(group.id, never);
      await on.deleteSnapshot(snapshot, never);
    };
    writes = 0;
    // A call that the loss of power cut off never settles.
    const settled = await Promise.race([life(cloud).then(() => true), idle(() => host.boots > 1)]);
    writes = Number.NEGATIVE_INFINITY;
    if (host.boots > 1) {
      cuts++;
      await life(await open());
    }
    const after = await open();
    expect((await after.listDisks(never)).map((disk) => disk.id).sort()).toEqual([id, other.id].sort());
    expect(await after.listSnapshots(never)).toEqual([]);
    expect([...((await host.readDirectory("/cloud/disks")) ?? [])].sort()).toEqual([id, other.id].sort());
    expect(await host.readDirectory("/cloud/snapshots")).toEqual([]);
    expect(await host.readFile("/cloud/state.json")).not.toMatch(/"(snap|group)-/);
    if (settled) break;
  }
  expect(cuts).toBeGreaterThan(30);
});

/** Resolves with false once the condition holds and everything that could still happen has. */
async function idle(condition: () => boolean): Promise<false> {
  for (;;) {
    if (condition()) return false;
    await new Promise(setImmediate);
  }
}
