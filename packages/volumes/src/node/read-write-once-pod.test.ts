/** A volume that one pod may have at a time. Source: docs/behaviour/node-agent.md 7.3. */
import {
  NodeServiceCapability_RPC_Type as Capability,
  VolumeCapability_AccessMode_Mode as Mode,
} from "@longshore/csi";
import { resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { csiName, driverName, NodeWorld } from "./testing/node-world.ts";
import { type TestDriverOptions, testDriver } from "./testing/test-driver.ts";

const forms = ["Filesystem", "Block"] as const;
type Form = (typeof forms)[number];

/** A node with the volume in pod `a`. */
async function mounted(
  form: Form,
  accessModes: readonly string[] = ["ReadWriteOncePod"],
  driver: TestDriverOptions = {},
) {
  const world = await NodeWorld.create();
  await world.serveDriver(testDriver(world.host, driver));
  const agent = world.start();
  const fsType = form === "Block" ? {} : { fsType: "ext4" };
  const csi = { driver: driverName, volumeHandle: "vol-1", ...fsType };
  await world.volume("vol-1", { csi, volumeMode: form, accessModes: [...accessModes] });
  await world.attachCsi("vol-1");
  const pod = (name: string) =>
    form === "Block" ? world.blockPod(name, ["vol-1"]) : world.pod(name, ["vol-1"]);
  const has = ({ metadata: { uid } }: { readonly metadata: { readonly uid: string } }) =>
    agent.volumes.mountedVolumes(uid).size === 1;
  const a = await pod("a");
  await world.until("a has it", () => has(a));
  const refusals = async () =>
    (await world.kube.list(resources.events, world)).items.filter(
      ({ involvedObject, message = "" }) =>
        involvedObject?.name === "b" && message.includes("ReadWriteOncePod"),
    );
  return { world, agent, pod, has, refusals, a };
}

describe.each(forms)("a ReadWriteOncePod volume with volumeMode %s", (form) => {
  it("is refused to a second pod until the first has gone (node-agent.md 7.3)", async () => {
    const { world, agent, pod, has, refusals } = await mounted(form);
    const calls = world.driver.calls.length;
    const b = await pod("b");
    await world.until("refused twice", async () => ((await refusals())[0]?.count ?? 0) > 1);
    const [event] = await refusals();
    expect(event?.reason).toBe(form === "Block" ? "FailedMapVolume" : "FailedMount");
    expect(event?.message).toContain("and pod default/a has it on this node: that pod must go first");
    expect(has(b)).toBe(false);
    expect(world.driver.calls.slice(calls).filter((call) => call.startsWith("NodePublish"))).toEqual([]);
    await world.deletePod("a");
    await world.until("b has it", () => has(b));
    expect(agent.volumes.volumesInUse()).toEqual([csiName("vol-1")]);
    await agent.stop();
  });

  it("is refused with more and more time in between, up to two minutes (node-agent.md 7.1)", async () => {
    const { world, agent, pod, refusals } = await mounted(form);
    await pod("b");
    await world.clock.advance(600_000);
    const count = (await refusals()).reduce((sum, { count = 1 }) => sum + count, 0);
    expect(count).toBeGreaterThan(5);
    expect(count).toBeLessThan(20);
    await agent.stop();
  });

  it("stays the first pod's when the agent starts again, and is still refused to others (node-agent.md 7.3)", async () => {
    const { world, agent, pod, refusals, a } = await mounted(form);
    await agent.stop();
    const restarted = world.start();
    const b = await pod("b");
    await world.until("a has it", () => restarted.volumes.mountedVolumes(a.metadata.uid).size === 1);
    await world.until("refused", async () => (await refusals()).length > 0);
    expect(restarted.volumes.mountedVolumes(b.metadata.uid).size).toBe(0);
    await restarted.stop();
  });
});

it("a volume of ReadWriteOnce is for all pods of the node (node-agent.md 7.3)", async () => {
  const { world, agent, pod, has } = await mounted("Filesystem", ["ReadWriteOnce"]);
  const b = await pod("b");
  await world.until("b has it too", () => has(b));
  await agent.stop();
});

describe("the access mode that a driver gets", () => {
  const distinguishes = { rpcs: [Capability.SINGLE_NODE_MULTI_WRITER, Capability.EXPAND_VOLUME] };
  it.each<[string, Form, TestDriverOptions, string, keyof typeof Mode]>([
    ["one pod", "Filesystem", distinguishes, "ReadWriteOncePod", "SINGLE_NODE_SINGLE_WRITER"],
    ["one pod, as a device", "Block", distinguishes, "ReadWriteOncePod", "SINGLE_NODE_SINGLE_WRITER"],
    ["one node", "Filesystem", distinguishes, "ReadWriteOnce", "SINGLE_NODE_MULTI_WRITER"],
    ["one node, as a device", "Block", distinguishes, "ReadWriteOnce", "SINGLE_NODE_MULTI_WRITER"],
    [
      "one pod, by a driver that knows no difference",
      "Filesystem",
      {},
      "ReadWriteOncePod",
      "SINGLE_NODE_WRITER",
    ],
    ["one node, by a driver that knows no difference", "Block", {}, "ReadWriteOnce", "SINGLE_NODE_WRITER"],
  ])("of a volume of %s (csi-plugin.md 12)", async (_, form, options, accessMode, said) => {
    const { world, agent } = await mounted(form, [accessMode], options);
    expect(world.driver.lastAccessMode).toEqual({
      NodeStageVolume: Mode[said],
      NodePublishVolume: Mode[said],
    });
    await agent.stop();
  });
});
