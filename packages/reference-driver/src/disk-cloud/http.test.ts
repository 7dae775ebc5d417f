import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { type Component, SimulatedHost, VirtualClock } from "@longshore/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  aDisk,
  csi,
  gibibyte,
  instance,
  inTree,
  never,
  openCloud,
  testEnv,
} from "../testing/cloud-fixture.ts";
import { connectDiskCloud, type DiskCloudClient } from "./http-client.ts";
import { serveDiskCloud } from "./http-server.ts";

let dir: string;
let socket: string;
let host: SimulatedHost;
let server: Component;
const clients: DiskCloudClient[] = [];

function connect(caller = csi, options = {}): DiskCloudClient {
  const client = connectDiskCloud(testEnv(), socket, caller, options);
  clients.push(client);
  return client;
}

beforeEach(async () => {
  dir = await mkdtemp(`${tmpdir()}/longshore-`);
  socket = `${dir}/cloud.sock`;
  host = new SimulatedHost();
  server = await serveDiskCloud(await openCloud(host, "/cloud"), socket);
});

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await server.stop();
  await rm(dir, { recursive: true });
});

test("a whole life of a disk over the socket, with the caller in the log", async () => {
  const cloud = connect();
  const disk = await cloud.createDisk({ ...aDisk, tags: { team: "db" } }, never);
  expect(disk).toMatchObject({ ...aDisk, tags: { team: "db" }, attachments: [] });
  const attachment = await cloud.attachDisk(disk.id, instance(1).instanceId, never);
  expect(await cloud.describeDisk(disk.id, never)).toEqual({ ...disk, attachments: [attachment] });
  expect(await cloud.resizeDisk(disk.id, 2n ** 39n, never)).toBe(2n ** 39n);
  expect((await cloud.listDisks(never))[0]?.sizeBytes).toBe(2n ** 39n);
  await expect(cloud.deleteDisk(disk.id, never)).rejects.toMatchObject({
    name: "CloudError",
    code: "InUse",
    message: expect.stringContaining("detach it first"),
  });
  await cloud.detachDisk(disk.id, instance(1).instanceId, never);
  await connect(inTree).deleteDisk(disk.id, never);
  expect(await cloud.describeDisk(disk.id, never)).toBeUndefined();
  expect(await cloud.describeInstance("node-2", never)).toEqual(instance(2));
  expect(await cloud.describeInstance("node-9", never)).toBeUndefined();
  expect(await cloud.listInstances(never)).toHaveLength(3);
  const calls = await cloud.calls(0, never);
  expect(calls.filter(({ path }) => path === "in-tree")).toMatchObject([
    { ...inTree, op: "deleteDisk", diskId: disk.id, outcome: "ok" },
  ]);
});

test("each caller sees its provider's disks; credentials and zones go over the socket, and no key is logged", async () => {
  const gce = connect({ ...csi, provider: "gce-pd" });
  const made = await gce.createDisk({ ...aDisk, replicaZones: ["us-east-1b"] }, never);
  expect(made).toMatchObject({ id: "pvc-1", replicaZones: ["us-east-1b"] });
  expect(await connect().listDisks(never)).toEqual([]);
  const azure = connect({ ...csi, provider: "azure-disk" });
  const { id } = await azure.createDisk(aDisk, never);
  expect(await azure.attachDisk(id, instance(1).instanceId, never)).toMatchObject({ lun: 0 });

  const files = connect({ ...csi, provider: "azure-file" });
  const share = await files.createDisk({ ...aDisk, zone: "" }, never);
  const credentials = await files.shareCredentials(share.id, never);
  const attach = (how: object) => files.attachDisk(share.id, instance(1).instanceId, never, how);
  expect(await attach({ credentials })).toMatchObject({ devicePath: expect.stringContaining("/shares/") });
  await expect(attach({ credentials: { ...credentials, key: "no" } })).rejects.toMatchObject({
    code: "Unauthenticated",
  });
  await expect(attach({ credentials: { user: "x" } })).rejects.toMatchObject({
    code: "InvalidArgument",
    message: expect.stringContaining("credentials must have user and key"),
  });
  await expect(files.createDisk({ ...aDisk, tags: { a: 1 } as never }, never)).rejects.toThrow(
    /argument tags must be a map of strings/,
  );
  await expect(connect({ ...csi, provider: "other" as never }).listDisks(never)).rejects.toThrow(
    /caller.provider of the request must be one of aws-ebs, gce-pd/,
  );
  const calls = await files.calls(0, never);
  expect(calls.map(({ provider }) => provider)).toContain("azure-file");
  expect(JSON.stringify(calls)).not.toContain(credentials.key);
  expect(await host.readFile("/cloud/calls.jsonl")).not.toContain(credentials.key);
});

