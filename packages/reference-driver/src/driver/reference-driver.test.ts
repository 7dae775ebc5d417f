import {
  BlockMetadataType,
  type CsiConnection,
  type CsiServer,
  grpcConnector,
  grpcListener,
  inProcessCsi,
  VolumeCapability_AccessMode_Mode as Mode,
} from "@longshore/csi";
import { type Host, HostError, SimulatedDisks, SimulatedHost, systemClock } from "@longshore/runtime";
import * as translation from "@longshore/translation";
import type { DiskCloud } from "@longshore/volumes";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DiskCloudService } from "../disk-cloud/index.ts";
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
import { type HostForTest, hostForms } from "../testing/host-forms.ts";
import { createReferenceDriver } from "./reference-driver.ts";

const call = { signal: never, timeoutMs: 50_000 };
const ebs = "ebs.csi.aws.com";
const node1 = instance(1).instanceId;

function mounted(
  fsType = "",
  mode: (typeof Mode)[keyof typeof Mode] = Mode.SINGLE_NODE_WRITER,
  mountFlags: string[] = [],
) {
  return { accessType: { case: "mount" as const, value: { fsType, mountFlags } }, accessMode: { mode } };
}
const block = {
  accessType: { case: "block" as const, value: {} },
  accessMode: { mode: Mode.SINGLE_NODE_WRITER },
};

async function codeOf(rpc: Promise<unknown>): Promise<string> {
  return rpc.then(
    () => "OK",
    (error: { readonly code?: string }) => String(error.code ?? error),
  );
}

/** The offsets of a stream whose ranges are as they must be. */
async function metadata(
  stream: AsyncIterable<{
    readonly blockMetadataType: number;
    readonly volumeCapacityBytes: bigint;
    readonly blockMetadata: readonly { readonly byteOffset: bigint; readonly sizeBytes: bigint }[];
  }>,
  maxResults: number,
): Promise<readonly bigint[]> {
  const offsets: bigint[] = [];
  let messages = 0;
  for await (const { blockMetadataType, volumeCapacityBytes, blockMetadata } of stream) {
    messages++;
    expect([blockMetadataType, volumeCapacityBytes]).toEqual([BlockMetadataType.FIXED_LENGTH, gibibyte]);
    if (maxResults > 0) expect(blockMetadata.length).toBeLessThanOrEqual(maxResults);
    for (const { byteOffset, sizeBytes } of blockMetadata) {
      expect(sizeBytes).toBe(524_288n);
      expect(byteOffset % sizeBytes).toBe(0n);
      expect(byteOffset).toBeGreaterThanOrEqual((offsets.at(-1) ?? -sizeBytes) + sizeBytes);
      offsets.push(byteOffset);
    }
  }
  expect(messages).toBeGreaterThan(0);
  return offsets;
}

const numbers = (_key: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);

/** A driver with all services, served and connected. */
interface World {
  readonly machine: HostForTest;
  readonly service: DiskCloudService;
  readonly cloud: DiskCloud;
  readonly driver: CsiConnection;
  close(): Promise<void>;
}

async function openWorld(
  transport: "in process" | "gRPC",
  makeMachine: () => Promise<HostForTest>,
): Promise<World> {
  const machine = await makeMachine();
  const { host, dir } = machine;
  const service = await openCloud(host, `${dir}/cloud`);
  const cloud = service.forCaller(csi);
  const env = testEnv();
  const inProcess = inProcessCsi(env);
  const [listener, connector] =
    transport === "gRPC" ? [grpcListener(env), grpcConnector(env)] : [inProcess, inProcess];
  const services = createReferenceDriver(
    { ...env, host, cloud },
    { driverName: ebs, nodeName: "node-1", services: "both" },
  );
  const server: CsiServer = await listener.serve(`${dir}/csi.sock`, services);
  const driver = connector.connect(`${dir}/csi.sock`);
  return {
    machine,
    service,
    cloud,
    driver,
    async close() {
      driver.close();
      await server.close();
      await service.stop();
      await machine.close();
    },
  };
}

const simulated: () => Promise<HostForTest> = async () => {
  return { host: new SimulatedHost(), dir: "/t", close: async () => {} };
};

