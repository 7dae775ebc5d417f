/** Bad input on a node: each is one clear sentence of an event, and nothing is lost. The node agent under the virtual clock. */
import { resources } from "@longshore/kube";
import { expect, it } from "vitest";
import { driverDirectory, installDriver } from "../plugins/flexvolume/testing/flex-world.ts";
import { NodeWorld } from "./testing/node-world.ts";

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
