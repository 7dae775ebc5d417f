/** The figures of volumes that are directories of their pods. Source: docs/behaviour/node-agent.md 13. */
import { type Pod, resources, type Stored, type Volume } from "@longshore/kube";
import { expect, it } from "vitest";
import { NodeWorld } from "../testing/node-world.ts";
import { statsPeriodMs } from "./decide-stats-step.ts";

const place = { namespace: "default", name: "settings" };

/** A node with a pod that has these volumes; `counted`: the paths whose files were counted. */
async function podWith(...volumes: readonly Volume[]) {
  const world = await NodeWorld.create();
  await world.kube.create(resources.configMaps, { metadata: place, data: { a: "1" } }, world);
  const counted: string[] = [];
  let countMs = 0;
  const treeUsage = world.host.treeUsage.bind(world.host);
  world.host.treeUsage = async (path, signal) => {
    counted.push(path);
    await world.clock.sleep(countMs, signal);
    return treeUsage(path, signal);
  };
  const agent = world.start();
  const pod: Stored<Pod> = await world.pod("p", [], {
    containers: [
      { name: "c", image: "i", volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })) },
    ],
    volumes: [...volumes],
  });
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  await world.clock.advance(1_000);
  const pathOf = (name: string) => agent.volumes.mountedVolumes(pod.metadata.uid).get(name)?.path ?? "";
  const figures = () => agent.volumes.volumeStats().flatMap(({ volume }) => volume);
  return {
    world,
    agent,
    counted,
    pathOf,
    figures,
    countIn: (ms: number) => {
      countMs = ms;
    },
  };
}

it("an emptyDir takes what its files take, in the file system of the node (node-agent.md 13)", async () => {
  const { world, agent, counted, pathOf, figures } = await podWith({ name: "scratch", emptyDir: {} });
  const path = pathOf("scratch");
  await world.host.writeFileAtomic(`${path}/data`, "x".repeat(1000));
  await world.clock.advance(statsPeriodMs);
  const { totalBytes, availableBytes } = await world.host.usage(path);
  expect(figures()).toEqual([
    expect.objectContaining({
      name: "scratch",
      capacityBytes: totalBytes,
      availableBytes,
      usedBytes: 1000,
      inodesUsed: 2,
    }),
  ]);
  const before = counted.length;
  await world.clock.advance(10 * statsPeriodMs);
  expect(counted.length - before).toBe(10);
  await agent.stop();
});

it("files made from objects are counted again only when they are others (node-agent.md 13)", async () => {
  const { world, agent, counted, figures } = await podWith({ name: "v", configMap: { name: "settings" } });
  const [first] = figures();
  expect(first).toMatchObject({ name: "v", usedBytes: 1 });
  await world.clock.advance(10 * statsPeriodMs);
  expect(counted).toHaveLength(1);
  const body = { data: { a: "12345" } };
  await world.kube.patch(resources.configMaps, place, { type: "merge", body }, world);
  await world.clock.advance(2 * statsPeriodMs);
  expect(figures()).toMatchObject([{ usedBytes: 5 }]);
  expect(counted).toHaveLength(2);
  await agent.stop();
});

it("many files are counted more seldom, at most for a twentieth of the time, and not for ever (node-agent.md 13)", async () => {
  const { world, agent, counted, figures, countIn } = await podWith({ name: "scratch", emptyDir: {} });
  countIn(6_000);
  await world.clock.advance(statsPeriodMs + 10_000);
  let before = counted.length;
  await world.clock.advance(1_200_000);
  expect(counted.length - before).toBeLessThanOrEqual(10);
  expect(counted.length - before).toBeGreaterThanOrEqual(9);
  expect(figures()).toHaveLength(1);
  // More than can be counted within the deadline: no figures, and seldom tried.
  countIn(3_600_000);
  await world.clock.advance(200_000);
  before = counted.length;
  await world.clock.advance(1_200_000);
  expect(counted.length - before).toBe(2);
  expect(figures()).toEqual([]);
  await agent.stop();
});

it("a hostPath volume has no figures: it is the machine's (node-agent.md 13)", async () => {
  const { agent, counted, figures } = await podWith({ name: "machine", hostPath: { path: "/srv" } });
  expect(figures()).toEqual([]);
  expect(counted).toEqual([]);
  await agent.stop();
});