const worlds = hostForms.flatMap(([form, make]) => {
  const transports = form === "simulated" ? (["in process"] as const) : (["in process", "gRPC"] as const);
  return transports.map((transport) => [form, transport, make] as const);
});

describe.each(worlds)("reference driver on the %s host, %s", (_form, transport, make) => {
  let world: World;
  let host: Host;
  let driver: CsiConnection;
  let staging: string;
  let target: string;
  beforeEach(async () => {
    world = await openWorld(transport, make);
    ({ driver } = world);
    ({ host } = world.machine);
    staging = `${world.machine.dir}/staging`;
    target = `${world.machine.dir}/pod/mount`;
    await host.makeDirectory(staging);
    await host.makeDirectory(`${world.machine.dir}/pod`);
  });
  afterEach(() => world.close());

  async function publishedVolume(capability: ReturnType<typeof mounted> | typeof block = mounted()) {
    const { volume } = await driver.controller.createVolume(
      {
        name: "pvc-1",
        volumeCapabilities: [capability],
        capacityRange: { requiredBytes: gibibyte },
        accessibilityRequirements: {
          requisite: [{ segments: { "topology.ebs.csi.aws.com/zone": "us-east-1a" } }],
        },
      },
      call,
    );
    const volumeId = volume?.volumeId ?? "";
    const { publishContext } = await driver.controller.controllerPublishVolume(
      { volumeId, nodeId: node1, volumeCapability: capability },
      call,
    );
    return { volumeId, publishContext };
  }

  test("the blocks of snapshots with data, and those that changed between two", async () => {
    const { controller, node, snapshotMetadata } = driver;
    const { volumeId, publishContext } = await publishedVolume();
    const stage = { volumeId, stagingTargetPath: staging, volumeCapability: mounted(), publishContext };
    await node.nodeStageVolume(stage, call);
    const cut = async (name: string) => {
      const { snapshot } = await controller.createSnapshot({ name, sourceVolumeId: volumeId }, call);
      return snapshot?.snapshotId ?? "";
    };
    await host.writeFileAtomic(`${staging}/data`, "x".repeat(3_000_000));
    const before = await cut("before");
    await host.writeFileAtomic(`${staging}/more`, "y".repeat(3_000_000));
    const after = await cut("after");

    const allocated = (snapshotId: string, startingOffset = 0n, maxResults = 0) =>
      metadata(
        snapshotMetadata.getMetadataAllocated({ snapshotId, startingOffset, maxResults }, call),
        maxResults,
      );
    const changed = (
      baseSnapshotId: string,
      targetSnapshotId: string,
      startingOffset = 0n,
      maxResults = 0,
    ) => {
      const request = { baseSnapshotId, targetSnapshotId, startingOffset, maxResults };
      return metadata(snapshotMetadata.getMetadataDelta(request, call), maxResults);
    };
    const held = await allocated(after);
    expect(held.length).toBeGreaterThanOrEqual(12);
    expect(held.length).toBeLessThan(400);
    const delta = await changed(before, after);
    expect(delta.length).toBeGreaterThanOrEqual(6);
    expect(delta.length).toBeLessThan(held.length);
    expect(await changed(after, after)).toEqual([]);
    expect(await allocated(after, 0n, 2)).toEqual(held);
    expect(await changed(before, after, 0n, 1)).toEqual(delta);
    // From within a block on: that one is the first.
    const middle = held[5] ?? 0n;
    expect(await allocated(after, middle + 7n)).toEqual(held.slice(5));
    expect(await allocated(after, middle + 524_288n)).toEqual(held.slice(6));
    expect(await allocated(after, gibibyte)).toEqual([]);

    await controller.createSnapshot({ name: "other", sourceVolumeId: await anotherVolume() }, call);
    const { entries } = await controller.listSnapshots({}, call);
    const other = entries
      .map(({ snapshot }) => snapshot?.snapshotId ?? "")
      .find((id) => id !== before && id !== after);
    expect(await codeOf(allocated(""))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(allocated("snap-0"))).toBe("NOT_FOUND");
    expect(await codeOf(allocated(after, -1n))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(allocated(after, 0n, -1))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(allocated(after, gibibyte + 1n))).toBe("OUT_OF_RANGE");
    expect(await codeOf(changed("", after))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(changed(before, ""))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(changed("snap-0", after))).toBe("NOT_FOUND");
    expect(await codeOf(changed(before, "snap-0"))).toBe("NOT_FOUND");
    expect(await codeOf(changed(other ?? "", after))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(changed(before, after, gibibyte + 1n))).toBe("OUT_OF_RANGE");
    // Two that were cut within one tick of the clock have no order.
    const times = new Map(entries.map(({ snapshot }) => [snapshot?.snapshotId, snapshot?.creationTime]));
    const isLater = JSON.stringify(times.get(before), numbers) !== JSON.stringify(times.get(after), numbers);
    expect(await codeOf(changed(after, before))).toBe(isLater ? "INVALID_ARGUMENT" : "OK");
    await node.nodeUnstageVolume({ volumeId, stagingTargetPath: staging }, call);
  });

  async function anotherVolume(): Promise<string> {
    const { id } = await world.cloud.createDisk({ ...aDisk, name: "another" }, never);
    return id;
  }

  test("the whole life of a volume, each call twice, data kept over it", async () => {
    const twice = async <T>(rpc: () => Promise<T>): Promise<T> => {
      await rpc();
      return rpc();
    };
    const capability = mounted("ext4");
    for (const round of [1, 2]) {
      const { volumeId, publishContext } = await twice(() => publishedVolume(capability));
      const stage = { volumeId, publishContext, stagingTargetPath: staging, volumeCapability: capability };
      await twice(() => driver.node.nodeStageVolume(stage, call));
      const publish = { ...stage, targetPath: target };
      await twice(() => driver.node.nodePublishVolume(publish, call));
      if (round === 1) await host.writeFileAtomic(`${target}/data`, "precious");
      else expect(await host.readFile(`${target}/data`)).toBe("precious");
      const stats = await driver.node.nodeGetVolumeStats({ volumeId, volumePath: target }, call);
      expect(stats.usage[0]?.total).toBeGreaterThan(0n);
      await twice(() => driver.node.nodeExpandVolume({ volumeId, volumePath: target }, call));

      expect(
        await codeOf(driver.controller.controllerUnpublishVolume({ volumeId, nodeId: node1 }, call)),
      ).toBe("FAILED_PRECONDITION");
      await twice(() => driver.node.nodeUnpublishVolume({ volumeId, targetPath: target }, call));
      expect(await host.stat(target)).toBeUndefined();
      await twice(() => driver.node.nodeUnstageVolume({ volumeId, stagingTargetPath: staging }, call));
      expect(await host.listMounts(world.machine.dir)).toEqual([]);
      expect(await codeOf(driver.controller.deleteVolume({ volumeId }, call))).toBe("FAILED_PRECONDITION");
      await twice(() => driver.controller.controllerUnpublishVolume({ volumeId, nodeId: node1 }, call));
      if (round === 2) await twice(() => driver.controller.deleteVolume({ volumeId }, call));
    }
    expect(await world.cloud.listDisks(never)).toEqual([]);
  });

  test("a read-only publish refuses writes, and is not a writable one", async () => {
    const { volumeId } = await publishedVolume();
    const stage = { volumeId, stagingTargetPath: staging, volumeCapability: mounted() };
    await driver.node.nodeStageVolume(stage, call);
    await driver.node.nodePublishVolume({ ...stage, targetPath: target, readonly: true }, call);
    await expect(host.writeFileAtomic(`${target}/data`, "")).rejects.toMatchObject({ code: "EROFS" });
    await driver.node.nodePublishVolume({ ...stage, targetPath: target, readonly: true }, call);
    expect(await codeOf(driver.node.nodePublishVolume({ ...stage, targetPath: target }, call))).toBe(
      "ALREADY_EXISTS",
    );
    // Kubernetes publishes one volume to several pods of a node.
    await driver.node.nodePublishVolume({ ...stage, targetPath: `${target}2` }, call);
    await host.writeFileAtomic(`${target}2/data`, "x");
    expect(await host.readFile(`${target}/data`)).toBe("x");
  });

  test("a raw block volume is a file at the target, not mounted at the staging path", async () => {
    const { volumeId, publishContext } = await publishedVolume(block);
    const stage = { volumeId, publishContext, stagingTargetPath: staging, volumeCapability: block };
    await driver.node.nodeStageVolume(stage, call);
    expect(await host.isMountPoint(staging)).toBe(false);
    await driver.node.nodePublishVolume({ ...stage, targetPath: target }, call);
    await driver.node.nodePublishVolume({ ...stage, targetPath: target }, call);
    expect((await host.stat(target))?.sizeBytes).toBe(Number(gibibyte));
    const stats = await driver.node.nodeGetVolumeStats({ volumeId, volumePath: target }, call);
    expect(stats.usage[0]?.total).toBe(gibibyte);
    await driver.node.nodeUnpublishVolume({ volumeId, targetPath: target }, call);
    expect(await host.stat(target)).toBeUndefined();
  });

  test("data that is there is never formatted away", async () => {
    const { volumeId, publishContext } = await publishedVolume();
    await host.format(publishContext.devicePath ?? "", "ext4");
    const stage = { volumeId, stagingTargetPath: staging, volumeCapability: mounted("ext3") };
    expect(await codeOf(driver.node.nodeStageVolume(stage, call))).toBe("FAILED_PRECONDITION");
    expect(await host.fileSystemOf(publishContext.devicePath ?? "")).toBe("ext4");
    await driver.node.nodeStageVolume({ ...stage, volumeCapability: mounted() }, call);
    expect(await host.isMountPoint(staging)).toBe(true);
  });

  test("an old device path in the publish context does not lead to another disk", async () => {
    const { volumeId } = await publishedVolume();
    const other = await world.cloud.createDisk({ ...aDisk, name: "other" }, never);
    const { devicePath } = await world.cloud.attachDisk(other.id, node1, never);
    const stage = {
      volumeId,
      publishContext: { devicePath },
      stagingTargetPath: staging,
      volumeCapability: mounted(),
    };
    await driver.node.nodeStageVolume(stage, call);
    expect(await host.fileSystemOf(devicePath)).toBeUndefined();
  });

  test("a directory with data in it is not removed by unpublishing", async () => {
    await host.makeDirectory(target);
    await host.writeFileAtomic(`${target}/data`, "x");
    expect(
      await codeOf(driver.node.nodeUnpublishVolume({ volumeId: "vol-1", targetPath: target }, call)),
    ).toBe("INTERNAL");
    expect(await host.readFile(`${target}/data`)).toBe("x");
  });
});

