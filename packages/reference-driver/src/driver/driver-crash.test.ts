/** A driver that crashes, or a machine that loses power, before any of its writes: repeated, the calls end right. */
import { type CsiConnection, inProcessCsi, VolumeCapability_AccessMode_Mode as Mode } from "@longshore/csi";
import { HostError, SimulatedHost, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { csi, gibibyte, instance, never, openCloud, testEnv } from "../testing/cloud-fixture.ts";
import { createReferenceDriver } from "./reference-driver.ts";

const call = { signal: never, timeoutMs: 20_000 };
const capability = {
  accessType: { case: "mount" as const, value: { fsType: "ext4" } },
  accessMode: { mode: Mode.SINGLE_NODE_SINGLE_WRITER },
};
const block = { ...capability, accessType: { case: "block" as const, value: {} } };
const nodeId = instance(1).instanceId;
const accessibilityRequirements = {
  requisite: [{ segments: { "topology.ebs.csi.aws.com/zone": instance(1).zone } }],
};

const data = "what must not be lost";

/** What a CO does with volumes. Each call may be a repetition. */
class Caller {
  readonly driver: CsiConnection;
  readonly host: SimulatedHost;
  constructor(driver: CsiConnection, host: SimulatedHost) {
    this.driver = driver;
    this.host = host;
  }

  async create(name: string, more: Parameters<CsiConnection["controller"]["createVolume"]>[0] = {}) {
    const asked = { name, volumeCapabilities: [capability, block], accessibilityRequirements, ...more };
    const request = asked as Parameters<CsiConnection["controller"]["createVolume"]>[0];
    return (await this.driver.controller.createVolume(request, call)).volume?.volumeId ?? "";
  }

  delete(volumeId: string) {
    return this.driver.controller.deleteVolume({ volumeId }, call);
  }

  async use(volumeId: string, volumeCapability: typeof capability | typeof block = capability) {
    const { controller, node } = this.driver;
    const at = { volumeId, stagingTargetPath: `/stage/${volumeId}`, targetPath: `/pods/${volumeId}/mount` };
    for (const dir of [at.stagingTargetPath, `/pods/${volumeId}`]) await this.host.makeDirectory(dir);
    await controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability }, call);
    await node.nodeStageVolume({ ...at, volumeCapability }, call);
    await node.nodePublishVolume({ ...at, volumeCapability, readonly: volumeCapability === block }, call);
    return at;
  }

  async leave(at: Awaited<ReturnType<Caller["use"]>>) {
    const { controller, node } = this.driver;
    await node.nodeUnpublishVolume(at, call);
    await node.nodeUnstageVolume(at, call);
    await controller.controllerUnpublishVolume({ volumeId: at.volumeId, nodeId }, call);
  }

  /** A copy that is used once: it has the data. */
  async copy(name: string, type: { case: "snapshot"; value: object } | { case: "volume"; value: object }) {
    const volumeContentSource = { type } as Parameters<
      CsiConnection["controller"]["createVolume"]
    >[0]["volumeContentSource"];
    const capacityRange = { requiredBytes: 3n * gibibyte };
    const copy = await this.create(name, { volumeContentSource: volumeContentSource ?? {}, capacityRange });
    const inCopy = await this.use(copy);
    expect(await this.host.readFile(`${inCopy.targetPath}/data`)).toBe(data);
    await this.leave(inCopy);
    await this.delete(copy);
  }

  /** A volume in use, with data in it. */
  async begin() {
    const a = await this.use(await this.create("a"));
    await this.host.writeFileAtomic(`${a.targetPath}/data`, data);
    return a;
  }
}

