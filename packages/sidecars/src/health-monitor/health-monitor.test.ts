import { resources } from "@longshore/kube";
import { recordingLogger } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { startHealthMonitor } from "../index.ts";
import { addVolume, driver, emitted, healthWorld, socket } from "../testing/health-world.ts";
import { addNode, sidecarWorld } from "../testing/world.ts";

const csi = (volumeHandle: string) => ({ csi: { driver, volumeHandle } });
const minute = 60_000;

describe.each(["list", "get"] as const)("the health monitor, asking by %s,", (way) => {
  const period = way === "list" ? 5 * minute : minute;

  it("reports what is not well, and that it is well again", async () => {
    const world = await healthWorld(way);
    for (const name of ["a", "b", "c"]) {
      await addVolume(world, name, csi(`vol-${name}`));
      world.conditions.set(`vol-${name}`, { abnormal: false, message: "" });
    }
    const monitor = world.start();
    await world.clock.advance(minute);
    expect(await emitted(world)).toEqual([]);
    world.conditions.set("vol-c", { abnormal: true, message: "the disk is slow" });
    await world.clock.advance(2 * period);
    expect(await emitted(world)).toEqual(["Warning c VolumeConditionAbnormal: the disk is slow"]);
    world.conditions.set("vol-c", { abnormal: false, message: "" });
    await world.clock.advance(2 * period);
    const both = [
      "Normal c VolumeConditionNormal: The Volume returns to the healthy state",
      "Warning c VolumeConditionAbnormal: the disk is slow",
    ];
    expect(await emitted(world)).toEqual(both);
    // Sent once, however long the volume stays healthy.
    await world.clock.advance(10 * period);
    const { items } = await world.kube.list(resources.events, { signal: world.signal });
    expect(items.find(({ type }) => type === "Normal")?.count).toBe(1);
    await monitor.stop();
  });

  it("looks after a migrated volume by its handle, and leaves others alone", async () => {
    const world = await healthWorld(way);
    const inTree = { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-9" } };
    await addVolume(world, "migrated", inTree, { "pv.kubernetes.io/migrated-to": driver });
    await addVolume(world, "in-tree", { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-8" } });
    for (const id of ["vol-8", "vol-9"]) world.conditions.set(id, { abnormal: true, message: "broken" });
    const monitor = world.start();
    await world.clock.advance(minute);
    expect(await emitted(world)).toEqual(["Warning migrated VolumeConditionAbnormal: broken"]);
    await monitor.stop();
  });

  it("started again, reports that what an earlier one reported is well again", async () => {
    const world = await healthWorld(way);
    await addVolume(world, "a", csi("vol-a"));
    world.conditions.set("vol-a", { abnormal: true, message: "broken" });
    const first = world.start();
    await world.clock.advance(minute);
    await first.stop();
    world.conditions.set("vol-a", { abnormal: false, message: "" });
    const second = world.start();
    await world.clock.advance(minute);
    expect((await emitted(world)).map((line) => line.split(":")[0])).toEqual([
      "Normal a VolumeConditionNormal",
      "Warning a VolumeConditionAbnormal",
    ]);
    await second.stop();
  });

  it("says nothing while its driver is unreachable, and goes on when it is back", async () => {
    const world = await healthWorld(way);
    await addVolume(world, "a", csi("vol-a"));
    world.conditions.set("vol-a", { abnormal: false, message: "" });
    const monitor = world.start();
    await world.clock.advance(minute);
    world.csi.crash(socket);
    await world.clock.advance(20 * minute);
    expect(await emitted(world)).toEqual([]);
    world.conditions.set("vol-a", { abnormal: true, message: "broken" });
    await world.serve();
    await world.clock.advance(2 * period);
    expect(await emitted(world)).toEqual(["Warning a VolumeConditionAbnormal: broken"]);
    await monitor.stop();
  });
});

describe("the health monitor", () => {
  it("asks about every volume in each round, also past one that is lost", async () => {
    const world = await healthWorld("get");
    for (let n = 0; n < 25; n++) {
      await addVolume(world, `v${n}`, csi(`vol-${n}`));
      if (n !== 3) world.conditions.set(`vol-${n}`, { abnormal: false, message: "" });
    }
    const monitor = world.start({ workers: 4 });
    await world.clock.advance(30_000);
    expect([...world.calls].sort()).toEqual(
      Array.from({ length: 25 }, (_, n) => `ControllerGetVolume vol-${n}`).sort(),
    );
    expect(await emitted(world)).toEqual([]);
    await monitor.stop();
  });

  it("reports which claims are on a node that failed, and that it came back", async () => {
    const world = await healthWorld("get");
    const { kube, signal, clock } = world;
    await addVolume(world, "a", csi("vol-a"));
    world.conditions.set("vol-a", { abnormal: false, message: "" });
    await addNode(world, "node-a", "us-east-1a");
    const setReady = (status: string) =>
      kube.patch(
        resources.nodes,
        { name: "node-a" },
        { type: "merge", body: { status: { conditions: [{ type: "Ready", status }] } } },
        { signal, subresource: "status" },
      );
    await setReady("True");
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "a" } }];
    await kube.create(
      resources.pods,
      {
        metadata: { name: "web", namespace: "default" },
        spec: { nodeName: "node-a", containers: [{ name: "c", image: "i" }], volumes },
      },
      { signal },
    );
    const monitor = world.start({ enableNodeWatcher: true });
    await clock.advance(minute);
    await setReady("Unknown");
    await clock.advance(4 * minute);
    expect(await emitted(world)).toEqual([]);
    await clock.advance(4 * minute);
    const failed =
      "Warning a NodeFailed: Pods: [ web ] consuming PVC: a in namespace: default are now on a failed node: node-a";
    expect(await emitted(world)).toEqual([failed]);
    await setReady("True");
    await clock.advance(2 * minute);
    expect(await emitted(world)).toEqual(["Normal a NodeRecovered: Node: node-a recovered", failed]);
    await monitor.stop();
  });

  it("does not run for a driver that reports no conditions", async () => {
    const world = await sidecarWorld();
    const logger = recordingLogger();
    const monitor = startHealthMonitor({ ...world.env(), logger });
    await world.clock.advance(minute);
    const { fields } = logger.lines.find(({ message }) => message === "the health monitor failed") ?? {};
    expect(String(fields?.error)).toContain("VOLUME_CONDITION");
    await monitor.stop();
  });
});
