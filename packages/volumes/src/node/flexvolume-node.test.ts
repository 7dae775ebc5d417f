/** Flexvolumes on a node: from a pod's volume to the driver's calls and back, also across restarts of the agent. */
import { describe, expect, it } from "vitest";
import {
  driverDirectory,
  installDriver,
  onlyInit,
  type TestFlexDriver,
} from "../plugins/flexvolume/testing/flex-world.ts";
import { NodeWorld, rootDir } from "./testing/node-world.ts";

const globalMount = "plugins/kubernetes.io/flexvolume/v.io/d/mounts/pv-vol-1";
const bound = (uid: string) => `pods/${uid}/volumes/v.io~d/pv-vol-1`;
const uniqueName = "v.io/d/pv-vol-1";

/** A driver that makes directories instead of mounts. */
const directories =
  (world: NodeWorld): TestFlexDriver =>
  async (command, [path = ""]) => {
    if (command === "init") return { status: "Success", capabilities: { attach: false } };
    if (command === "mount") await world.host.writeFileAtomic(`${path}/data`, "mounted");
    if (command === "unmount") await world.host.removeFile(`${path}/data`);
    return { status: command === "mount" || command === "unmount" ? "Success" : "Not supported" };
  };

async function flexNode() {
  const world = await NodeWorld.create();
  world.flexVolumeDir = driverDirectory;
  const calls: string[] = [];
  const install = (name: string, driver: TestFlexDriver) =>
    installDriver({ host: world.host, programs: world.programs, calls }, name, driver);
  /** The commands that the driver was run with. */
  const commands = () => calls.map((call) => call.split(" ")[1]);
  const exists = async (path: string) => (await world.host.stat(`${rootDir}/${path}`)) !== undefined;
  const inUse = async () => (await world.node()).status?.volumesInUse ?? [];
  const inlinePod = (name: string) =>
    world.pod(name, ["x"], { volumes: [{ name: "data-x", flexVolume: { driver: "v.io/dir" } }] });
  return { world, install, calls, commands, exists, inUse, inlinePod };
}

describe("a Flexvolume whose driver attaches (docs/behaviour/flexvolume.md 4)", () => {
  it("waits for its device, is mounted once and bound for the pod, and goes in reverse (flexvolume.md 4.3; node-agent.md 7.3)", async () => {
    const { world, install, commands, inUse } = await flexNode();
    await install("v.io~d", onlyInit());
    await world.volume("vol-1", { flexVolume: { driver: "v.io/d" } });
    const agent = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    await world.until("in use", async () => (await inUse()).includes(uniqueName));
    expect(await world.mounts()).toEqual([]);
    await world.reportAttached(uniqueName, await world.disk("vol-1"));
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(await world.mounts()).toEqual([globalMount, bound(pod.metadata.uid)]);
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse()).length === 0);
    expect(await world.mounts()).toEqual([]);
    expect(commands()).toEqual([
      "init",
      "getvolumename",
      "waitforattach",
      "mountdevice",
      "mount",
      "unmount",
      "unmountdevice",
    ]);
    await agent.stop();
  });

  it("is found again after a crash of the agent, and unmounted when its pod has gone (flexvolume.md 8; node-agent.md 9)", async () => {
    const { world, install, inUse } = await flexNode();
    await install("v.io~d", onlyInit());
    await world.volume("vol-1", { flexVolume: { driver: "v.io/d" } });
    const first = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    await world.reportAttached(uniqueName, await world.disk("vol-1"));
    await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    first.crash();
    await world.deletePod("p");
    const second = world.start();
    await world.until("not in use", async () => (await inUse()).length === 0);
    expect(await world.mounts()).toEqual([]);
    await second.stop();
  });

  // Its Node was the only record of the attachment, which no unmount ends.
  it("is recorded where its Node was deleted, also when it is unmounted before the Node is made again (contract.md C8; node-agent.md 8)", async () => {
    const { world, install } = await flexNode();
    await install("v.io~d", onlyInit());
    await world.volume("vol-1", { flexVolume: { driver: "v.io/d" } });
    const first = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    await world.reportAttached(uniqueName, await world.disk("vol-1"));
    await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    expect(first.volumes.status().attachmentsFound).toEqual([]);
    first.crash();
    await world.deletePod("p");
    const second = world.start();
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await world.until("forgotten", () => second.volumes.status().volumesFound?.length === 0);
    expect(second.volumes.status().attachmentsFound).toEqual([uniqueName]);
    await second.stop();
  });

  it("stays in use while its driver is missing after a restart, and goes when that is back (flexvolume.md 8)", async () => {
    const { world, install, inUse } = await flexNode();
    await install("v.io~d", onlyInit());
    await world.volume("vol-1", { flexVolume: { driver: "v.io/d" } });
    const first = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    await world.reportAttached(uniqueName, await world.disk("vol-1"));
    await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    first.crash();
    await world.host.removeTree(`${driverDirectory}/v.io~d`);
    await world.deletePod("p");
    const second = world.start();
    await world.clock.advance(300_000);
    expect(await inUse()).toEqual([uniqueName]);
    expect(second.volumes.podVolumesGone(pod.metadata.uid)).toBe(false);
    await install("v.io~d", onlyInit());
    await world.until("not in use", async () => (await inUse()).length === 0);
    expect(await world.mounts()).toEqual([]);
    await second.stop();
  });
});

