/** Bad input on a node: each is one clear sentence of an event, and nothing is lost. The node agent under the virtual clock. */
import { type Pod, resources, type Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { driverDirectory, installDriver } from "../plugins/flexvolume/testing/flex-world.ts";
import { inTreeName, NodeWorld, type RunningAgent, rootDir } from "./testing/node-world.ts";

/** The messages of warnings about the pod. */
async function warnings(world: NodeWorld, pod: string): Promise<readonly string[]> {
  const { items } = await world.kube.list(resources.events, world);
  return items
    .filter(({ type, involvedObject }) => type === "Warning" && involvedObject.name === pod)
    .map(({ message = "" }) => message);
}

const says = (world: NodeWorld, pod: string, sentence: RegExp) =>
  world.until(`a warning: ${sentence}`, async () =>
    (await warnings(world, pod)).some((text) => sentence.test(text)),
  );

it("a wrong fsType is named with what to do, nothing is formatted, and another volume is served (node-agent.md 7.3)", async () => {
  const world = await NodeWorld.create();
  await world.volume("vol-1", {
    awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1", fsType: "fat99" },
  });
  await world.volume("vol-2");
  const agent = world.start();
  await world.attachInTree("vol-1");
  await world.attachInTree("vol-2");
  const pod = await world.pod("p", ["vol-1"]);
  const other = await world.pod("q", ["vol-2"]);
  await says(world, "p", /fsType "fat99": correct the volume's fsType/);
  await world.until(
    "the other is mounted",
    () => agent.volumes.mountedVolumes(other.metadata.uid).size === 1,
  );
  expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
  const device = (await world.node()).status?.volumesAttached?.[0]?.devicePath ?? "";
  expect(await world.host.fileSystemOf(device)).toBeUndefined();
  await agent.stop();
});

it("another file system than the volume's fsType is said on the volume too (node-agent.md 7.3, 10)", async () => {
  const world = await NodeWorld.create();
  const source = { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4" };
  await world.volume("vol-1", { awsElasticBlockStore: source });
  await world.host.format(await world.disk("vol-1"), "xfs");
  const agent = world.start();
  await world.attachInTree("vol-1");
  const pod = await world.pod("p", ["vol-1"]);
  const sentence = /it holds xfs and its fsType is "ext4": set fsType to xfs/;
  await says(world, "p", sentence);
  await world.until("said on the volume", async () => {
    const { items } = await world.kube.list(resources.events, world);
    return items.some(
      ({ reason, message = "", involvedObject: { kind, name } }) =>
        reason === "FailedMountOnFilesystemMismatch" &&
        kind === "PersistentVolume" &&
        name === "pv-vol-1" &&
        sentence.test(message),
    );
  });
  expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
  await agent.stop();
});

it("a Flexvolume driver that prints garbage is named, and the pod goes on once it answers (flexvolume.md 4.2, 4.3)", async () => {
  const world = await NodeWorld.create();
  world.flexVolumeDir = driverDirectory;
  let isBroken = true;
  await installDriver(
    { host: world.host, programs: world.programs, calls: [] },
    "v.io~dir",
    async (command) => {
      if (command === "init") return { status: "Success", capabilities: { attach: false } };
      return isBroken ? "<html>garbage" : { status: "Success" };
    },
  );
  const agent = world.start();
  const volumes = [{ name: "data-x", flexVolume: { driver: "v.io/dir" } }];
  const pod = await world.pod("p", ["x"], { volumes });
  await says(world, "p", /v\.io\/dir.*printed something that is not JSON.*must print one JSON object/s);
  expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
  isBroken = false;
  await world.until("mounted", () => agent.volumes.mountedVolumes(pod.metadata.uid).size === 1, 900_000);
  await agent.stop();
});

describe("a device that vanishes", () => {
  const isMounted = ({ volumes }: RunningAgent, { metadata }: Stored<Pod>) =>
    volumes.mountedVolumes(metadata.uid).size === 1;

  it("before it is mounted: volume, node and device are named, and it is mounted where it comes back (node-agent.md 7.3)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    await world.disk("vol-1");
    await world.reportAttached(inTreeName("vol-1"), "/dev/xvdba");
    const pod = await world.pod("p", ["vol-1"]);
    await says(
      world,
      "p",
      /volume aws:\/\/us-east-1a\/vol-1: node node-1 has no device \/dev\/xvdba, .*: look whether the provider/,
    );
    expect(isMounted(agent, pod)).toBe(false);
    expect((await world.node()).status?.volumesInUse).toEqual([inTreeName("vol-1")]);
    // The controller has attached it with another device.
    await world.reportDetached(inTreeName("vol-1"));
    await world.attachInTree("vol-1");
    await world.until("mounted", () => isMounted(agent, pod), 900_000);
    await agent.stop();
  });

  it("while it is mounted: the pod that has it keeps it, the next is refused, and its data is there once it is back (node-agent.md 7.3)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    await world.attachInTree("vol-1");
    const first = await world.pod("p", ["vol-1"]);
    await world.until("mounted", () => isMounted(agent, first));
    const [global = ""] = (await world.mounts()).filter((target) => target.startsWith("plugins/"));
    await world.host.writeFileAtomic(`${rootDir}/${global}/data`, "kept");
    world.host.disks.losePower(world.host.name);
    const second = await world.pod("q", ["vol-1"]);
    await says(
      world,
      "q",
      /volume aws:.*vol-1: its device \/dev\/loop0 has gone while it was mounted.*: end all pods/,
    );
    expect([isMounted(agent, first), isMounted(agent, second)]).toEqual([true, false]);
    await world.deletePod("p");
    await world.deletePod("q");
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await world.disk("vol-1");
    const third = await world.pod("r", ["vol-1"]);
    await world.until("mounted", () => isMounted(agent, third), 900_000);
    expect(await world.host.readFile(`${rootDir}/${global}/data`)).toBe("kept");
    await agent.stop();
  });
});