describe("codes", () => {
  let world: World;
  let driver: CsiConnection;
  beforeEach(async () => {
    world = await openWorld("in process", simulated);
    ({ driver } = world);
  });
  afterEach(() => world.close());

  const one = [mounted()];
  const create = (request: Parameters<CsiConnection["controller"]["createVolume"]>[0]) =>
    driver.controller.createVolume(request, call);
  const zone = (value: string) => ({ segments: { "topology.ebs.csi.aws.com/zone": value } });

  test("CreateVolume", async () => {
    expect(await codeOf(create({ volumeCapabilities: one }))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(create({ name: "a" }))).toBe("INVALID_ARGUMENT");
    const many = mounted("", Mode.MULTI_NODE_MULTI_WRITER);
    expect(await codeOf(create({ name: "a", volumeCapabilities: [many] }))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(create({ name: "a", volumeCapabilities: [mounted("ntfs")] }))).toBe(
      "INVALID_ARGUMENT",
    );
    const range = (requiredBytes: bigint, limitBytes: bigint) =>
      create({ name: "a", volumeCapabilities: one, capacityRange: { requiredBytes, limitBytes } });
    expect(await codeOf(range(2n * gibibyte, gibibyte))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(range(1n, 2n))).toBe("OUT_OF_RANGE");
    const source = { type: { case: "volume" as const, value: { volumeId: "x" } } };
    expect(await codeOf(create({ name: "a", volumeCapabilities: one, volumeContentSource: source }))).toBe(
      "NOT_FOUND",
    );
    expect(await codeOf(range(gibibyte + 1n, 0n))).toBe("OK");
    expect((await range(2n * gibibyte, 0n)).volume?.capacityBytes).toBe(2n * gibibyte);
    expect(await codeOf(range(gibibyte, 0n))).toBe("ALREADY_EXISTS");
    expect(await world.cloud.listDisks(never)).toHaveLength(1);
  });

  test("CreateVolume goes where it is best, and a repeat finds it where it is", async () => {
    const requisite = [zone("us-east-1b"), zone("us-east-1c")];
    const ask = (preferred: string) =>
      create({
        name: "a",
        volumeCapabilities: one,
        parameters: { Type: "io2", "csi.storage.k8s.io/pvc/name": "data" },
        accessibilityRequirements: { requisite, preferred: [zone(preferred)] },
      });
    const { volume } = await ask("us-east-1c");
    expect(volume?.accessibleTopology).toMatchObject([zone("us-east-1c")]);
    expect((await ask("us-east-1b")).volume?.volumeId).toBe(volume?.volumeId);
    const [disk] = await world.cloud.listDisks(never);
    expect(disk).toMatchObject({
      type: "io2",
      tags: { CSIVolumeName: "a", "csi.storage.k8s.io/pvc/name": "data" },
    });
    const elsewhere = { requisite: [{ segments: { "other/zone": "x" } }] };
    expect(
      await codeOf(create({ name: "b", volumeCapabilities: one, accessibilityRequirements: elsewhere })),
    ).toBe("RESOURCE_EXHAUSTED");
  });

  test("ControllerPublish and ControllerUnpublish", async () => {
    const publish = (volumeId: string, nodeId: string, more = {}) =>
      codeOf(
        driver.controller.controllerPublishVolume(
          { volumeId, nodeId, volumeCapability: mounted(), ...more },
          call,
        ),
      );
    const { id } = await world.cloud.createDisk(aDisk, never);
    expect(await publish("", node1)).toBe("INVALID_ARGUMENT");
    expect(await publish(id, "")).toBe("INVALID_ARGUMENT");
    expect(await publish(id, node1, { volumeCapability: undefined })).toBe("INVALID_ARGUMENT");
    expect(await publish(id, node1, { volumeCapability: mounted("", Mode.MULTI_NODE_MULTI_WRITER) })).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await publish("vol-0", node1)).toBe("NOT_FOUND");
    expect(await publish(id, "i-0")).toBe("NOT_FOUND");
    expect(await publish(id, instance(2).instanceId)).toBe("FAILED_PRECONDITION");
    await world.service.registerInstance(
      { ...instance(1), instanceId: "i-1", nodeName: "n", attachLimit: 0 },
      never,
    );
    expect(await publish(id, "i-1")).toBe("RESOURCE_EXHAUSTED");
    expect(await publish(id, node1)).toBe("OK");
    expect(await publish(id, node1)).toBe("OK");
    expect(await publish(id, node1, { readonly: true })).toBe("ALREADY_EXISTS");
    expect(await publish(id, node1, { volumeCapability: block })).toBe("ALREADY_EXISTS");
    expect(await publish(id, "i-1")).toBe("FAILED_PRECONDITION");
    await world.service.setKnobs("detachDisk", { loseReplyNext: 1 }, never);
    const unpublish = (volumeId: string, nodeId: string) =>
      codeOf(driver.controller.controllerUnpublishVolume({ volumeId, nodeId }, call));
    expect(await unpublish(id, node1)).toBe("UNAVAILABLE");
    expect(await unpublish(id, node1)).toBe("OK");
    expect(await unpublish("vol-0", node1)).toBe("OK");
    expect(await unpublish(id, "i-0")).toBe("OK");
    expect(await unpublish("", node1)).toBe("INVALID_ARGUMENT");
    await publish(id, node1);
    expect(await unpublish(id, "")).toBe("OK");
    expect((await world.cloud.describeDisk(id, never))?.attachments).toEqual([]);
  });

  test("validate, list, expand, capacity", async () => {
    for (const name of ["a", "b", "c"]) await world.cloud.createDisk({ ...aDisk, name }, never);
    const ids = (await world.cloud.listDisks(never)).map(({ id }) => id).sort();
    await world.cloud.attachDisk(ids[1] ?? "", node1, never);
    const validate = (volumeId: string, volumeCapabilities: ReturnType<typeof mounted>[]) =>
      driver.controller.validateVolumeCapabilities({ volumeId, volumeCapabilities }, call);
    expect((await validate(ids[0] ?? "", one)).confirmed?.volumeCapabilities).toHaveLength(1);
    expect(await validate(ids[0] ?? "", [mounted("", Mode.MULTI_NODE_MULTI_WRITER)])).toMatchObject({
      message: expect.stringContaining("MULTI_NODE_MULTI_WRITER"),
    });
    expect(await codeOf(validate("vol-0", one))).toBe("NOT_FOUND");
    expect(await codeOf(validate(ids[0] ?? "", []))).toBe("INVALID_ARGUMENT");

    const first = await driver.controller.listVolumes({ maxEntries: 2 }, call);
    const second = await driver.controller.listVolumes(
      { maxEntries: 2, startingToken: first.nextToken },
      call,
    );
    expect(
      [...first.entries, ...second.entries].map((e) => [e.volume?.volumeId, e.status?.publishedNodeIds]),
    ).toEqual([
      [ids[0], []],
      [ids[1], [node1]],
      [ids[2], []],
    ]);
    expect(second.nextToken).toBe("");
    expect(await codeOf(driver.controller.listVolumes({ startingToken: "invalid" }, call))).toBe("ABORTED");

    const expand = (volumeId: string, requiredBytes: bigint) =>
      driver.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes } }, call);
    expect(await expand(ids[0] ?? "", 5n * gibibyte)).toMatchObject({
      capacityBytes: 5n * gibibyte,
      nodeExpansionRequired: true,
    });
    expect(await codeOf(expand("vol-0", gibibyte))).toBe("NOT_FOUND");
    expect((await driver.controller.getCapacity({}, call)).availableCapacity).toBeGreaterThan(0n);
    const mars = await driver.controller.getCapacity({ accessibleTopology: zone("mars") }, call);
    expect(mars.availableCapacity).toBe(0n);
  });

  test("node calls", async () => {
    const { node } = driver;
    const { id } = await world.cloud.createDisk(aDisk, never);
    const stage = { volumeId: id, stagingTargetPath: "/s", volumeCapability: mounted() };
    const publish = { ...stage, targetPath: "/p" };
    expect(await codeOf(node.nodeStageVolume({ ...stage, volumeId: "" }, call))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(node.nodeStageVolume({ ...stage, stagingTargetPath: "" }, call))).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await codeOf(node.nodeStageVolume({ volumeId: id, stagingTargetPath: "/s" }, call))).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await codeOf(node.nodeStageVolume({ ...stage, volumeId: "vol-0" }, call))).toBe("NOT_FOUND");
    expect(await codeOf(node.nodeStageVolume(stage, call))).toBe("FAILED_PRECONDITION"); // Not attached.
    expect(await codeOf(node.nodePublishVolume(publish, call))).toBe("FAILED_PRECONDITION"); // Not staged.
    expect(await codeOf(node.nodePublishVolume({ ...publish, stagingTargetPath: "" }, call))).toBe(
      "FAILED_PRECONDITION",
    );
    expect(await codeOf(node.nodePublishVolume({ ...publish, targetPath: "" }, call))).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await codeOf(node.nodeUnpublishVolume({ volumeId: id }, call))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(node.nodeUnpublishVolume({ volumeId: id, targetPath: "/no" }, call))).toBe("OK");
    expect(await codeOf(node.nodeUnstageVolume({ volumeId: id }, call))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(node.nodeUnstageVolume({ volumeId: id, stagingTargetPath: "/no" }, call))).toBe("OK");
    expect(await codeOf(node.nodeGetVolumeStats({ volumeId: id }, call))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(node.nodeGetVolumeStats({ volumeId: id, volumePath: "/no" }, call))).toBe(
      "NOT_FOUND",
    );
    expect(await codeOf(node.nodeExpandVolume({ volumeId: "vol-0", volumePath: "/no" }, call))).toBe(
      "NOT_FOUND",
    );
    const blankReader = mounted("", Mode.SINGLE_NODE_READER_ONLY);
    await world.cloud.attachDisk(id, node1, never);
    expect(await codeOf(node.nodeStageVolume({ ...stage, volumeCapability: blankReader }, call))).toBe(
      "FAILED_PRECONDITION",
    );
    await node.nodeStageVolume(stage, call);
    const other = await world.cloud.createDisk({ ...aDisk, name: "other" }, never);
    await world.cloud.attachDisk(other.id, node1, never);
    expect(await codeOf(node.nodeStageVolume({ ...stage, volumeId: other.id }, call))).toBe("ALREADY_EXISTS");
  });

  test("what csi-sanity asks in its own way", async () => {
    const { controller, node } = driver;
    const { id } = await world.cloud.createDisk(aDisk, never);
    // It names paths that are none where it expects NOT_FOUND.
    for (const volumeId of ["some-volume", id]) {
      const nowhere = { volumeId, volumePath: "some/path" };
      expect(await codeOf(node.nodeGetVolumeStats(nowhere, call))).toBe("NOT_FOUND");
      expect(await codeOf(node.nodeExpandVolume(nowhere, call))).toBe("NOT_FOUND");
    }
    expect(await codeOf(node.nodePublishVolume({ volumeId: "id" }, call))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(node.nodeStageVolume({ volumeId: "id" }, call))).toBe("INVALID_ARGUMENT");
    const some = { volumeId: "some-vol-id", nodeId: "some-node-id", volumeCapability: mounted() };
    expect(await codeOf(controller.controllerPublishVolume(some, call))).toBe("NOT_FOUND");
    expect(await codeOf(create({ name: "x".repeat(128), volumeCapabilities: one }))).toBe("OK");
    expect(await codeOf(controller.listVolumes({ startingToken: "invalid-token" }, call))).toBe("ABORTED");
    expect(
      await codeOf(
        controller.controllerModifyVolume(
          { volumeId: "reallyfakevolumeid", mutableParameters: { iops: "1" } },
          call,
        ),
      ),
    ).toBe("NOT_FOUND");
    expect((await controller.listSnapshots({ snapshotId: "none-such" }, call)).entries).toEqual([]);
    expect((await controller.listSnapshots({ sourceVolumeId: "none-such" }, call)).entries).toEqual([]);
    expect(await codeOf(controller.getSnapshot({ snapshotId: "non-existing-snapshot-id" }, call))).toBe(
      "NOT_FOUND",
    );
    expect(await codeOf(controller.deleteSnapshot({ snapshotId: "reallyfakesnapshotid" }, call))).toBe("OK");
    const group = { groupSnapshotId: "reallyfakesnapshotid" };
    expect(await codeOf(driver.groupController.getVolumeGroupSnapshot(group, call))).toBe("NOT_FOUND");
    expect(await codeOf(driver.groupController.deleteVolumeGroupSnapshot(group, call))).toBe("OK");
    // Its expansion is not a whole number of GiB.
    const capacityRange = { requiredBytes: 10n * gibibyte + 1_000_000_000n };
    const grown = await controller.controllerExpandVolume({ volumeId: id, capacityRange }, call);
    expect(grown.capacityBytes).toBeGreaterThanOrEqual(capacityRange.requiredBytes);
  });

  test("a second call for a volume under way is ABORTED", async () => {
    const { id } = await world.cloud.createDisk(aDisk, never);
    await world.cloud.attachDisk(id, node1, never);
    const stage = { volumeId: id, stagingTargetPath: "/s", volumeCapability: mounted() };
    const codes = await Promise.all([1, 2].map(() => codeOf(driver.node.nodeStageVolume(stage, call))));
    expect(codes).toEqual(["OK", "ABORTED"]);
    expect(await codeOf(driver.node.nodeStageVolume(stage, call))).toBe("OK");
  });

  test("identity and node info", async () => {
    expect(await driver.identity.getPluginInfo({}, call)).toMatchObject({ name: ebs });
    expect((await driver.identity.probe({}, call)).ready).toBe(true);
    expect(await driver.node.nodeGetInfo({}, call)).toMatchObject({
      nodeId: node1,
      maxVolumesPerNode: 39n,
      accessibleTopology: { segments: { "topology.ebs.csi.aws.com/zone": "us-east-1a" } },
    });
  });
});

