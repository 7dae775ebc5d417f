import { type Host, HostError, recordingLogger, SimulatedHost, VirtualClock } from "@longshore/runtime";
import { CloudError, type DiskCloud } from "@longshore/volumes";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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
import type { DiskCloudService } from "./disk-cloud.ts";

const one = instance(1).instanceId;
const two = instance(2).instanceId;

/** The device that a name of one stands for. */
const deviceOf = async (host: Host, path: string) => (await host.readLink(path)) ?? path;

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    return error instanceof CloudError ? error.code : `not a CloudError: ${error}`;
  }
}

describe.each(hostForms)("disk cloud on the %s host", (_form, make) => {
  let machine: HostForTest;
  let service: DiskCloudService;
  let cloud: DiskCloud;
  beforeEach(async () => {
    machine = await make();
    service = await openCloud(machine.host, `${machine.dir}/cloud`);
    cloud = service.forCaller(csi);
  });
  afterEach(async () => {
    await service.stop();
    await machine.close();
  });

  test("a disk is created once per name, with an id of EBS", async () => {
    const disk = await cloud.createDisk(aDisk, never);
    expect(disk).toEqual({
      ...aDisk,
      id: expect.stringMatching(/^vol-[0-9a-f]{17}$/),
      attachments: [],
      isCreating: false,
      createdBytes: gibibyte,
      settings: {},
    });
    expect(await cloud.createDisk(aDisk, never)).toEqual(disk);
    expect(await codeOf(cloud.createDisk({ ...aDisk, sizeBytes: 2n * gibibyte }, never))).toBe(
      "AlreadyExists",
    );
    expect(await codeOf(cloud.createDisk({ ...aDisk, zone: "us-east-1b" }, never))).toBe("AlreadyExists");
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "x", zone: "mars-1a" }, never))).toBe(
      "InvalidArgument",
    );
    expect(await codeOf(cloud.createDisk({ ...aDisk, name: "x", sizeBytes: 0n }, never))).toBe(
      "InvalidArgument",
    );
    expect(await cloud.listDisks(never)).toEqual([disk]);
    const file = await machine.host.stat(`${machine.dir}/cloud/disks/${disk.id}`);
    expect(file?.sizeBytes).toBe(Number(gibibyte));
  });

  test("creating the same name at the same time makes one disk", async () => {
    const disks = await Promise.all([1, 2, 3].map(() => cloud.createDisk(aDisk, never)));
    expect(new Set(disks.map(({ id }) => id)).size).toBe(1);
    expect(await cloud.listDisks(never)).toHaveLength(1);
  });

  test("attach, detach, delete: idempotent, one attachment, right zone, right codes", async () => {
    const { id } = await cloud.createDisk(aDisk, never);
    expect(await codeOf(cloud.attachDisk("vol-0", one, never))).toBe("NotFound");
    expect(await codeOf(cloud.attachDisk(id, "i-0", never))).toBe("NotFound");
    expect(await codeOf(cloud.attachDisk(id, two, never))).toBe("ZoneMismatch");
    const attachment = await cloud.attachDisk(id, one, never);
    expect(attachment.instanceId).toBe(one);
    expect(await machine.host.findLoop(`${machine.dir}/cloud/disks/${id}`)).toBe(
      await deviceOf(machine.host, attachment.devicePath),
    );
    expect(await cloud.attachDisk(id, one, never)).toEqual(attachment);
    expect((await cloud.describeDisk(id, never))?.attachments).toEqual([attachment]);
    await service.registerInstance({ ...instance(1), instanceId: "i-other", nodeName: "other" }, never);
    expect(await codeOf(cloud.attachDisk(id, "i-other", never))).toBe("InUse");
    expect(await codeOf(cloud.deleteDisk(id, never))).toBe("InUse");
    await cloud.detachDisk(id, "i-other", never);
    expect((await cloud.describeDisk(id, never))?.attachments).toEqual([attachment]);
    await cloud.detachDisk(id, one, never);
    await cloud.detachDisk(id, one, never);
    await cloud.detachDisk("vol-0", one, never);
    expect((await cloud.describeDisk(id, never))?.attachments).toEqual([]);
    await cloud.deleteDisk(id, never);
    await cloud.deleteDisk(id, never);
    expect(await cloud.describeDisk(id, never)).toBeUndefined();
    expect(await machine.host.readDirectory(`${machine.dir}/cloud/disks`)).toEqual([]);
  });

  test("a mounted disk is not detached, and its data follows it", async () => {
    const { host, dir } = machine;
    const { id } = await cloud.createDisk(aDisk, never);
    const { devicePath } = await cloud.attachDisk(id, one, never);
    await host.format(devicePath, "ext4");
    await host.makeDirectory(`${dir}/m`);
    await host.mountDevice(devicePath, `${dir}/m`, { fsType: "ext4" });
    await host.writeFileAtomic(`${dir}/m/data`, "kept");
    const refused = await cloud.detachDisk(id, one, never).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "InUse", message: expect.stringContaining("still mounted") });
    expect((await cloud.describeDisk(id, never))?.attachments).toHaveLength(1);
    await host.unmount(`${dir}/m`);
    await cloud.detachDisk(id, one, never);

    const again = await cloud.attachDisk(id, one, never);
    await host.mountDevice(again.devicePath, `${dir}/m`, { fsType: "ext4" });
    expect(await host.readFile(`${dir}/m/data`)).toBe("kept");
    await host.unmount(`${dir}/m`);
  });

  test("a disk grows, never shrinks, and its device sees it", async () => {
    const { id } = await cloud.createDisk(aDisk, never);
    const { devicePath } = await cloud.attachDisk(id, one, never);
    expect(await cloud.resizeDisk(id, 2n * gibibyte, never)).toBe(2n * gibibyte);
    expect(await cloud.resizeDisk(id, gibibyte, never)).toBe(2n * gibibyte);
    expect((await cloud.describeDisk(id, never))?.sizeBytes).toBe(2n * gibibyte);
    const device = await deviceOf(machine.host, devicePath);
    expect((await machine.host.stat(device))?.sizeBytes).toBe(Number(2n * gibibyte));
    expect(await codeOf(cloud.resizeDisk("vol-0", gibibyte, never))).toBe("NotFound");
  });

  test("a restarted cloud knows its disks and attachments", async () => {
    const { id } = await cloud.createDisk(aDisk, never);
    const attachment = await cloud.attachDisk(id, one, never);
    const before = await cloud.listDisks(never);
    await service.stop();
    expect(await codeOf(cloud.listDisks(never))).toBe("Unavailable");
    service = await openCloud(machine.host, `${machine.dir}/cloud`, { instances: [] });
    const after = service.forCaller(csi);
    expect(await after.listDisks(never)).toEqual(before);
    expect(await after.attachDisk(id, one, never)).toEqual(attachment);
    expect((await after.listInstances(never)).map((i) => i.nodeName)).toEqual(["node-1", "node-2", "node-3"]);
  });
});

