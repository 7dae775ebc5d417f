/** What the driver can do beyond the life of a plain volume, on every form of machine. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import {
  type CsiConnection,
  inProcessCsi,
  type MessageInitShape,
  VolumeCapability_AccessMode_Mode as Mode,
  VolumeUsage_Unit as Unit,
  type VolumeCapabilitySchema,
} from "@longshore/csi";
import { type Host, SimulatedHost } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DiskCloudService } from "../disk-cloud/index.ts";
import { csi, gibibyte, instance, never, openCloud, testEnv } from "../testing/cloud-fixture.ts";
import { type HostForTest, hostForms } from "../testing/host-forms.ts";
import { createReferenceDriver } from "./reference-driver.ts";

const call = { signal: never, timeoutMs: 20_000 };
const nodeId = instance(1).instanceId;
type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;
const capability = (
  mode: Mode,
  accessType: NonNullable<Capability["accessType"]> = { case: "mount", value: {} },
): Capability => ({ accessType, accessMode: { mode } });
const writer = capability(Mode.SINGLE_NODE_WRITER);
const block = capability(Mode.SINGLE_NODE_WRITER, { case: "block", value: {} });

async function codeOf(rpc: Promise<unknown>): Promise<string> {
  return rpc.then(
    () => "OK",
    (error: { readonly code?: string }) => String(error.code ?? error),
  );
}

const hasXfs = ["/sbin", "/usr/sbin"].some((bin) => existsSync(`${bin}/mkfs.xfs`));

describe.each(hostForms)("the reference driver on the %s host", (form, make) => {
  let machine: HostForTest;
  let host: Host;
  let dir: string;
  let service: DiskCloudService;
  let driver: CsiConnection;
  let start: () => Promise<void>;
  beforeEach(async () => {
    machine = await make();
    ({ host, dir } = machine);
    start = async () => {
      service = await openCloud(host, `${dir}/cloud`);
      const hub = inProcessCsi(testEnv());
      const services = createReferenceDriver(
        { ...testEnv(), host, cloud: service.forCaller(csi) },
        {
          driverName: "ebs.csi.aws.com",
          nodeName: "node-1",
          services: "both",
          zone: instance(1).zone,
          recordsFile: `${dir}/records/records.json`,
        },
      );
      await hub.serve("/csi.sock", services);
      driver = hub.connect("/csi.sock");
    };
    await start();
  });
  afterEach(async () => {
    await service.stop();
    await machine.close();
  });

  type Create = Parameters<CsiConnection["controller"]["createVolume"]>[0];
  async function create(name: string, more: Create = {}): Promise<string> {
    const asked = { name, volumeCapabilities: [writer], ...more } as Create;
    return (await driver.controller.createVolume(asked, call)).volume?.volumeId ?? "";
  }

  /** Published to the node, staged, and published at a path. */
  async function use(volumeId: string, volumeCapability: Capability = writer, readonly = false) {
    await driver.controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability, readonly }, call);
    const at = { volumeId, stagingTargetPath: `${dir}/stage/${volumeId}`, volumeCapability };
    await host.makeDirectory(at.stagingTargetPath);
    await host.makeDirectory(`${dir}/pods`);
    await driver.node.nodeStageVolume(at, call);
    const published = { ...at, targetPath: `${dir}/pods/${volumeId}`, readonly };
    await driver.node.nodePublishVolume(published, call);
    return published;
  }

  async function leave(at: Awaited<ReturnType<typeof use>>) {
    await driver.node.nodeUnpublishVolume(at, call);
    await driver.node.nodeUnstageVolume(at, call);
    await driver.controller.controllerUnpublishVolume({ volumeId: at.volumeId }, call);
  }

  const fileSystems = form === "kernel" && !hasXfs ? ["ext4"] : ["ext4", "xfs"];
  test.each(fileSystems)(
    "%s: what was cut from a mounted volume is restored, onto a larger one too",
    async (fsType) => {
      const mounted = capability(Mode.SINGLE_NODE_WRITER, { case: "mount", value: { fsType } });
      const original = await create("original", { capacityRange: { requiredBytes: gibibyte } });
      const at = await use(original, mounted);
      await host.writeFileAtomic(`${at.targetPath}/data`, "one");
      const { snapshot } = await driver.controller.createSnapshot(
        { name: "s", sourceVolumeId: original },
        call,
      );
      expect(snapshot).toMatchObject({ sizeBytes: gibibyte, readyToUse: true, sourceVolumeId: original });
      await host.writeFileAtomic(`${at.targetPath}/data`, "two");
      const restored = await create("restored", {
        capacityRange: { requiredBytes: 3n * gibibyte },
        volumeContentSource: {
          type: { case: "snapshot", value: { snapshotId: snapshot?.snapshotId ?? "" } },
        },
      });
      const clone = await create("clone", {
        volumeContentSource: { type: { case: "volume", value: { volumeId: original } } },
      });
      // The copies are used at the same time as their original.
      const [inRestored, inClone] = [await use(restored, mounted), await use(clone, mounted)];
      expect(await host.readFile(`${inRestored.targetPath}/data`)).toBe("one");
      expect(await host.readFile(`${inClone.targetPath}/data`)).toBe("two");
      if (form !== "unprivileged") {
        // A directory has the room of the machine; a file system grows with its volume.
        expect((await host.usage(inRestored.targetPath)).totalBytes).toBeGreaterThan(2.5 * 2 ** 30);
        expect((await host.usage(inClone.targetPath)).totalBytes).toBeLessThan(1.1 * 2 ** 30);
      }
      const { volume } = await driver.controller.controllerGetVolume({ volumeId: restored }, call);
      expect(volume?.contentSource?.type.case).toBe("snapshot");
      for (const used of [inRestored, inClone, at]) await leave(used);
      for (const volumeId of [original, restored, clone])
        await driver.controller.deleteVolume({ volumeId }, call);
      await driver.controller.deleteSnapshot({ snapshotId: snapshot?.snapshotId ?? "" }, call);
      expect(await host.listMounts(dir)).toEqual([]);
    },
  );

  test("a volume that grew while it was in no use has room when it is used again", async () => {
    const volumeId = await create("a", { capacityRange: { requiredBytes: gibibyte } });
    const at = await use(volumeId);
    await host.writeFileAtomic(`${at.targetPath}/data`, "x");
    await leave(at);
    const capacityRange = { requiredBytes: 2n * gibibyte };
    await driver.controller.controllerExpandVolume({ volumeId, capacityRange }, call);
    const again = await use(volumeId);
    expect(await host.readFile(`${again.targetPath}/data`)).toBe("x");
    if (form !== "unprivileged") {
      expect((await host.usage(again.targetPath)).totalBytes).toBeGreaterThan(1.7 * 2 ** 30);
    }
    await leave(again);
  });

  test("statistics hold bytes, inodes and whether the volume is abnormal", async () => {
    const at = await use(await create("a"));
    const { volumeId, targetPath: volumePath } = at;
    const stats = await driver.node.nodeGetVolumeStats({ volumeId, volumePath }, call);
    expect(stats.usage.map(({ unit }) => unit)).toEqual([Unit.BYTES, Unit.INODES]);
    for (const { total, available, used } of stats.usage) expect(used + available).toBe(total);
    expect(stats.volumeCondition).toMatchObject({ abnormal: false, message: expect.stringMatching(/./) });
    await service.setCondition(volumeId, "its shelf burns", never);
    const { status } = await driver.controller.controllerGetVolume({ volumeId }, call);
    expect(status).toMatchObject({
      publishedNodeIds: [nodeId],
      volumeCondition: { abnormal: true, message: "its shelf burns" },
    });
    await leave(at);
  });

  test("a volume for one writer is at one path, also after a restart of the driver", async () => {
    const single = capability(Mode.SINGLE_NODE_SINGLE_WRITER);
    const at = await use(await create("a"), single);
    const elsewhere = { ...at, targetPath: `${dir}/pods/elsewhere` };
    expect(await codeOf(driver.node.nodePublishVolume(elsewhere, call))).toBe("FAILED_PRECONDITION");
    await service.stop();
    await start();
    expect(await codeOf(driver.node.nodePublishVolume(elsewhere, call))).toBe("FAILED_PRECONDITION");
    expect(await codeOf(driver.node.nodePublishVolume(at, call))).toBe("OK");
    expect(await codeOf(driver.node.nodePublishVolume({ ...at, readonly: true }, call))).toBe(
      "ALREADY_EXISTS",
    );
    expect(await codeOf(driver.node.nodeStageVolume({ ...at, volumeCapability: block }, call))).toBe(
      "ALREADY_EXISTS",
    );
    await driver.node.nodeUnpublishVolume(at, call);
    expect(await codeOf(driver.node.nodePublishVolume(elsewhere, call))).toBe("OK");
    await driver.node.nodeUnpublishVolume(elsewhere, call);
    await leave(at);
  });

  test("a volume that is published read-only to the node cannot be written to there", async () => {
    const volumeId = await create("a");
    const first = await use(volumeId);
    await host.writeFileAtomic(`${first.targetPath}/data`, "x");
    await leave(first);
    const reader = await use(volumeId, writer, true);
    expect(await host.readFile(`${reader.targetPath}/data`)).toBe("x");
    await expect(host.writeFileAtomic(`${reader.targetPath}/data`, "y")).rejects.toMatchObject({
      code: "EROFS",
    });
    await leave(reader);
    const again = await use(volumeId);
    await host.writeFileAtomic(`${again.targetPath}/data`, "y");
    await leave(again);
  });

  test("a mounted volume is given to the pod's group", async () => {
    const gid = process.getegid?.() ?? 0;
    const mounted = capability(Mode.SINGLE_NODE_WRITER, {
      case: "mount",
      value: { volumeMountGroup: String(gid) },
    });
    const at = await use(await create("a"), mounted);
    expect((await host.stat(at.targetPath))?.mode).toBe(0o2775);
    if (form === "kernel") expect((await stat(at.targetPath)).gid).toBe(gid);
    await leave(at);
    const wrong = capability(Mode.SINGLE_NODE_WRITER, {
      case: "mount",
      value: { volumeMountGroup: "staff" },
    });
    expect(await codeOf(create("b", { volumeCapabilities: [wrong] }))).toBe("INVALID_ARGUMENT");
  });

  test("a block volume is staged before it is published, and snapshots have what is on it", async () => {
    const volumeId = await create("a", { volumeCapabilities: [block] });
    await driver.controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: block }, call);
    const at = {
      volumeId,
      stagingTargetPath: `${dir}/stage`,
      targetPath: `${dir}/pods/a`,
      volumeCapability: block,
    };
    await host.makeDirectory(`${dir}/pods`);
    expect(await codeOf(driver.node.nodePublishVolume(at, call))).toBe("FAILED_PRECONDITION");
    await driver.node.nodeStageVolume(at, call);
    await driver.node.nodePublishVolume(at, call);
    expect(
      await codeOf(driver.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId }, call)),
    ).toBe("OK");
    await leave({ ...at, readonly: false });
    expect(await host.stat(at.targetPath)).toBeUndefined();
  });
});

