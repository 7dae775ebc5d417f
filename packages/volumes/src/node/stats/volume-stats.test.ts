/** Room and health of mounted volumes. Source: docs/behaviour/node-agent.md 13. */
import { NodeServiceCapability_RPC_Type as Capability } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { recordingMeter } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { driverName, NodeWorld, rootDir } from "../testing/node-world.ts";
import { type TestDriverOptions, testDriver } from "../testing/test-driver.ts";
import type { VolumeUse } from "../volume-manager/volume-use.ts";
import { decideStatsStep, type ObservedStats, type StatsStep, statsPeriodMs } from "./decide-stats-step.ts";
import { volumeStatsSummary } from "./volume-stats-summary.ts";

const counts: TestDriverOptions = { rpcs: [Capability.GET_VOLUME_STATS, Capability.VOLUME_CONDITION] };
const metric = (name: string) => `kubelet_volume_stats_${name}`;
const labelsOf = (id: string) => ({ namespace: "default", persistentvolumeclaim: `claim-${id}` });

/** A node with a pod for each volume, in-tree or of a driver. */
async function mounted(
  driver: TestDriverOptions | undefined,
  ids: readonly string[] = ["vol-1"],
  volumeMode: "Filesystem" | "Block" = "Filesystem",
) {
  const meter = recordingMeter();
  const world = await NodeWorld.create({ meter });
  if (driver !== undefined) await world.serveDriver(testDriver(world.host, driver));
  const agent = world.start();
  for (const id of ids) {
    const csi = { csi: { driver: driverName, volumeHandle: id, fsType: "ext4" } };
    const ebs = { awsElasticBlockStore: { volumeID: `aws://us-east-1a/${id}` } };
    await world.volume(id, { ...(driver === undefined ? ebs : csi), volumeMode });
    await (driver === undefined ? world.attachInTree(id) : world.attachCsi(id));
    const pod = await (volumeMode === "Block" ? world.blockPod(`p-${id}`, [id]) : world.pod(`p-${id}`, [id]));
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  }
  await world.clock.advance(1_000);
  const value = (name: string, id = "vol-1") => meter.value(metric(name), labelsOf(id));
  const measurements = (id = "vol-1") =>
    world.driver.calls.filter((call) => call === `NodeGetVolumeStats ${id}`).length;
  return { world, agent, value, measurements };
}