describe("attach limit", () => {
  test("the last slot goes to one disk only, and is free again after a detach", async () => {
    const host = new SimulatedHost();
    const service = await openCloud(host, "/cloud", { instances: [instance(1, 2)] });
    const cloud = service.forCaller(inTree);
    const ids = [];
    for (const name of ["a", "b", "c", "d"]) ids.push((await cloud.createDisk({ ...aDisk, name }, never)).id);
    const codes = await Promise.all(ids.map((id) => codeOf(cloud.attachDisk(id, one, never))));
    expect(codes).toEqual(["ok", "ok", "LimitExceeded", "LimitExceeded"]);
    await cloud.detachDisk(ids[0] ?? "", one, never);
    expect(await codeOf(cloud.attachDisk(ids[2] ?? "", one, never))).toBe("ok");
  });
});

describe("crash at any write", () => {
  /** What a caller does until the disk is where it should be; it may be cut off anywhere and begun again. */
  const lives: Readonly<Record<string, (cloud: DiskCloud) => Promise<void>>> = {
    attach: async (cloud) => {
      const { id } = await cloud.createDisk(aDisk, never);
      await cloud.attachDisk(id, one, never);
    },
    detach: async (cloud) => {
      const { id } = await cloud.createDisk(aDisk, never);
      await cloud.attachDisk(id, one, never);
      await cloud.detachDisk(id, one, never);
    },
    delete: async (cloud) => {
      const present = (await cloud.listDisks(never))[0];
      if (present === undefined) await cloud.createDisk(aDisk, never);
      for (const { id } of await cloud.listDisks(never)) await cloud.deleteDisk(id, never);
    },
    resize: async (cloud) => {
      const disk = (await cloud.listDisks(never))[0] ?? (await cloud.createDisk(aDisk, never));
      await cloud.attachDisk(disk.id, one, never);
      await cloud.resizeDisk(disk.id, 2n * gibibyte, never);
    },
  };

  test.each(Object.keys(lives))("%s ends as if there had been no crash", async (name) => {
    const life = lives[name] ?? (async () => {});
    const undisturbed = await outcome(life, undefined);
    let at = 1;
    for (; ; at++) {
      const { state, crashed } = await outcome(life, at);
      expect(state, `power lost before write ${at}`).toEqual(undisturbed.state);
      if (!crashed) break;
    }
    expect(at).toBeGreaterThan(5);
  });

  /** The state after the life, with power lost before the n-th changing operation of the machine. */
  async function outcome(life: (cloud: DiskCloud) => Promise<void>, crashAt: number | undefined) {
    let count = 0;
    let isArmed = true;
    let lost: () => void = () => {};
    const powerLost = new Promise<"lost">((resolve) => {
      lost = () => resolve("lost");
    });
    const host: SimulatedHost = new SimulatedHost({
      beforeChange() {
        if (!isArmed || ++count !== crashAt) return;
        host.losePower();
        lost();
      },
    });
    const run = async () => {
      const service = await openCloud(host, "/cloud");
      await life(service.forCaller(csi));
      await service.stop();
      return "done" as const;
    };
    const crashed = (await Promise.race([run(), powerLost])) === "lost";
    isArmed = false;
    if (crashed) await run();
    const service = await openCloud(host, "/cloud");
    const disks = await service.forCaller(csi).listDisks(never);
    const files = await host.readDirectory("/cloud/disks");
    const devices = host.disks.loops().map(({ path, sizeBytes }) => ({ path, sizeBytes }));
    const nameless = disks.map((disk) => ({ ...disk, id: "" }));
    return { crashed, state: { disks: nameless, files: files?.length, devices } };
  }
});