describe("in-tree and CSI reach the same disk", () => {
  test("what the in-tree code made and wrote, the driver stages under the translated handle", async () => {
    const world = await openWorld("in process", simulated);
    const { host } = world.machine;
    const inTreeCloud = world.service.forCaller(inTree);
    const disk = await inTreeCloud.createDisk(aDisk, never);
    const { devicePath } = await inTreeCloud.attachDisk(disk.id, node1, never);
    await host.format(devicePath, "ext4");
    await host.makeDirectory("/m");
    await host.mountDevice(devicePath, "/m", { fsType: "ext4" });
    await host.writeFileAtomic("/m/data", "by in-tree");
    await host.unmount("/m");
    await inTreeCloud.detachDisk(disk.id, node1, never);

    const pv = translation.translateInTreePVToCSI({
      metadata: { name: "pv" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        awsElasticBlockStore: { volumeID: `aws://us-east-1a/${disk.id}` },
      },
    });
    const volumeId = pv.spec?.csi?.volumeHandle ?? "";
    const capability = mounted();
    await world.driver.controller.controllerPublishVolume(
      { volumeId, nodeId: node1, volumeCapability: capability },
      call,
    );
    const stage = { volumeId, stagingTargetPath: "/s", volumeCapability: capability };
    await world.driver.node.nodeStageVolume(stage, call);
    expect(await host.readFile("/s/data")).toBe("by in-tree");
    await world.close();
  });
});

