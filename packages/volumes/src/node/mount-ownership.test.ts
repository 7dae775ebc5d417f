/** Whose the files of a volume are. Source: docs/behaviour/csi-plugin.md 9.6, 9.8; docs/behaviour/volume-plugins.md 6. */
import { NodeServiceCapability_RPC_Type as Capability } from "@longshore/csi";
import { type CSIDriver, type PodSpec, resources } from "@longshore/kube";
import { recordingLogger } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { driverName, NodeWorld } from "./testing/node-world.ts";
import { type TestDriverOptions, testDriver } from "./testing/test-driver.ts";
import { mounterArgsOf } from "./volume-manager/volumes/mounter-args.ts";

const csiOn = { CSIMigration: true, CSIMigrationAWS: true };

interface Given {
  readonly security: PodSpec["securityContext"];
  readonly driver?: TestDriverOptions;
  readonly policy?: CSIDriver["spec"];
  readonly accessModes?: readonly string[];
  readonly isOnCsi?: boolean;
  readonly hasSELinux?: boolean;
}

/** Mounts a volume for a pod, and again for another one where two may have it; returns how often its tree was given to a group. */
async function mountedTwice(given: Given) {
  const world = await NodeWorld.create();
  if (given.hasSELinux === true) {
    await world.host.makeDirectory("/sys/fs/selinux");
    await world.host.writeFileAtomic("/sys/fs/selinux/enforce", "1");
  }
  const walks: string[] = [];
  const chown = world.host.chownTree.bind(world.host);
  world.host.chownTree = async (path, gid, options) => {
    const before = (await world.host.stat(path))?.mode;
    await chown(path, gid, options);
    walks.push(`${gid} ${before === (await world.host.stat(path))?.mode ? "same" : "changed"}`);
  };
  if (given.policy !== undefined) {
    const driver = { metadata: { name: driverName }, spec: given.policy };
    await world.kube.create(resources.csiDrivers, driver, world);
  }
  const isOnCsi = given.isOnCsi !== false;
  if (isOnCsi) await world.serveDriver(testDriver(world.host, given.driver));
  const agent = world.start(isOnCsi ? csiOn : {});
  const csi = { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" };
  await world.volume("vol-1", {
    ...(isOnCsi ? { csi } : { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" } }),
    accessModes: [...(given.accessModes ?? ["ReadWriteOnce"])],
  });
  await (isOnCsi ? world.attachCsi("vol-1") : world.attachInTree("vol-1"));
  const security = given.security === undefined ? {} : { securityContext: given.security };
  const names = given.accessModes?.includes("ReadWriteOncePod") === true ? ["p"] : ["p", "q"];
  for (const name of names) {
    const pod = await world.pod(name, ["vol-1"], security);
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    const path = agent.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1")?.path ?? "";
    await world.host.writeFileAtomic(`${path}/made-by-${name}`, "", { mode: 0o600 });
  }
  const pods = await world.kube.list(resources.pods, world);
  const uid = pods.items.find(({ metadata }) => metadata.name === names.at(-1))?.metadata.uid ?? "";
  const path = agent.volumes.mountedVolumes(uid).get("data-vol-1")?.path ?? "";
  const mode = (await world.host.stat(`${path}/made-by-p`))?.mode;
  await agent.stop();
  return { walks, mode, mounts: world.driver.lastMount };
}

describe.each([
  ["of a driver", true],
  ["in-tree", false],
])("a volume %s", (_, isOnCsi) => {
  it("is given to the pod's fsGroup at each mount (volume-plugins.md 6)", async () => {
    const { walks, mode } = await mountedTwice({ security: { fsGroup: 7 }, isOnCsi });
    expect(walks).toHaveLength(2);
    expect(mode).toBe(0o660);
  });

  it("is left alone with OnRootMismatch where its root is the group's (volume-plugins.md 6)", async () => {
    const security = { fsGroup: 7, fsGroupChangePolicy: "OnRootMismatch" };
    const { walks, mode } = await mountedTwice({ security, isOnCsi });
    expect(walks).toEqual(["7 changed", "7 same"]);
    expect(mode).toBe(0o600);
  });
});

it.each([
  [31_000, 1],
  [29_000, 0],
])("a change of %i ms is in the log %i times (volume-plugins.md 6)", async (changeMs, count) => {
  const logger = recordingLogger();
  const world = await NodeWorld.create({ logger });
  const chown = world.host.chownTree.bind(world.host);
  world.host.chownTree = async (path, gid, options) => {
    await world.clock.sleep(changeMs, world.signal);
    await chown(path, gid, options);
  };
  const agent = world.start();
  await world.volume("vol-1");
  await world.attachInTree("vol-1");
  const pod = await world.pod("p", ["vol-1"], { securityContext: { fsGroup: 7 } });
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  await world.clock.advance(60_000);
  const said = logger.lines.filter(({ message }) => message.includes("still being given"));
  expect(said).toHaveLength(count);
  await agent.stop();
});

describe("a driver's policy", () => {
  it.each<[string, CSIDriver["spec"], readonly string[], number]>([
    ["None: nothing is changed", { fsGroupPolicy: "None" }, ["ReadWriteOnce"], 0],
    ["File: also a volume of many nodes is given", { fsGroupPolicy: "File" }, ["ReadWriteMany"], 2],
    ["the default: one of many nodes is not", {}, ["ReadWriteMany"], 0],
    ["the default: one of a single pod is given", {}, ["ReadWriteOncePod"], 1],
  ])("%s (csi-plugin.md 9.6)", async (_, policy, accessModes, count) => {
    const { walks } = await mountedTwice({ security: { fsGroup: 7 }, policy, accessModes });
    expect(walks).toHaveLength(count);
  });
});

it("a driver with VOLUME_MOUNT_GROUP gets the group, and nothing is walked (csi-plugin.md 9.6)", async () => {
  const driver = { rpcs: [Capability.VOLUME_MOUNT_GROUP] };
  const { walks, mounts } = await mountedTwice({ security: { fsGroup: 7 }, driver });
  expect(walks).toEqual([]);
  expect(mounts.NodeStageVolume?.group).toBe("7");
  expect(mounts.NodePublishVolume?.group).toBe("7");
});

describe("SELinux", () => {
  const security = { seLinuxOptions: { level: "s0:c1,c2" } };
  const flag = 'context="system_u:object_r:container_file_t:s0:c1,c2"';
  it.each<[string, Given, readonly string[]]>([
    [
      "one pod's volume of a driver that mounts with labels",
      { security, hasSELinux: true, policy: { seLinuxMount: true }, accessModes: ["ReadWriteOncePod"] },
      [flag],
    ],
    [
      "a volume of several pods",
      { security, hasSELinux: true, policy: { seLinuxMount: true }, accessModes: ["ReadWriteOnce"] },
      [],
    ],
    [
      "a driver that does not",
      { security, hasSELinux: true, policy: { seLinuxMount: false }, accessModes: ["ReadWriteOncePod"] },
      [],
    ],
    [
      "a machine without SELinux",
      { security, policy: { seLinuxMount: true }, accessModes: ["ReadWriteOncePod"] },
      [],
    ],
  ])("%s (csi-plugin.md 9.8)", async (_, given, flags) => {
    const { mounts } = await mountedTwice(given);
    expect(mounts.NodeStageVolume?.flags).toEqual(flags);
    expect(mounts.NodePublishVolume?.flags).toEqual(flags);
  });

  const mounts = [{ name: "data", mountPath: "/d" }];
  const level = (value: string, more: object = {}) => ({ seLinuxOptions: { level: value, ...more } });
  it.each<[string, PodSpec, string | undefined]>([
    ["no options", { containers: [{ name: "c", volumeMounts: mounts }] }, undefined],
    [
      "those of the container before those of the pod; role and type are the processes'",
      {
        securityContext: level("s0:c1"),
        containers: [
          { name: "c", volumeMounts: mounts, securityContext: level("s0:c2", { user: "u", type: "spc_t" }) },
        ],
      },
      "u:object_r:container_file_t:s0:c2",
    ],
    [
      "two containers that differ",
      {
        securityContext: level("s0:c1"),
        containers: [
          { name: "c", volumeMounts: mounts },
          { name: "d", volumeMounts: mounts, securityContext: level("s0:c2") },
        ],
      },
      undefined,
    ],
    [
      "a container that does not mount the volume does not count",
      {
        securityContext: level("s0:c1"),
        containers: [
          { name: "c", volumeMounts: mounts },
          { name: "d", securityContext: level("s0:c2") },
        ],
      },
      "system_u:object_r:container_file_t:s0:c1",
    ],
    [
      "one that would end the mount option",
      { securityContext: level('s0",exec,x="'), containers: [{ name: "c", volumeMounts: mounts }] },
      undefined,
    ],
  ])("the label: %s", (_, spec, label) => {
    const pod = { metadata: { name: "p", uid: "u", resourceVersion: "1" }, spec };
    expect(mounterArgsOf({ pod, outerNames: new Set(["data"]) }).seLinuxLabel).toBe(label);
  });
});
