/** A volume grows while its pods use it. Source: docs/behaviour/node-agent.md 7.6. */
import { NodeServiceCapability_RPC_Type as Capability } from "@longshore/csi";
import { KubeApiError } from "@longshore/kube";
import { HostError, recordingLogger } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { NodeWorld, type RunningAgent } from "./testing/node-world.ts";
import { failOnce, type TestDriverOptions, testDriver } from "./testing/test-driver.ts";

const csiOn = { CSIMigration: true, CSIMigrationAWS: true };
const grows: TestDriverOptions = { rpcs: [Capability.EXPAND_VOLUME] };
const mebibyte = 2 ** 20;

/** A node with a pod that has the volume mounted, in-tree or by a driver. */
async function mounted(driver?: TestDriverOptions, logger = recordingLogger()) {
  const world = await NodeWorld.create({ logger });
  if (driver !== undefined) await world.serveDriver(testDriver(world.host, driver));
  const agent = world.start(driver === undefined ? {} : csiOn);
  await world.volume("vol-1");
  await (driver === undefined ? world.attachInTree("vol-1") : world.attachCsi("vol-1"));
  const pod = await world.pod("p", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  const path = agent.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1")?.path ?? "";
  const bytes = async () => (await world.host.usage(path)).totalBytes;
  const expansions = () => world.driver.calls.filter((call) => call.startsWith("NodeExpandVolume"));
  return { world, agent, pod, path, bytes, expansions };
}

async function untilGrown(world: NodeWorld) {
  await world.until("grown", async () => (await world.claimStatus("vol-1"))?.capacity?.storage === "2Mi");
}

describe.each<[string, TestDriverOptions | undefined]>([
  ["in-tree", undefined],
  ["of a driver", grows],
])("a mounted volume, %s,", (_, driver) => {
  it("grows with its pod running, and the claim says so (node-agent.md 7.6)", async () => {
    const { world, agent, bytes } = await mounted(driver);
    expect(await bytes()).toBe(mebibyte);
    const before = await world.mounts();
    await world.growVolume("vol-1");
    await untilGrown(world);
    expect(await bytes()).toBe(2 * mebibyte);
    expect(await world.mounts()).toEqual(before);
    expect((await world.claimStatus("vol-1"))?.conditions).toBeUndefined();
    await world.clock.advance(5_000);
    expect(await world.eventReasons()).toEqual([
      "PersistentVolumeClaim FileSystemResizeSuccessful",
      "Pod FileSystemResizeSuccessful",
    ]);
    await agent.stop();
  });
});

describe("the look at the claim", () => {
  it("is one GET in a minute for each mounted volume, and none for one that is not (node-agent.md 7.6)", async () => {
    const { world, agent, pod } = await mounted();
    world.requests.length = 0;
    await world.clock.advance(10 * 60_000);
    const reads = () => world.requests.filter((request) => request.startsWith("get persistentvolume"));
    expect(reads().length).toBeGreaterThanOrEqual(6);
    expect(reads().length).toBeLessThanOrEqual(10);
    expect(new Set(reads())).toEqual(new Set(["get persistentvolumeclaims"]));
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    world.requests.length = 0;
    await world.clock.advance(10 * 60_000);
    expect(reads()).toEqual([]);
    await agent.stop();
  });

  it("grows nothing while the claim does not wait for the node (node-agent.md 7.6)", async () => {
    const { world, agent, expansions } = await mounted(grows);
    await world.growVolume("vol-1");
    await world.patchClaimStatus("vol-1", { conditions: [{ type: "Resizing", status: "True" }] });
    await world.clock.advance(5 * 60_000);
    expect(expansions()).toEqual([]);
    await world.patchClaimStatus("vol-1", { allocatedResourceStatuses: { storage: "NodeResizePending" } });
    await untilGrown(world);
    await agent.stop();
  });
});

describe("a claim that is not the node's to read any more", () => {
  it("is no failure, and is looked at later", async () => {
    const log: string[] = [];
    const logger = recordingLogger(({ level, message }) => void log.push(`${level} ${message}`));
    const { world, agent } = await mounted(undefined, logger);
    const get = world.kube.get.bind(world.kube);
    const asked: string[] = [];
    world.kube.get = async (resource, ref, options) => {
      if (resource.plural !== "persistentvolumeclaims") return get(resource, ref, options);
      asked.push(ref.name);
      throw new KubeApiError({
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        code: 403,
        reason: "Forbidden",
        message: "no relationship found",
      });
    };
    log.length = 0;
    await world.clock.advance(5 * 60_000);
    expect(asked.length).toBeGreaterThanOrEqual(3);
    expect(asked.length).toBeLessThanOrEqual(5);
    expect(log).toEqual([]);
    await agent.stop();
  });
});

describe("a growth that fails", () => {
  it("is repeated with growing delays, with an event, and the pod keeps its mount (node-agent.md 7.6)", async () => {
    const { world, agent, bytes, expansions } = await mounted(grows);
    const before = await world.mounts();
    let isBroken = true;
    world.driver.before = (rpc) => {
      if (rpc === "NodeExpandVolume" && isBroken) throw new Error("no answer from the disk");
    };
    await world.growVolume("vol-1");
    await world.clock.advance(10 * 60_000);
    expect(expansions().length).toBeGreaterThan(5);
    expect(expansions().length).toBeLessThan(15);
    expect(await world.eventReasons()).toEqual([
      "PersistentVolumeClaim VolumeResizeFailed",
      "Pod VolumeResizeFailed",
    ]);
    expect(await world.mounts()).toEqual(before);
    isBroken = false;
    await untilGrown(world);
    expect(await bytes()).toBe(2 * mebibyte);
    await agent.stop();
  });

  it("because the volume is in use is not repeated before the next mount (node-agent.md 7.6)", async () => {
    const { world, agent, pod, expansions } = await mounted(grows);
    failOnce(world.driver, "NodeExpandVolume", "FAILED_PRECONDITION");
    await world.growVolume("vol-1");
    await world.clock.advance(20 * 60_000);
    expect(expansions()).toHaveLength(1);
    expect(await world.eventReasons()).toContain("PersistentVolumeClaim VolumeResizeFailed");
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    const next = await world.pod("q", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(next, world.signal));
    expect((await world.claimStatus("vol-1"))?.capacity?.storage).toBe("2Mi");
    await agent.stop();
  });

  it("does not hold up the unmount of its pod (node-agent.md 7.6)", async () => {
    const { world, agent, pod } = await mounted();
    await world.growVolume("vol-1");
    // The device has vanished: the growth waits for it.
    const stat = world.host.stat.bind(world.host);
    world.host.stat = async (path) => (path.startsWith("/dev/") ? undefined : stat(path));
    await world.clock.advance(100_000);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid), 5_000);
    expect(await world.mounts()).toEqual([]);
    await agent.stop();
  });
});