describe("a volume's figures", () => {
  it("in-tree, are those of its file system (node-agent.md 13)", async () => {
    const { world, agent, value } = await mounted(undefined);
    expect(value("capacity_bytes")).toBe(2 ** 20);
    const [{ path } = { path: "" }] = [...agent.volumes.mountedVolumes((await podOf(world)).uid).values()];
    await world.host.writeFileAtomic(`${path}/data`, "x".repeat(1000));
    await world.clock.advance(statsPeriodMs);
    expect(value("used_bytes")).toBe(1000);
    expect(value("available_bytes")).toBe(2 ** 20 - 1000);
    await agent.stop();
  });

  it("of a driver, are what it says, for metrics and the summary (node-agent.md 13)", async () => {
    const { world, agent, value } = await mounted(counts);
    expect(value("inodes_free")).toBe(9);
    const time = expect.stringMatching(/Z$/);
    const pvcRef = { namespace: "default", name: "claim-vol-1" };
    const bytes = { capacityBytes: 2 ** 20, availableBytes: 2 ** 20, usedBytes: 0 };
    const inodes = { inodes: 10, inodesFree: 9, inodesUsed: 1 };
    const { uid } = await podOf(world);
    expect(agent.volumes.volumeStats()).toEqual([
      {
        podRef: { name: "p-vol-1", namespace: "default", uid },
        volume: [{ time, name: "data-vol-1", pvcRef, ...bytes, ...inodes }],
      },
    ]);
    await agent.stop();
  });

  it("are measured once in a minute, whatever happens (node-agent.md 13)", async () => {
    const { world, agent, measurements } = await mounted(counts);
    await world.clock.advance(10 * statsPeriodMs);
    expect(measurements()).toBe(11);
    await agent.stop();
  });

  it("are not requested of a driver without GET_VOLUME_STATS (node-agent.md 13)", async () => {
    const { world, agent, measurements } = await mounted({});
    await world.clock.advance(5 * statsPeriodMs);
    expect(measurements()).toBe(0);
    expect(agent.volumes.volumeStats()).toEqual([]);
    await agent.stop();
  });

  it("go with the last mount (node-agent.md 13)", async () => {
    const { world, agent, value, measurements } = await mounted(counts);
    expect(value("capacity_bytes")).toBe(2 ** 20);
    const { uid } = await podOf(world);
    await world.deletePod("p-vol-1");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    await world.clock.advance(statsPeriodMs);
    expect(value("capacity_bytes")).toBe(0);
    expect(agent.volumes.volumeStats()).toEqual([]);
    const count = measurements();
    await world.clock.advance(5 * statsPeriodMs);
    expect(measurements()).toBe(count);
    await agent.stop();
  });

  it("of one volume wait for no other whose driver hangs (node-agent.md 13)", async () => {
    const ids = Array.from({ length: 9 }, (_, index) => `vol-${index + 1}`);
    const { world, agent, value, measurements } = await mounted(counts, ids);
    world.driver.before = (rpc, id) =>
      rpc === "NodeGetVolumeStats" && id !== "vol-9" ? new Promise(() => {}) : undefined;
    await world.clock.advance(10 * statsPeriodMs);
    expect(measurements("vol-9")).toBeGreaterThanOrEqual(5);
    expect(value("capacity_bytes", "vol-9")).toBe(2 ** 20);
    expect(value("capacity_bytes", "vol-1")).toBe(0);
    await agent.stop();
  });
});

describe("the figures of a block volume", () => {
  const ids = ["vol-1"];
  it.each<[string, TestDriverOptions | undefined]>([
    ["in-tree, are the size of its device", undefined],
    ["of a driver, are the total that it says", counts],
  ])("%s, for metrics and the summary (node-agent.md 13)", async (_name, driver) => {
    const { world, agent, value } = await mounted(driver, ids, "Block");
    const all = ["capacity_bytes", "available_bytes", "used_bytes", "inodes"].map((name) => value(name));
    expect(all).toEqual([2 ** 20, 0, 0, 0]);
    expect(agent.volumes.volumeStats()[0]?.volume).toEqual([
      {
        time: expect.stringMatching(/Z$/),
        name: "data-vol-1",
        pvcRef: { namespace: "default", name: "claim-vol-1" },
        capacityBytes: 2 ** 20,
      },
    ]);
    await world.growVolume("vol-1");
    await world.clock.advance(statsPeriodMs);
    expect(value("capacity_bytes")).toBe(2 ** 21);
    await agent.stop();
  });

  it("are requested of a driver for what it has staged and published (node-agent.md 13)", async () => {
    const { world, agent } = await mounted(counts, ids, "Block");
    const { uid } = await podOf(world);
    const devices = `${rootDir}/plugins/kubernetes.io/csi/volumeDevices`;
    expect(world.driver.lastStats).toEqual({
      volumePath: `${devices}/publish/pv-vol-1/${uid}`,
      stagingPath: `${devices}/staging/pv-vol-1`,
    });
    await agent.stop();
  });

  it("go with the last pod that has it (node-agent.md 13)", async () => {
    const { world, agent, value } = await mounted(undefined, ids, "Block");
    const { uid } = await podOf(world);
    await world.deletePod("p-vol-1");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    await world.clock.advance(statsPeriodMs);
    expect(value("capacity_bytes")).toBe(0);
    expect(agent.volumes.volumeStats()).toEqual([]);
    await agent.stop();
  });

  it("are none where something else than a device lies (node-agent.md 13)", async () => {
    const { world, agent, value } = await mounted(undefined, ids, "Block");
    const { uid } = await podOf(world);
    const file = `${rootDir}/plugins/kubernetes.io/aws-ebs/volumeDevices/aws/us-east-1a/vol-1/${uid}`;
    await world.host.unmount(file);
    await world.clock.advance(statsPeriodMs);
    expect(value("capacity_bytes")).toBe(0);
    expect(agent.volumes.volumeStats()).toEqual([]);
    await agent.stop();
  });
});