test("the admin's part works over the socket, too", async () => {
  const cloud = connect();
  await cloud.registerInstance({ ...instance(1), instanceId: "i-new", nodeName: "new" }, never);
  expect(await cloud.describeInstance("new", never)).toMatchObject({ instanceId: "i-new" });
  await cloud.deregisterInstance("i-new", never);
  await cloud.setKnobs("listDisks", { failNext: 1 }, never);
  await expect(cloud.listDisks(never)).rejects.toMatchObject({ code: "Throttled" });
  expect(await cloud.counters(never)).toMatchObject({ total: 2 });
  await cloud.setKnobs("listDisks", { failNext: 1 }, never, "cinder");
  await cloud.listDisks(never);
  await expect(connect({ ...csi, provider: "cinder" }).listDisks(never)).rejects.toThrow(
    /overLimit: listDisks/,
  );
  await expect(cloud.setKnobs("nonsense" as "*", {}, never)).rejects.toMatchObject({
    code: "InvalidArgument",
  });
});

test("the socket is for its owner only, and gone after the stop", async () => {
  expect((await stat(socket)).mode & 0o777).toBe(0o600);
  await server.stop();
  await expect(stat(socket)).rejects.toThrow("ENOENT");
});

test("a second cloud on the socket is refused; what a dead one left is replaced", async () => {
  await expect(serveDiskCloud(await openCloud(new SimulatedHost(), "/c"), socket)).rejects.toThrow(
    /already running on .*: stop it or use another directory/,
  );
  await server.stop();
  await writeFile(socket, "");
  server = await serveDiskCloud(await openCloud(host, "/cloud"), socket);
  expect(await connect().listDisks(never)).toEqual([]);
});

test("a socket that cannot be made is one sentence", async () => {
  const service = await openCloud(new SimulatedHost(), "/c");
  await expect(serveDiskCloud(service, `${dir}/missing/cloud.sock`)).rejects.toThrow(/cannot listen on/);
});

test("a dead cloud is Unavailable, with one sentence; the client finds the next one", async () => {
  const cloud = connect();
  await cloud.createDisk(aDisk, never);
  await server.stop();
  await expect(cloud.listDisks(never)).rejects.toMatchObject({
    code: "Unavailable",
    message: `the disk cloud does not answer on ${socket}: see that it is running ("longshore cluster status")`,
  });
  server = await serveDiskCloud(await openCloud(host, "/cloud"), socket);
  expect(await cloud.listDisks(never)).toHaveLength(1);
});

test("a cloud that does not answer is Unavailable at the deadline of the client's clock", async () => {
  const silent = createServer();
  const path = `${dir}/silent.sock`;
  await new Promise<void>((resolve) => silent.listen(path, resolve));
  const clock = new VirtualClock();
  const client = connectDiskCloud(testEnv(clock), path, csi, { timeoutMs: 5000 });
  clients.push(client);
  await expect(clock.run(client.listDisks(never))).rejects.toMatchObject({
    code: "Unavailable",
    message: expect.stringContaining("did not answer listDisks within 5000 ms"),
  });
  await new Promise((resolve) => silent.close(resolve));
});

test("giving up rejects with the caller's reason", async () => {
  const cloud = connect();
  await cloud.setKnobs("listDisks", { delayMs: 60_000 }, never);
  const controller = new AbortController();
  const reason = new Error("enough");
  const listing = cloud.listDisks(controller.signal);
  controller.abort(reason);
  await expect(listing).rejects.toBe(reason);
});

test("what is not the protocol is refused with a reason", async () => {
  const cloud = connect();
  const bad = { ...aDisk, sizeBytes: "many" as unknown as bigint };
  await expect(cloud.createDisk(bad, never)).rejects.toMatchObject({ code: "InvalidArgument" });
  await expect(cloud.describeDisk(7 as unknown as string, never)).rejects.toMatchObject({
    message: "argument diskId must be a string",
  });
  expect(await cloud.createDisk({ ...aDisk, sizeBytes: 3n * gibibyte }, never)).toMatchObject({
    sizeBytes: 3n * gibibyte,
  });
});

test("the blocks of a snapshot over the socket", async () => {
  const cloud = connect();
  const { id } = await cloud.createDisk(aDisk, never);
  const { devicePath } = await cloud.attachDisk(id, instance(1).instanceId, never);
  await host.format(devicePath, "ext4");
  const before = await cloud.createSnapshot({ name: "before", diskId: id }, never);
  await host.makeDirectory("/m");
  await host.mountDevice(devicePath, "/m", { fsType: "ext4" });
  await host.writeFileAtomic("/m/data", "x".repeat(600_000));
  const after = await cloud.createSnapshot({ name: "after", diskId: id }, never);
  const blocks = (snapshotId: string, over = {}) =>
    cloud.snapshotBlocks({ snapshotId, from: 0, max: 10, ...over }, never);
  expect(await blocks(before.id)).toEqual({ blocks: [0] });
  expect(await blocks(after.id, { max: 2 })).toEqual({ blocks: [0, 1], next: 2 });
  expect(await blocks(after.id, { from: 2 })).toEqual({ blocks: [2] });
  expect(await blocks(after.id, { baseSnapshotId: after.id })).toEqual({ blocks: [] });
  expect(await blocks(after.id, { baseSnapshotId: before.id })).toEqual({ blocks: [0, 1, 2] });
  await expect(blocks("snap-0")).rejects.toMatchObject({ code: "NotFound" });
  await expect(blocks(after.id, { baseSnapshotId: "snap-0" })).rejects.toMatchObject({ code: "NotFound" });
  await expect(blocks(after.id, { from: -1 })).rejects.toMatchObject({ code: "InvalidArgument" });
});