const kernel = hostForms.find(([form]) => form === "kernel");
test.skipIf(kernel === undefined)("a device that only readers have refuses writes (needs root)", async () => {
  const machine = await (kernel?.[1] ?? (() => Promise.reject(new Error("no kernel"))))();
  const { host, dir } = machine;
  const service = await openCloud(host, `${dir}/cloud`);
  const cloud = service.forCaller(csi);
  const hub = inProcessCsi(testEnv());
  const options = { driverName: "ebs.csi.aws.com", nodeName: "node-1", recordsFile: `${dir}/records/r.json` };
  await hub.serve(
    "/csi.sock",
    createReferenceDriver({ ...testEnv(), host, cloud }, { ...options, services: "both" }),
  );
  const { node } = hub.connect("/csi.sock");
  const { writeFile } = await import("node:fs/promises");
  const disk = { name: "a", zone: instance(1).zone, sizeBytes: gibibyte, type: "gp3", tags: {} };
  const { id: volumeId } = await cloud.createDisk(disk, never);
  await cloud.attachDisk(volumeId, nodeId, never);
  const at = { volumeId, stagingTargetPath: `${dir}/stage`, volumeCapability: block };
  await node.nodeStageVolume(at, call);
  await node.nodePublishVolume({ ...at, targetPath: `${dir}/reader`, readonly: true }, call);
  await expect(writeFile(`${dir}/reader`, "x")).rejects.toThrow();
  await node.nodePublishVolume({ ...at, targetPath: `${dir}/writer` }, call);
  await writeFile(`${dir}/writer`, "x");
  await node.nodeUnpublishVolume({ volumeId, targetPath: `${dir}/writer` }, call);
  await expect(writeFile(`${dir}/reader`, "x")).rejects.toThrow();
  await node.nodeUnpublishVolume({ volumeId, targetPath: `${dir}/reader` }, call);
  await node.nodeUnstageVolume(at, call);
  await cloud.detachDisk(volumeId, nodeId, never);
  await service.stop();
  await machine.close();
});

