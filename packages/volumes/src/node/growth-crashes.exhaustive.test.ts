/**
 * The growth of a mounted volume, with the agent's crash or a lost answer at each call that it makes: the next one finishes it, and the pod
 * keeps its mount.
 */
import { NodeServiceCapability_RPC_Type as Capability } from "@longshore/csi";
import { crashAtEveryPoint, crashInPairs } from "@longshore/testing/kube";
import { expect, it } from "vitest";
import { crashesAt, FailingAgents, type Fault, lostAnswer, lostAnswersAt } from "./testing/failing-agents.ts";
import { NodeWorld } from "./testing/node-world.ts";
import { type TestDriverOptions, testDriver } from "./testing/test-driver.ts";

/** Runs the growth; returns the calls of the agents from its begin to its end. */
async function growth(driver: TestDriverOptions | undefined, faults: readonly Fault[]) {
  const world = await NodeWorld.create();
  world.registrarRestarts = true;
  const gates = driver === undefined ? {} : { CSIMigration: true, CSIMigrationAWS: true };
  if (driver !== undefined) await world.serveDriver(testDriver(world.host, driver));
  await world.volume("vol-1");
  const agents = new FailingAgents(world, () => gates, faults);
  agents.isCounting = false;
  agents.launch();
  await (driver === undefined ? world.attachInTree("vol-1") : world.attachCsi("vol-1"));
  const pod = await world.pod("p", ["vol-1"]);
  const mount = () => agents.running?.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1");
  await world.until("mounted", () => mount() !== undefined);
  world.running.add(pod.metadata.uid);
  const path = mount()?.path ?? "";
  await world.host.appendFileDurable(`${path}/data`, "written");
  await world.clock.advance(5_000);
  agents.isCounting = true;
  const mountsBefore = await world.mounts();
  await world.growVolume("vol-1");
  await world.until("grown", async () => (await world.claimStatus("vol-1"))?.capacity?.storage === "2Mi");
  // The answer to the last call comes, and what is left to do.
  await world.clock.advance(2_000);
  agents.isCounting = false;
  expect((await world.claimStatus("vol-1"))?.conditions).toBeUndefined();
  expect((await world.host.usage(path)).totalBytes).toBe(2 * 2 ** 20);
  expect(await world.host.readFile(`${path}/data`)).toBe("written");
  await world.until("mounted again", () => mount() !== undefined);
  expect(await world.mounts()).toEqual(mountsBefore);
  await agents.stop();
  return agents.played;
}

it.each<[string, TestDriverOptions | undefined]>([
  ["in-tree", undefined],
  ["of a driver", { rpcs: [Capability.EXPAND_VOLUME, Capability.GET_VOLUME_STATS] }],
])(
  "a volume %s grows whatever happens at each call (node-agent.md 7.6; contract.md C8)",
  async (kind, driver) => {
    const name = `growth of a volume ${kind}`;
    const crash = await crashAtEveryPoint((points) => growth(driver, crashesAt(points)), { name });
    const lost = await crashAtEveryPoint((points) => growth(driver, lostAnswersAt(points)), {
      name: `${name}, lost answers`,
      sides: ["after"],
      isChosen: (_, call) => lostAnswer(call) !== undefined,
    });
    const pairs = await crashInPairs((points) => growth(driver, crashesAt(points)), 20, { name });
    for (const { summary } of [crash, lost, pairs]) console.log(summary);
    expect([...crash.failures, ...lost.failures, ...pairs.failures]).toEqual([]);
    expect(crash.calls.length).toBeGreaterThan(5);
  },
  3_600_000,
);
