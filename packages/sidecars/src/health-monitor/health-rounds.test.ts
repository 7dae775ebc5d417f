/** When the health monitor looks at volumes and nodes, and how often. */
import { CsiStatusError } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { fakeDriver, withConditions } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { startHealthMonitor } from "../index.ts";
import { addVolume, driver, emitted, healthWorld, socket } from "../testing/health-world.ts";
import { addNode } from "../testing/world.ts";

const minute = 60_000;
const well = { abnormal: false, message: "" };
const broken = { abnormal: true, message: "broken" };

type HealthWorld = Awaited<ReturnType<typeof healthWorld>>;

async function addVolumes(world: HealthWorld, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await addVolume(world, `v${n}`, { csi: { driver, volumeHandle: `vol-${n}` } });
    world.conditions.set(`vol-${n}`, well);
  }
}

/** The driver answers for a volume after `answer` has. @returns when each call began, in seconds, and the most at once */
async function slowDriver(world: HealthWorld, way: "list" | "get", answer: (call: number) => Promise<void>) {
  const seen = { atSeconds: [] as number[], atOnce: 0, mostAtOnce: 0 };
  const services = withConditions(fakeDriver(world.cloud), world.conditions, way, world.calls);
  const { controllerGetVolume, listVolumes } = services.controller ?? {};
  const slowly = <A extends unknown[], R>(rpc: ((...args: A) => R) | undefined) =>
    rpc === undefined
      ? undefined
      : async (...args: A) => {
          seen.atSeconds.push(Math.floor(world.clock.monotonicMs() / 1000));
          seen.mostAtOnce = Math.max(seen.mostAtOnce, ++seen.atOnce);
          try {
            await answer(seen.atSeconds.length);
            return await rpc(...args);
          } finally {
            seen.atOnce--;
          }
        };
  const slow = { controllerGetVolume: slowly(controllerGetVolume), listVolumes: slowly(listVolumes) };
  world.csi.crash(socket);
  await world.csi.serve(socket, { ...services, controller: { ...services.controller, ...slow } as never });
  return seen;
}

