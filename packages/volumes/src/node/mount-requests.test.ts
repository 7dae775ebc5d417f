/** What the node asks of the API server from the pod to its mounted volume. Source: docs/behaviour/node-agent.md 4.2, 7.2. */
import { resources } from "@longshore/kube";
import { expect, it } from "vitest";
import { driverName, NodeWorld } from "./testing/node-world.ts";

/** The requests that mounting the volume of a new pod takes; informers list and watch by themselves. */
async function requestsOf(
  prepare: (world: NodeWorld) => Promise<void>,
  attach: (world: NodeWorld) => Promise<unknown>,
  gates: Readonly<Record<string, boolean>> = {},
): Promise<readonly string[]> {
  const world = await NodeWorld.create();
  const spec = { attachRequired: true };
  await world.kube.create(resources.csiDrivers, { metadata: { name: driverName }, spec }, world);
  await world.serveDriver();
  const agent = world.start(gates);
  await world.until("registered", () => world.registrations.length > 0);
  await prepare(world);
  await world.clock.advance(1000);
  world.requests.length = 0;
  const pod = await world.pod("p", ["vol-1"]);
  agent.volumes.setPods([pod]);
  // As the pod worker does: its wait begins while the claim is being read.
  const mounted = agent.volumes.waitForAttachAndMount(pod, world.signal);
  await world.clock.advance(1000);
  await attach(world);
  await world.clock.run(mounted);
  const made = world.requests.filter((request) => !/^(list|watch) /.test(request));
  await agent.stop();
  return made;
}

const resolution = ["get persistentvolumeclaims", "get persistentvolumes"];
/** The live Node says that the volume is attached. */
const verification = ["get nodes"];
/** The claim says whether the file system is to grow. */
const growth = ["get persistentvolumeclaims"];
/** Waiting for the attachment, staging and publishing read it each. */
const attachment = "get volumeattachments";
const csi = [...resolution, ...verification, attachment, attachment, ...growth, attachment];

it("a CSI volume (node-agent.md 4.2, 7.2; csi-plugin.md 5, 8, 9)", async () => {
  const made = await requestsOf(
    (world) => world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1" } }),
    (world) => world.attachCsi("vol-1"),
  );
  expect(made).toEqual(csi);
});

it("an in-tree volume served by CSI", async () => {
  const made = await requestsOf(
    (world) => world.volume("vol-1"),
    (world) => world.attachCsi("vol-1"),
    { CSIMigration: true, CSIMigrationAWS: true },
  );
  expect(made).toEqual(csi);
});

it("an in-tree volume served by its plugin", async () => {
  const made = await requestsOf(
    (world) => world.volume("vol-1"),
    (world) => world.attachInTree("vol-1"),
  );
  expect(made).toEqual([...resolution, ...verification, ...growth]);
});

it("a claim that was not bound at the first look is read again by the next wait (node-agent.md 4.2)", async () => {
  const world = await NodeWorld.create();
  await world.volume("vol-1");
  await world.patchClaimStatus("vol-1", { phase: "Pending" });
  const agent = world.start();
  const pod = await world.pod("p", ["vol-1"]);
  agent.volumes.setPods([pod]);
  const first = agent.volumes.waitForAttachAndMount(pod, world.signal);
  await expect(world.clock.run(first)).rejects.toThrow("not bound");
  await world.patchClaimStatus("vol-1", { phase: "Bound" });
  await world.attachInTree("vol-1");
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(1);
  await agent.stop();
});
