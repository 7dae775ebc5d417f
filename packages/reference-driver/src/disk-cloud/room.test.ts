/** Disks have room for all their bytes, or are refused: what was written and synced must never lack room later. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CsiConnection, inProcessCsi, VolumeCapability_AccessMode_Mode as Mode } from "@longshore/csi";
import { HostError, kernelHost, SimulatedHost } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createReferenceDriver } from "../driver/index.ts";
import { aDisk, csi, gibibyte, instance, never, openCloud, testEnv } from "../testing/cloud-fixture.ts";

const one = instance(1).instanceId;
const capacityBytes = Number(3n * gibibyte);

test("a disk takes its room when it is made; the one that has none is refused and leaves nothing", async () => {
  const host = new SimulatedHost({ capacityBytes });
  const cloud = (await openCloud(host, "/cloud")).forCaller(csi);
  await cloud.createDisk({ ...aDisk, name: "a", sizeBytes: 2n * gibibyte }, never);
  const failure = await cloud
    .createDisk({ ...aDisk, name: "b", sizeBytes: 2n * gibibyte }, never)
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: "NoSpace",
    message: expect.stringContaining("has no room for it: free space there"),
  });
  expect((await cloud.listDisks(never)).map(({ name }) => name)).toEqual(["a"]);
  expect(await host.readDirectory("/cloud/disks")).toHaveLength(1);
});

test("a disk that has no room to grow stays as it is, and what it has stays its own", async () => {
  const host = new SimulatedHost({ capacityBytes });
  const cloud = (await openCloud(host, "/cloud")).forCaller(csi);
  const { id } = await cloud.createDisk(aDisk, never);
  const { devicePath } = await cloud.attachDisk(id, one, never);
  await expect(cloud.resizeDisk(id, 5n * gibibyte, never)).rejects.toMatchObject({ code: "NoSpace" });
  expect(await cloud.describeDisk(id, never)).toMatchObject({ sizeBytes: gibibyte });
  expect((await host.stat(devicePath))?.sizeBytes).toBe(Number(gibibyte));
  expect(await cloud.resizeDisk(id, 2n * gibibyte, never)).toBe(2n * gibibyte);
});

test("a copy has room of its own, for all of the disk", async () => {
  const host = new SimulatedHost({ capacityBytes });
  const cloud = (await openCloud(host, "/cloud")).forCaller(csi);
  const { id } = await cloud.createDisk({ ...aDisk, sizeBytes: 2n * gibibyte }, never);
  const snapshot = await cloud.createSnapshot({ name: "s", diskId: id }, never);
  const from = (kind: "disk" | "snapshot", source: string) =>
    cloud.createDisk({ ...aDisk, name: kind, sizeBytes: 2n * gibibyte, source: { kind, id: source } }, never);
  await expect(from("snapshot", snapshot.id)).rejects.toMatchObject({ code: "NoSpace" });
  await expect(from("disk", id)).rejects.toMatchObject({ code: "NoSpace" });
  expect(await host.readDirectory("/cloud/disks")).toHaveLength(1);
});

test("a cloud that was killed while a disk grew comes back on a full disk, with the disk attached", async () => {
  let isFull = false;
  const host = new SimulatedHost({
    beforeChange(operation, path) {
      if (isFull && operation === "allocateFile") throw new HostError(operation, path, "ENOSPC");
    },
  });
  const cloud = (await openCloud(host, "/cloud")).forCaller(csi);
  const { id } = await cloud.createDisk(aDisk, never);
  const { devicePath } = await cloud.attachDisk(id, one, never);
  const state = (await host.readFile("/cloud/state.json")) ?? "";
  await host.writeFileAtomic("/cloud/state.json", state.replace(`"${gibibyte}"`, `"${2n * gibibyte}"`));
  isFull = true;
  const again = (await openCloud(host, "/cloud")).forCaller(csi);
  expect((await again.describeDisk(id, never))?.attachments).toEqual([{ instanceId: one, devicePath }]);
});

test("CreateVolume and ControllerExpandVolume answer RESOURCE_EXHAUSTED", async () => {
  const host = new SimulatedHost({ capacityBytes });
  const cloud = (await openCloud(host, "/cloud")).forCaller(csi);
  const hub = inProcessCsi(testEnv());
  const options = { driverName: "ebs.csi.aws.com", nodeName: "node-1", services: "both" } as const;
  await hub.serve("/csi.sock", createReferenceDriver({ ...testEnv(), host, cloud }, options));
  const driver: CsiConnection = hub.connect("/csi.sock");
  const call = { signal: never, timeoutMs: 20_000 };
  const volumeCapabilities = [
    { accessType: { case: "mount" as const, value: {} }, accessMode: { mode: Mode.SINGLE_NODE_WRITER } },
  ];
  const create = (name: string, requiredBytes: bigint) =>
    driver.controller.createVolume({ name, volumeCapabilities, capacityRange: { requiredBytes } }, call);
  const { volume } = await create("a", 2n * gibibyte);
  await expect(create("b", 2n * gibibyte)).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  const grow = { volumeId: volume?.volumeId ?? "", capacityRange: { requiredBytes: 4n * gibibyte } };
  await expect(driver.controller.controllerExpandVolume(grow, call)).rejects.toMatchObject({
    code: "RESOURCE_EXHAUSTED",
  });
});

const isRoot = process.platform === "linux" && process.getuid?.() === 0;

describe.skipIf(!isRoot)("on a small disk of this machine (needs root)", () => {
  const host = kernelHost();
  let dir: string;
  beforeEach(() => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), "longshore-room-")));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256m", "tmpfs", dir]);
  });
  afterEach(async () => {
    if (await host.isMountPoint(`${dir}/m`)) await host.unmount(`${dir}/m`);
    for (const name of (await host.readDirectory(`${dir}/cloud/disks`)) ?? []) {
      await host.detachLoop(`${dir}/cloud/disks/${name}`);
    }
    // The kernel lets go of a loop device only when its last reader has closed it.
    await expect.poll(() => execFileSync("umount", [dir]), { timeout: 30_000 }).toBeDefined();
    rmSync(dir, { recursive: true, force: true });
  }, 40_000);
  const sizeBytes = 128n * 1024n * 1024n;

  test("a disk keeps its room through mkfs, a mount, and discards", async () => {
    const cloud = (await openCloud(host, `${dir}/cloud`)).forCaller(csi);
    const { id } = await cloud.createDisk({ ...aDisk, sizeBytes }, never);
    const taken = () => statSync(`${dir}/cloud/disks/${id}`).blocks * 512;
    expect(taken()).toBeGreaterThanOrEqual(Number(sizeBytes));
    const { devicePath } = await cloud.attachDisk(id, one, never);
    await host.format(devicePath, "ext4");
    await host.makeDirectory(`${dir}/m`);
    await host.mountDevice(devicePath, `${dir}/m`, { fsType: "ext4", flags: ["discard"] });
    await host.writeFileAtomic(`${dir}/m/f`, "x".repeat(1 << 20));
    await host.removeFile(`${dir}/m/f`);
    await host.runProgram("fstrim", { args: [`${dir}/m`], signal: never });
    await host.runProgram("sync", { args: ["-f", `${dir}/m`], signal: never });
    expect(taken()).toBeGreaterThanOrEqual(Number(sizeBytes));
    await expect(cloud.createDisk({ ...aDisk, name: "b", sizeBytes }, never)).rejects.toMatchObject({
      code: "NoSpace",
    });
    // A request that is far too large takes no room from others even for a moment.
    await expect(
      cloud.createDisk({ ...aDisk, name: "c", sizeBytes: 2n ** 45n }, never),
    ).rejects.toMatchObject({ code: "NoSpace" });
    expect(await host.readDirectory(`${dir}/cloud/disks`)).toEqual([id]);
    const { availableBytes } = await cloud.zoneCapacity("us-east-1a", never);
    expect(availableBytes).toBeLessThan(sizeBytes);
  });

  test("a snapshot takes room for what is on the disk alone; a disk made of it takes all of its own", async () => {
    const cloud = (await openCloud(host, `${dir}/cloud`)).forCaller(csi);
    const taken = (path: string) => statSync(`${dir}/cloud/${path}`).blocks * 512;
    const half = sizeBytes / 2n;
    const { id } = await cloud.createDisk({ ...aDisk, sizeBytes: half }, never);
    const { devicePath } = await cloud.attachDisk(id, one, never);
    await host.writeDevice(devicePath, "data");
    const snapshot = await cloud.createSnapshot({ name: "s", diskId: id }, never);
    expect(taken(`snapshots/${snapshot.id}`)).toBeGreaterThan(0);
    expect(taken(`snapshots/${snapshot.id}`)).toBeLessThan(1 << 20);
    expect(statSync(`${dir}/cloud/snapshots/${snapshot.id}`).size).toBe(Number(half));
    const source = { kind: "snapshot", id: snapshot.id } as const;
    const restored = await cloud.createDisk({ ...aDisk, name: "b", sizeBytes: half, source }, never);
    expect(taken(`disks/${restored.id}`)).toBeGreaterThanOrEqual(Number(half));
    const own = execFileSync("head", ["-c", "4", `${dir}/cloud/disks/${restored.id}`]).toString();
    expect(own).toBe("data");
  });
});