describe("a round of looks", () => {
  it("begins a pause after the end of the one before, however long that took", async () => {
    const world = await healthWorld("get");
    await addVolumes(world, 4);
    const seen = await slowDriver(world, "get", () => world.clock.sleep(10_000, world.signal));
    const monitor = world.start({ workers: 2, monitorIntervalMs: minute });
    await world.clock.advance(3 * minute);
    expect(seen.atSeconds).toEqual([0, 0, 10, 10, 80, 80, 90, 90, 160, 160, 170, 170]);
    expect(seen.mostAtOnce).toBe(2);
    await monitor.stop();
  });

  it("of a list begins a pause after the end of the one before", async () => {
    const world = await healthWorld("list");
    await addVolumes(world, 2);
    const seen = await slowDriver(world, "list", () => world.clock.sleep(10_000, world.signal));
    const monitor = world.start({ listVolumesIntervalMs: minute });
    await world.clock.advance(3 * minute);
    expect(seen.atSeconds).toEqual([0, 70, 140]);
    await monitor.stop();
  });

  it("ends at a driver that is gone, and the next one asks about all volumes", async () => {
    const world = await healthWorld("get");
    await addVolumes(world, 50);
    const seen = await slowDriver(world, "get", async (call) => {
      await world.clock.sleep(1000, world.signal);
      if (call === 21) world.csi.crash(socket);
    });
    const env = world.env();
    let attempts = 0;
    const controller = new Proxy(env.csi.controller, {
      get: (target, rpc, receiver) => {
        if (rpc === "controllerGetVolume") attempts++;
        return Reflect.get(target, rpc, receiver) as unknown;
      },
    });
    const monitor = startHealthMonitor({ ...env, csi: { ...env.csi, controller } }, { workers: 10 });
    await world.clock.advance(30_000);
    expect(seen.atSeconds).toHaveLength(30);
    expect(attempts).toBe(30);
    world.calls.length = 0;
    await world.serve();
    await world.clock.advance(2 * minute);
    expect(new Set(world.calls).size).toBe(50);
    await monitor.stop();
  });

  it("is not ended by a driver that answers with an error", async () => {
    const world = await healthWorld("get");
    await addVolumes(world, 12);
    const seen = await slowDriver(world, "get", async (call) => {
      if (call <= 10)
        throw new CsiStatusError(call % 2 === 0 ? "UNAVAILABLE" : "INTERNAL", "as the test wants");
    });
    const monitor = world.start({ workers: 2 });
    await world.clock.advance(30_000);
    expect(seen.atSeconds).toHaveLength(12);
    await monitor.stop();
  });

  it.each(["list", "get"] as const)(
    "by %s comes at its time, whatever happens to volumes meanwhile",
    async (way) => {
      const world = await healthWorld(way);
      await addVolumes(world, 1);
      const monitor = world.start({ listVolumesIntervalMs: minute, monitorIntervalMs: minute });
      await world.clock.advance(10_000);
      world.calls.length = 0;
      await addVolume(world, "new", { csi: { driver, volumeHandle: "vol-new" } });
      world.conditions.set("vol-new", broken);
      const labels = { metadata: { labels: { a: "b" } } };
      await world.kube.patch(
        resources.persistentVolumes,
        { name: "pv-v0" },
        { type: "merge", body: labels },
        world,
      );
      await world.clock.advance(40_000);
      expect(world.calls).toEqual([]);
      await world.clock.advance(20_000);
      expect(await emitted(world)).toEqual(["Warning new VolumeConditionAbnormal: broken"]);
      await monitor.stop();
    },
  );

  it.each(["list", "get"] as const)("by %s reports an abnormal volume once", async (way) => {
    const world = await healthWorld(way);
    await addVolumes(world, 3);
    for (const id of ["vol-0", "vol-2"]) world.conditions.set(id, broken);
    const monitor = world.start({ listVolumesIntervalMs: minute, monitorIntervalMs: minute });
    await world.clock.advance(3 * minute + 30_000);
    const { items } = await world.kube.list(resources.events, world);
    expect(items.map(({ involvedObject, count }) => `${involvedObject.name} ${count}`).sort()).toEqual([
      "v0 4",
      "v2 4",
    ]);
    await monitor.stop();
  });

  it.each(["list", "get"] as const)("by %s forgets a volume that is gone", async (way) => {
    const world = await healthWorld(way);
    await addVolumes(world, 2);
    world.conditions.set("vol-0", broken);
    const monitor = world.start({ listVolumesIntervalMs: minute, monitorIntervalMs: minute });
    await world.clock.advance(10_000);
    const pv = { name: "pv-v0" };
    const available = { type: "merge", body: { status: { phase: "Released" } } } as const;
    await world.kube.patch(resources.persistentVolumes, pv, available, { ...world, subresource: "status" });
    await world.clock.advance(minute);
    world.conditions.set("vol-0", well);
    const bound = { type: "merge", body: { status: { phase: "Bound" } } } as const;
    await world.kube.patch(resources.persistentVolumes, pv, bound, { ...world, subresource: "status" });
    await world.clock.advance(2 * minute);
    expect(await emitted(world)).toEqual(["Warning v0 VolumeConditionAbnormal: broken"]);
    await monitor.stop();
  });

  it("in flight ends when the monitor is stopped", async () => {
    const world = await healthWorld("get");
    await addVolumes(world, 50);
    const seen = await slowDriver(world, "get", () => world.clock.sleep(10_000, world.signal));
    const monitor = world.start({ workers: 10 });
    await world.clock.advance(5000);
    await monitor.stop();
    await world.clock.advance(10 * minute);
    expect(seen.atSeconds).toHaveLength(10);
  });
});

describe("a look at the nodes", () => {
  it("comes once a minute, and reports a node that was deleted then", async () => {
    const world = await healthWorld("get");
    const { kube, signal, clock } = world;
    await addVolumes(world, 1);
    await addNode(world, "node-a", "us-east-1a");
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "v0" } }];
    const spec = { nodeName: "node-a", containers: [{ name: "c", image: "i" }], volumes };
    await kube.create(resources.pods, { metadata: { name: "web", namespace: "default" }, spec }, { signal });
    const monitor = world.start({ enableNodeWatcher: true });
    await clock.advance(10_000);
    await kube.delete(resources.nodes, { name: "node-a" }, { signal });
    await clock.advance(40_000);
    expect(await emitted(world)).toEqual([]);
    await clock.advance(20_000);
    expect(await emitted(world)).toEqual([expect.stringMatching(/^Warning v0 NodeFailed: .* node-a$/)]);
    // A new node of its name begins without memory.
    await kube.create(resources.nodes, { metadata: { name: "node-a" } }, { signal });
    await clock.advance(10 * minute);
    expect(await emitted(world)).toHaveLength(1);
    await kube.delete(resources.nodes, { name: "node-a" }, { signal });
    await clock.advance(5 * minute);
    const { items } = await kube.list(resources.events, { signal });
    expect(items.map(({ count }) => count)).toEqual([2]);
    await monitor.stop();
  });
});