/** The stories that are cut; each begins with a volume in use and ends with that alone. */
const stories: Readonly<Record<string, (caller: Caller) => Promise<unknown>>> = {
  "made, used, grown, changed, deleted": async (caller) => {
    const { controller, node } = caller.driver;
    const b = await caller.use(await caller.create("b"));
    const { volumeId } = b;
    const capacityRange = { requiredBytes: 2n * gibibyte };
    await controller.controllerExpandVolume({ volumeId, capacityRange }, call);
    await node.nodeExpandVolume({ volumeId, volumePath: b.targetPath }, call);
    expect((await caller.host.usage(b.targetPath)).totalBytes).toBe(Number(2n * gibibyte));
    await controller.controllerModifyVolume({ volumeId, mutableParameters: { iops: "4000" } }, call);
    await caller.leave(b);
    await caller.delete(volumeId);
  },
  "cut and restored": async (caller) => {
    const { controller } = caller.driver;
    const sourceVolumeId = await caller.create("a");
    const { snapshot } = await controller.createSnapshot({ name: "s", sourceVolumeId }, call);
    const snapshotId = snapshot?.snapshotId ?? "";
    await caller.copy("restored", { case: "snapshot", value: { snapshotId } });
    await controller.deleteSnapshot({ snapshotId }, call);
  },
  cloned: async (caller) => {
    await caller.copy("clone", { case: "volume", value: { volumeId: await caller.create("a") } });
  },
  "cut as a group": async (caller) => {
    const { groupController } = caller.driver;
    const sourceVolumeIds = [await caller.create("a"), await caller.create("b")];
    const { groupSnapshot } = await groupController.createVolumeGroupSnapshot(
      { name: "g", sourceVolumeIds },
      call,
    );
    const groupSnapshotId = groupSnapshot?.groupSnapshotId ?? "";
    await groupController.deleteVolumeGroupSnapshot({ groupSnapshotId }, call);
    await caller.delete(sourceVolumeIds[1] ?? "");
  },
  "used as a device": async (caller) => {
    const device = await caller.use(await caller.create("device"), block);
    await caller.leave(device);
    await caller.delete(device.volumeId);
  },
};

/** How it ends. */
const ends = {
  "the machine loses power": (host: SimulatedHost) => host.losePower(),
  "the process is killed": () => {},
};

const cases = Object.entries(ends).flatMap(([how, end]) =>
  Object.entries(stories).map(([what, story]) => ({ how, end, what, story })),
);

test.each(cases)("a volume is $what, and $how before any write", async ({ end, story }) => {
  let cuts = 0;
  for (let at = 1; ; at++) {
    let isDead = false;
    let writes = Number.NEGATIVE_INFINITY;
    let die: () => void = () => {};
    const died = new Promise<"died">((resolve) => {
      die = () => resolve("died");
    });
    const host: SimulatedHost = new SimulatedHost({
      beforeChange(operation, path) {
        if (++writes === at) {
          isDead = true;
          end(host);
          die();
        }
        // What the dead process still tries does not happen.
        if (isDead) throw new HostError(operation, path, "EINTR");
      },
    });
    const start = async (): Promise<Caller> => {
      const env = testEnv(new VirtualClock());
      const cloud = (await openCloud(host, "/cloud", { env })).forCaller(csi);
      const hub = inProcessCsi(env);
      const options = { driverName: "ebs.csi.aws.com", nodeName: "node-1", recordsFile: "/records/r.json" };
      await hub.serve(
        "/csi.sock",
        createReferenceDriver({ ...env, host, cloud }, { ...options, services: "both" }),
      );
      return new Caller(hub.connect("/csi.sock"), host);
    };
    let caller = await start();
    await caller.begin();
    writes = 0;
    const outcome = await Promise.race([
      story(caller).catch((error: unknown) => (isDead ? ("died" as const) : Promise.reject(error))),
      died,
    ]);
    // Whatever the dead one had under way has failed by now.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    isDead = false;
    writes = Number.NEGATIVE_INFINITY;
    if (outcome === "died") {
      cuts++;
      caller = await start();
      await story(caller);
    }
    const a = await caller.use(await caller.create("a"));
    expect(await host.readFile(`${a.targetPath}/data`)).toBe(data);
    await caller.leave(a);
    await caller.delete(a.volumeId);
    expect([...(await host.listMounts("/stage")), ...(await host.listMounts("/pods"))]).toEqual([]);
    expect(host.disks.loops()).toEqual([]);
    expect(host.disks.violations).toEqual([]);
    expect(await host.readDirectory("/cloud/disks")).toEqual([]);
    expect((await host.readDirectory("/cloud/snapshots")) ?? []).toEqual([]);
    expect(JSON.parse((await host.readFile("/records/r.json")) ?? "")).toEqual({ volumes: {} });
    const state = JSON.parse((await host.readFile("/cloud/state.json")) ?? "") as Record<string, object>;
    for (const kind of ["disks", "snapshots", "groups"]) expect(state[kind] ?? {}).toEqual({});
    if (outcome !== "died") break;
  }
  expect(cuts).toBeGreaterThan(10);
});