describe("failures", () => {
  test("a full disk is NoSpace with the remedy, and changes nothing", async () => {
    let isFull = false;
    const host: Host = new SimulatedHost({
      beforeChange(operation, path) {
        if (isFull && operation === "writeFileAtomic") throw new HostError(operation, path, "ENOSPC");
      },
    });
    const service = await openCloud(host, "/cloud");
    const cloud = service.forCaller(csi);
    isFull = true;
    const failure = await cloud.createDisk(aDisk, never).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "NoSpace",
      message: expect.stringContaining("/cloud has no room for it: free space"),
    });
    expect(await cloud.listDisks(never)).toEqual([]);
    isFull = false;
    expect(await codeOf(cloud.createDisk(aDisk, never))).toBe("ok");
  });

  test("a machine that fails is Unavailable to the caller and logged", async () => {
    let isBroken = false;
    const host = new SimulatedHost({
      beforeChange(operation, path) {
        if (isBroken && operation === "attachLoop") throw new HostError(operation, path, "EIO");
      },
    });
    const logger = recordingLogger();
    const service = await openCloud(host, "/cloud", { env: { ...testEnv(), logger } });
    const cloud = service.forCaller(csi);
    const { id } = await cloud.createDisk(aDisk, never);
    isBroken = true;
    const failure = await cloud.attachDisk(id, one, never).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "Unavailable",
      message: "attachDisk failed on the disk cloud's machine: see its log and try again",
    });
    expect(logger.lines).toMatchObject([
      { level: "error", fields: { op: "attachDisk", error: { code: "EIO" } } },
    ]);
    isBroken = false;
    expect(await codeOf(cloud.attachDisk(id, one, never))).toBe("ok");
  });

  test("a damaged state file is one clear sentence", async () => {
    const host = new SimulatedHost();
    await host.makeDirectory("/cloud");
    await host.writeFileAtomic("/cloud/state.json", "{");
    await expect(openCloud(host, "/cloud")).rejects.toThrow(
      "the disk cloud's state /cloud/state.json is not JSON: restore it, or remove the directory to begin without disks",
    );
  });

  test("knobs: slow, failing and forgetful operations", async () => {
    const clock = new VirtualClock();
    const service = await openCloud(new SimulatedHost(), "/cloud", { clock });
    const cloud = service.forCaller(csi);
    await service.setKnobs("createDisk", { delayMs: 5000, failNext: 1, loseReplyNext: 1 }, never);
    const create = () => clock.run(codeOf(cloud.createDisk(aDisk, never)));
    expect(await create()).toBe("Throttled");
    expect(clock.monotonicMs()).toBe(5000);
    expect(await cloud.listDisks(never)).toEqual([]);
    expect(await create()).toBe("Unavailable");
    expect(await cloud.listDisks(never)).toHaveLength(1);
    expect(await create()).toBe("ok");
    expect(await cloud.listDisks(never)).toHaveLength(1);

    await service.setKnobs("*", { failPerMille: 1000, failCode: "Unavailable" }, never);
    expect(await codeOf(cloud.listDisks(never))).toBe("Unavailable");
    await service.setKnobs("*", {}, never);
    expect(await codeOf(cloud.listDisks(never))).toBe("ok");
  });

  test("a caller that gives up gets its reason; the change goes on", async () => {
    const clock = new VirtualClock();
    const service = await openCloud(new SimulatedHost(), "/cloud", { clock });
    const cloud = service.forCaller(csi);
    await service.setKnobs("attachDisk", { delayMs: 60_000 }, never);
    const { id } = await cloud.createDisk(aDisk, never);
    const controller = new AbortController();
    const reason = new Error("too slow");
    const attaching = cloud.attachDisk(id, one, controller.signal);
    controller.abort(reason);
    await expect(attaching).rejects.toBe(reason);
    expect(await service.calls(0, never)).toMatchObject([
      { op: "createDisk" },
      { op: "attachDisk", outcome: "Unavailable" },
    ]);
  });
});

