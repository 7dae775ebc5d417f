/** Directories of pods that are gone. Source: docs/behaviour/node-agent.md 7.5, "Pod directories". */
import { expect, it } from "vitest";
import { NodeWorld, rootDir } from "./testing/node-world.ts";

const pods = `${rootDir}/pods`;

it("a pod's directories go with its last volume (node-agent.md 7.5)", async () => {
  const world = await NodeWorld.create();
  await world.volume("vol-1");
  const agent = world.start();
  await world.attachInTree("vol-1");
  const pod = await world.pod("p", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  expect(await world.host.readDirectory(pods)).toEqual([pod.metadata.uid]);
  await world.deletePod("p");
  await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
  await world.until("removed", async () => (await world.host.readDirectory(pods))?.length === 0, 5_000);
  await agent.stop();
});

it("those that an earlier agent left go when they are empty, and nothing is removed below them (node-agent.md 7.5)", async () => {
  const world = await NodeWorld.create();
  await world.host.makeDirectory(`${pods}/empty/volumes/kubernetes.io~csi`);
  await world.host.makeDirectory(`${pods}/holds-data/volumes/kubernetes.io~nfs/tmp`);
  await world.host.writeFileAtomic(`${pods}/holds-data/volumes/kubernetes.io~nfs/tmp/f`, "x");
  await world.volume("vol-1");
  await world.attachInTree("vol-1");
  const pod = await world.pod("p", ["vol-1"]);
  await world.host.makeDirectory(`${pods}/${pod.metadata.uid}/volumes`);
  const agent = world.start();
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  await world.clock.advance(10_000);
  expect(await world.host.readDirectory(pods)).toEqual([pod.metadata.uid, "holds-data"].sort());
  expect(await world.host.readFile(`${pods}/holds-data/volumes/kubernetes.io~nfs/tmp/f`)).toBe("x");
  await agent.stop();
});

it("those of a pod whose volumes are still mounted stay (node-agent.md 7.5)", async () => {
  const world = await NodeWorld.create();
  await world.volume("vol-1");
  const agent = world.start();
  await world.attachInTree("vol-1");
  const pod = await world.pod("p", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  world.running.add(pod.metadata.uid);
  await world.deletePod("p");
  await world.clock.advance(60_000);
  expect(await world.host.readDirectory(pods)).toEqual([pod.metadata.uid]);
  await agent.stop();
});