describe("the figures of a Flexvolume", () => {
  it.each([
    ["are measured", true],
    ["are not measured", false],
  ])("%s where its driver says supportsMetrics: %s (flexvolume.md 4.2)", async (_what, supportsMetrics) => {
    const { world, install } = await flexNode();
    await install("v.io~d", (command) =>
      command === "init"
        ? { status: "Success", capabilities: { attach: true, supportsMetrics } }
        : { status: "Not supported" },
    );
    await world.volume("vol-1", { flexVolume: { driver: "v.io/d" } });
    const agent = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    await world.reportAttached(uniqueName, await world.disk("vol-1"));
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await world.clock.advance(1_000);
    const measured = agent.volumes.volumeStats().flatMap(({ volume }) => volume);
    expect(measured.map(({ name, capacityBytes }) => [name, capacityBytes])).toEqual(
      supportsMetrics ? [["data-vol-1", 2 ** 20]] : [],
    );
    await agent.stop();
  });
});

describe("a Flexvolume whose driver does not attach", () => {
  it("is mounted for an inline volume as soon as its driver is installed (flexvolume.md 8)", async () => {
    const { world, install, exists, inlinePod, inUse } = await flexNode();
    const agent = world.start();
    const pod = await inlinePod("p");
    const { uid } = pod.metadata;
    const early = world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await expect(early).rejects.toThrow(
      "volume data-x: no volume plugin matched: the Flexvolume driver v.io/dir is not installed",
    );
    await install("v.io~dir", directories(world));
    await world.until("mounted", () => agent.volumes.mountedVolumes(uid).has("data-x"), 10_000);
    expect(await world.host.readFile(`${rootDir}/pods/${uid}/volumes/v.io~dir/data-x/data`)).toBe("mounted");
    expect(await inUse()).toEqual([]);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    expect(await exists(`pods/${uid}/volumes/v.io~dir/data-x`)).toBe(false);
    await agent.stop();
  });

  it("is the pod's own: two pods with a volume of one name do not share it (node-agent.md 4.3)", async () => {
    const { world, install, inlinePod, exists } = await flexNode();
    await install("v.io~dir", directories(world));
    const agent = world.start();
    const [a, b] = [await inlinePod("a"), await inlinePod("b")];
    for (const pod of [a, b]) await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await world.deletePod("a");
    await world.until("gone", () => agent.volumes.podVolumesGone(a.metadata.uid));
    expect(await exists(`pods/${b.metadata.uid}/volumes/v.io~dir/data-x/data`)).toBe(true);
    await agent.stop();
  });

  it("is found again under the pod's name after a crash, kept for the pod that runs, unmounted for the one that has gone (flexvolume.md 8; node-agent.md 9)", async () => {
    const { world, install, inlinePod, exists, commands } = await flexNode();
    await install("v.io~dir", directories(world));
    const first = world.start();
    const [a, b] = [await inlinePod("a"), await inlinePod("b")];
    for (const pod of [a, b]) await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    first.crash();
    await world.deletePod("a");
    const second = world.start();
    await world.until("gone", () => second.volumes.podVolumesGone(a.metadata.uid));
    await world.clock.run(second.volumes.waitForAttachAndMount(b, world.signal));
    await world.clock.advance(60_000);
    expect(await exists(`pods/${a.metadata.uid}/volumes/v.io~dir/data-x`)).toBe(false);
    expect(await exists(`pods/${b.metadata.uid}/volumes/v.io~dir/data-x/data`)).toBe(true);
    expect(commands().filter((command) => command === "unmount")).toHaveLength(1);
    await second.stop();
  });
});

describe("the agent", () => {
  it("stops while a driver hangs at its start (flexvolume.md 8)", async () => {
    const { world, install } = await flexNode();
    await install(
      "v.io~d",
      (_command, _args, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error)),
        ),
    );
    const agent = world.start();
    await world.clock.advance(100);
    await world.clock.run(agent.stop());
    expect(world.clock.monotonicMs()).toBeLessThan(60_000);
  });
});