describe("a volume that is not well", () => {
  it("has events and a metric until it is well again (node-agent.md 13)", async () => {
    const { world, agent, value } = await mounted(counts);
    expect(value("health_status_abnormal")).toBe(0);
    world.driver.condition = { abnormal: true, message: "the disk is slow" };
    await world.clock.advance(2 * statsPeriodMs);
    expect(value("health_status_abnormal")).toBe(1);
    expect(agent.volumes.volumeStats()[0]?.volume[0]?.volumeHealthStats).toEqual({ abnormal: true });
    expect(await world.eventReasons()).toEqual(["Pod VolumeConditionAbnormal"]);
    world.driver.condition = { abnormal: false, message: "" };
    await world.clock.advance(2 * statsPeriodMs);
    expect(value("health_status_abnormal")).toBe(0);
    expect(await world.eventReasons()).toEqual(["Pod VolumeConditionAbnormal", "Pod VolumeConditionNormal"]);
    await agent.stop();
  });

  it("is believed only of a driver with VOLUME_CONDITION (node-agent.md 13)", async () => {
    const { world, agent, value } = await mounted({ rpcs: [Capability.GET_VOLUME_STATS] });
    world.driver.condition = { abnormal: true, message: "the disk is slow" };
    await world.clock.advance(2 * statsPeriodMs);
    expect(value("health_status_abnormal")).toBe(0);
    expect(await world.eventReasons()).toEqual([]);
    await agent.stop();
  });
});

const use = (...names: string[]): VolumeUse => {
  const users = names.map((name) => ({
    pod: { metadata: { name, namespace: "n", uid: `uid-${name}`, resourceVersion: "1" } },
    spec: { readOnly: false, inlineVolumeSpecForCsiMigration: false },
    outerNames: new Set(["data"]),
    path: `/${name}`,
  }));
  return { plugin: {} as never, deviceMountPath: "", users: users as unknown as VolumeUse["users"] };
};

describe("what comes next", () => {
  const decide = pureDecision(decideStatsStep);
  const idle: ObservedStats = {
    nowMs: 1000,
    use: use("a"),
    nextMs: 0,
    isHanging: false,
    measured: undefined,
  };
  it.each<[string, ObservedStats, StatsStep]>([
    ["nothing is mounted", { ...idle, use: undefined }, { step: "forget" }],
    ["it is due", idle, { step: "measure", use: use("a") }],
    ["it is not", { ...idle, nextMs: 1500 }, { step: "wait", ms: 500 }],
    ["the last one hangs", { ...idle, isHanging: true }, { step: "wait", ms: statsPeriodMs }],
    [
      "it was measured",
      { ...idle, measured: "unknown", isHanging: true },
      { step: "report", use: use("a"), measured: "unknown" },
    ],
    [
      "it was unmounted while it was measured",
      { ...idle, use: undefined, measured: "unknown" },
      { step: "forget" },
    ],
  ])("%s", (_, observed, step) => expect(decide(observed)).toEqual(step));
});

it("the summary has pods and volumes in order, and leaves out what is not known", () => {
  const measured = { stats: {}, time: "2026-01-01T00:00:00Z" };
  const summary = volumeStatsSummary([{ use: use("b", "a"), measured }]);
  expect(summary.map(({ podRef }) => podRef.name)).toEqual(["a", "b"]);
  expect(summary[0]?.volume).toEqual([{ time: "2026-01-01T00:00:00Z", name: "data" }]);
});

async function podOf(world: NodeWorld) {
  const pod = await world.kube.get(resources.pods, { namespace: "default", name: "p-vol-1" }, world);
  if (pod === undefined) throw new Error("no pod p-vol-1");
  return pod.metadata;
}