describe("after a crash", () => {
  it.each(["before", "after"] as const)(
    "%s the growth itself the next agent finishes it (node-agent.md 7.6)",
    async (when) => {
      const { world, agent, pod, bytes } = await mounted(grows);
      world.running.add(pod.metadata.uid);
      world.driver[when] = (rpc) => {
        if (rpc === "NodeExpandVolume") agent.crash();
      };
      await world.growVolume("vol-1");
      await world.clock.advance(120_000);
      expect((await world.claimStatus("vol-1"))?.capacity?.storage).toBe("1Mi");
      world.driver[when] = () => {};
      const second: RunningAgent = world.start(csiOn);
      await untilGrown(world);
      expect(await bytes()).toBe(2 * mebibyte);
      await second.stop();
    },
  );
});

describe("on a machine that grows ext4 only unmounted", () => {
  it("an in-tree volume keeps its size with an event, and grows when it is mounted next (node-agent.md 7.6)", async () => {
    const { world, agent, pod } = await mounted();
    world.host.growFileSystem = async (device) => {
      throw new HostError("growFileSystem", device, "EPERM");
    };
    await world.growVolume("vol-1");
    await world.clock.advance(120_000);
    expect((await world.claimStatus("vol-1"))?.capacity?.storage).toBe("1Mi");
    expect(await world.eventReasons()).toContain("Pod VolumeResizeFailed");
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    const next = await world.pod("q", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(next, world.signal));
    const path = agent.volumes.mountedVolumes(next.metadata.uid).get("data-vol-1")?.path ?? "";
    expect((await world.host.usage(path)).totalBytes).toBe(2 * mebibyte);
    expect((await world.claimStatus("vol-1"))?.capacity?.storage).toBe("2Mi");
    await agent.stop();
  });
});

it("a volume that its pods only read does not grow (node-agent.md 7.6)", async () => {
  const world = await NodeWorld.create();
  await world.serveDriver(testDriver(world.host, grows));
  const agent = world.start(csiOn);
  await world.volume("vol-1");
  await world.attachCsi("vol-1");
  const claim = { name: "data-vol-1", persistentVolumeClaim: { claimName: "claim-vol-1", readOnly: true } };
  const pod = await world.pod("p", ["vol-1"], { volumes: [claim] });
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  await world.growVolume("vol-1");
  await world.clock.advance(5 * 60_000);
  expect(world.driver.calls).not.toContain("NodeExpandVolume vol-1");
  expect(await world.eventReasons()).toEqual([]);
  await agent.stop();
});