describe("a driver that ends at any point", () => {
  test("stage, publish, unpublish and unstage reach their end when called again", async () => {
    let crashes = 0;
    for (let at = 1; ; at++) {
      const disks = new SimulatedDisks();
      const cloudHost = new SimulatedHost({ name: "cloud", disks });
      const cloud = (await openCloud(cloudHost, "/cloud")).forCaller(csi);
      const { id: volumeId } = await cloud.createDisk(aDisk, never);
      await cloud.attachDisk(volumeId, node1, never);
      let count = 0;
      let hasCrashed = false;
      const host = new SimulatedHost({
        name: "node-1",
        disks,
        beforeChange(operation, path) {
          // The process ends before this change: nothing after it happens.
          if (++count === at) hasCrashed = true;
          if (hasCrashed) throw new HostError(operation, path, "EINTR");
        },
      });
      const newDriver = () =>
        createReferenceDriver(
          { ...testEnv(systemClock), host, cloud },
          { driverName: ebs, nodeName: "node-1", services: "node" },
        );
      const connect = async (endpoint: string) => {
        const hub = inProcessCsi(testEnv());
        await hub.serve(endpoint, newDriver());
        return hub.connect(endpoint).node;
      };
      const life = async (endpoint: string) => {
        const node = await connect(endpoint);
        const stage = { volumeId, stagingTargetPath: "/s", volumeCapability: mounted() };
        await node.nodeStageVolume(stage, call);
        await node.nodePublishVolume({ ...stage, targetPath: "/pod/mount" }, call);
        await host.appendFileDurable("/pod/mount/data", "x");
        await node.nodeUnpublishVolume({ volumeId, targetPath: "/pod/mount" }, call);
        await node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/s" }, call);
      };
      const wasCut = await life("/one.sock").then(
        () => false,
        () => true,
      );
      hasCrashed = false;
      count = Number.NEGATIVE_INFINITY; // The second life is not cut.
      if (wasCut) {
        crashes++;
        await life("/two.sock");
      }
      expect(await host.isMountPoint("/s")).toBe(false);
      expect(await host.stat("/pod/mount")).toBeUndefined();
      expect(disks.violations).toEqual([]);
      await cloud.detachDisk(volumeId, node1, never);
      if (!wasCut) break;
    }
    expect(crashes).toBeGreaterThan(8);
  });
});
