/** The labels that the files of volumes get on a machine with SELinux. Source: docs/behaviour/volume-plugins.md 2. */
import { type PodSpec, resources, type Volume } from "@longshore/kube";
import { HostError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { driverDirectory, installDriver, onlyInit } from "../plugins/flexvolume/testing/flex-world.ts";
import { NodeWorld } from "./testing/node-world.ts";
import { testDriver } from "./testing/test-driver.ts";

const label = "system_u:object_r:container_file_t:s0:c1,c2";
const labelled: NonNullable<PodSpec["securityContext"]> = { seLinuxOptions: { level: "s0:c1,c2" } };
const uniqueName = "v.io/d/pv-vol-1";

async function nodeWithSELinux() {
  const world = await NodeWorld.create();
  await world.host.makeDirectory("/sys/fs/selinux");
  await world.host.writeFileAtomic("/sys/fs/selinux/enforce", "1");
  return world;
}

/** A pod with a Flexvolume whose driver has these capabilities; returns the label of a file that was there before. */
async function flexLabel(world: NodeWorld, capabilities: object, security = labelled) {
  world.flexVolumeDir = driverDirectory;
  const place = { host: world.host, programs: world.programs, calls: [] };
  await installDriver(place, "v.io~d", onlyInit(capabilities));
  await world.volume("vol-1", { flexVolume: { driver: "v.io/d" } });
  const agent = world.start();
  const path = await mountedPath(world, agent, uniqueName, security);
  await world.host.writeFileAtomic(`${path}/f`, "");
  await world.deletePod("p");
  await world.until("unmounted", async () => (await world.mounts()).length === 0);
  const again = await mountedPath(world, agent, uniqueName, security);
  const found = world.host.labelOf(`${again}/f`);
  await agent.stop();
  return found;
}

async function mountedPath(
  world: NodeWorld,
  agent: ReturnType<NodeWorld["start"]>,
  name: string,
  securityContext: NonNullable<PodSpec["securityContext"]>,
) {
  const pod = await world.pod("p", ["vol-1"], { securityContext });
  await world.until("in use", async () => (await world.node()).status?.volumesInUse?.includes(name) === true);
  await world.reportAttached(name, await world.disk("vol-1"));
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  return agent.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1")?.path ?? "";
}

describe("a Flexvolume", () => {
  it("gets the label of the pod where its driver does not say otherwise (flexvolume.md 4.4)", async () => {
    expect(await flexLabel(await nodeWithSELinux(), {})).toBe(label);
  });

  it("keeps its labels where the driver says selinuxRelabel: false (flexvolume.md 4.4)", async () => {
    expect(await flexLabel(await nodeWithSELinux(), { selinuxRelabel: false })).toBeUndefined();
  });

  it("keeps them without a label of the pod, and on a machine without SELinux (flexvolume.md 4.4)", async () => {
    expect(await flexLabel(await nodeWithSELinux(), {}, {})).toBeUndefined();
    expect(await flexLabel(await NodeWorld.create(), {})).toBeUndefined();
  });
});

describe("volumes of a pod's own", () => {
  const volumes: Volume[] = [
    { name: "empty", emptyDir: {} },
    { name: "settings", configMap: { name: "settings" } },
    { name: "machine", hostPath: { path: "/srv" } },
  ];

  it("get its label, also with new content, but not what is the machine's (volume-plugins.md 2)", async () => {
    const world = await nodeWithSELinux();
    const { kube, host } = world;
    await host.makeDirectory("/srv");
    const place = { namespace: "default", name: "settings" };
    await kube.create(resources.configMaps, { metadata: place, data: { a: "1" } }, world);
    const agent = world.start();
    const pod = await world.pod("p", [], {
      securityContext: labelled,
      containers: [
        { name: "c", image: "i", volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })) },
      ],
      volumes,
    });
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    const pathOf = (name: string) => agent.volumes.mountedVolumes(pod.metadata.uid).get(name)?.path ?? "";
    const dataOf = async () => `${pathOf("settings")}/${await host.readLink(`${pathOf("settings")}/..data`)}`;
    expect(host.labelOf(pathOf("empty"))).toBe(label);
    expect(host.labelOf(`${await dataOf()}/a`)).toBe(label);
    expect(host.labelOf("/srv")).toBeUndefined();
    await kube.patch(resources.configMaps, place, { type: "merge", body: { data: { a: "2" } } }, world);
    await world.until("new content", async () => (await host.readFile(`${await dataOf()}/a`)) === "2");
    await world.until("labelled again", async () => host.labelOf(`${await dataOf()}/a`) === label);
    await agent.stop();
  });
});

describe("a CSI volume", () => {
  it("is labelled before the pod may start; a failure is reported and tried again (csi-plugin.md 9.8)", async () => {
    const world = await nodeWithSELinux();
    let fails = 1;
    const relabel = world.host.relabelTree.bind(world.host);
    world.host.relabelTree = async (path, text) => {
      if (fails-- > 0) throw new HostError("relabelTree", path, "EIO");
      await relabel(path, text);
    };
    await world.serveDriver(testDriver(world.host));
    const agent = world.start({ CSIMigration: true, CSIMigrationAWS: true });
    await world.volume("vol-1", {
      csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", fsType: "ext4" },
    });
    await world.attachCsi("vol-1");
    const pod = await world.pod("p", ["vol-1"], { securityContext: labelled });
    await world.until("reported", async () => {
      const { items } = await world.kube.list(resources.events, world);
      return items.some(
        ({ reason, message }) => reason === "FailedMount" && /relabelTree .*EIO/.test(message ?? ""),
      );
    });
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    const path = agent.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1")?.path ?? "";
    expect(world.host.labelOf(path)).toBe(label);
    await agent.stop();
  });
});