describe("call log", () => {
  test("every call is numbered with caller, target and outcome; admin calls are not in it", async () => {
    const clock = new VirtualClock();
    const service = await openCloud(new SimulatedHost(), "/cloud", { clock });
    const { id } = await service.forCaller(inTree).createDisk(aDisk, never);
    await clock.advance(250);
    await service.forCaller(csi).attachDisk(id, one, never);
    await codeOf(service.forCaller(csi).deleteDisk(id, never));
    await service.forCaller(inTree).describeInstance("node-1", never);
    const calls = await service.calls(0, never);
    expect(calls).toEqual([
      {
        seq: 1,
        atMs: 0,
        ...inTree,
        op: "createDisk",
        diskId: undefined,
        instanceId: undefined,
        outcome: "ok",
      },
      { seq: 2, atMs: 250, ...csi, op: "attachDisk", diskId: id, instanceId: one, outcome: "ok" },
      { seq: 3, atMs: 250, ...csi, op: "deleteDisk", diskId: id, instanceId: undefined, outcome: "InUse" },
      {
        seq: 4,
        atMs: 250,
        ...inTree,
        op: "describeInstance",
        diskId: undefined,
        instanceId: one,
        outcome: "ok",
      },
    ]);
    expect((await service.calls(2, never)).map(({ seq }) => seq)).toEqual([3, 4]);
    expect(await service.counters(never)).toEqual({
      total: 4,
      dropped: 0,
      byCaller: [
        { ...inTree, op: "createDisk", count: 1 },
        { ...csi, op: "attachDisk", count: 1 },
        { ...csi, op: "deleteDisk", count: 1 },
        { ...inTree, op: "describeInstance", count: 1 },
      ],
    });
  });

  test("it survives a restart, goes on counting, and tolerates a torn last line", async () => {
    const host = new SimulatedHost();
    const first = await openCloud(host, "/cloud");
    await first.forCaller(inTree).createDisk(aDisk, never);
    await first.forCaller(inTree).listDisks(never);
    await first.stop();
    await host.appendFileDurable("/cloud/calls.jsonl", '{"seq":3,"pa');
    const second = await openCloud(host, "/cloud");
    await second.forCaller(csi).listDisks(never);
    expect((await second.calls(0, never)).map(({ seq, path, outcome }) => [seq, path, outcome])).toEqual([
      [1, "in-tree", "ok"],
      [2, "in-tree", "ok"],
      [3, "csi", "ok"],
    ]);
    expect((await second.counters(never)).byCaller).toHaveLength(3);
  });

  test("opening a cloud that is as it was writes nothing", async () => {
    const operations: string[] = [];
    const host = new SimulatedHost({
      beforeChange: (operation) => void operations.push(operation),
    });
    const first = await openCloud(host, "/cloud");
    const { id } = await first.forCaller(csi).createDisk(aDisk, never);
    await first.forCaller(csi).attachDisk(id, one, never);
    await first.stop();
    operations.length = 0;
    await openCloud(host, "/cloud");
    expect(operations.filter((operation) => /write|append|truncate|remove/i.test(operation))).toEqual([]);
  });

  test("a changing call is on the disk before it takes effect", async () => {
    const operations: string[] = [];
    const host = new SimulatedHost({ beforeChange: (op, path) => operations.push(`${op} ${path}`) });
    const service = await openCloud(host, "/cloud");
    operations.length = 0;
    await service.forCaller(csi).createDisk(aDisk, never);
    expect(operations[0]).toBe("appendFileDurable /cloud/calls.jsonl");
  });

  test("memory and file are bounded", async () => {
    const clock = new VirtualClock();
    const host = new SimulatedHost();
    const service = await openCloud(host, "/cloud", { callsMax: 10, clock });
    const cloud = service.forCaller(csi);
    for (let i = 0; i < 200; i++) {
      await cloud.listDisks(never);
      await clock.advance(250);
    }
    const calls = await service.calls(0, never);
    expect(calls.map(({ seq }) => seq)).toEqual([191, 192, 193, 194, 195, 196, 197, 198, 199, 200]);
    expect(await service.counters(never)).toMatchObject({
      total: 200,
      dropped: 190,
      byCaller: [{ count: 200 }],
    });
    const lines = (await host.readFile("/cloud/calls.jsonl"))?.trimEnd().split("\n");
    expect(lines?.length).toBeLessThanOrEqual(30);
  });
});

test("an instance that is taken away loses its attachments, but not a mounted one", async () => {
  const host = new SimulatedHost();
  const service = await openCloud(host, "/cloud");
  const cloud = service.forCaller(csi);
  const { id } = await cloud.createDisk(aDisk, never);
  const { devicePath } = await cloud.attachDisk(id, one, never);
  await host.format(devicePath, "ext4");
  await host.makeDirectory("/m");
  await host.mountDevice(devicePath, "/m", { fsType: "ext4" });
  expect(await codeOf(service.deregisterInstance(one, never))).toBe("InUse");
  await host.unmount("/m");
  await service.deregisterInstance(one, never);
  expect((await cloud.describeDisk(id, never))?.attachments).toEqual([]);
  expect(await cloud.describeInstance("node-1", never)).toBeUndefined();
});