test("a file system with errors is corrected before it is staged, or not staged at all", async () => {
  const host = new SimulatedHost();
  const service = await openCloud(host, "/cloud");
  const hub = inProcessCsi(testEnv());
  const services = createReferenceDriver(
    { ...testEnv(), host, cloud: service.forCaller(csi) },
    { driverName: "ebs.csi.aws.com", nodeName: "node-1", services: "both" },
  );
  await hub.serve("/csi.sock", services);
  const driver = hub.connect("/csi.sock");
  const zone = { segments: { "topology.ebs.csi.aws.com/zone": instance(1).zone } };
  const asked = {
    name: "v",
    volumeCapabilities: [writer],
    accessibilityRequirements: { requisite: [zone], preferred: [zone] },
  };
  const { volume } = await driver.controller.createVolume(asked, call);
  const volumeId = volume?.volumeId ?? "";
  await driver.controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: writer }, call);
  const at = { volumeId, stagingTargetPath: "/stage", volumeCapability: writer };
  await host.makeDirectory("/stage");
  await driver.node.nodeStageVolume(at, call);
  await driver.node.nodeUnstageVolume(at, call);
  const fileSystem = host.disks.loops()[0]?.backing.disk.fileSystem;
  if (fileSystem === undefined) throw new Error("it has no file system");
  fileSystem.errors = "uncorrectable";
  expect(await codeOf(driver.node.nodeStageVolume(at, call))).toBe("INTERNAL");
  expect(await host.isMountPoint("/stage")).toBe(false);
  fileSystem.errors = "correctable";
  expect(await codeOf(driver.node.nodeStageVolume(at, call))).toBe("OK");
  expect(fileSystem.errors).toBe("none");
  // As the kernel leaves it after an error.
  const device = host.disks.loops()[0]?.path ?? "";
  await host.unmount("/stage");
  await host.mountDevice(device, "/stage", { fsType: "ext4", readOnly: true });
  const publish = driver.node.nodePublishVolume({ ...at, targetPath: "/target" }, call);
  await expect(publish).rejects.toThrow(/has become read-only at \/stage/);
  await service.stop();
});
