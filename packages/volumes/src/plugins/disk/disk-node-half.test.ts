/** The node's half where plugins differ, and where something is wrong: one clear sentence each, and nothing left. */
import type { Pod } from "@longshore/kube";
import { HostError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { CloudError } from "../../framework/ports.ts";
import {
  isAttachable,
  isBlockVolumePlugin,
  isDeviceMountable,
  isExpandable,
  isInTreeAttachable,
  listsGlobalMounts,
  type VolumePlugin,
} from "../../framework/volume-plugin.ts";
import {
  isBlockSpec,
  specOfPersistentVolume,
  specOfVolume,
  type VolumeSpec,
} from "../../framework/volume-spec.ts";
import { fakeCredentials } from "../../testing/fake-provider-cloud.ts";
import { InTreePluginWorld, podOf } from "../../testing/in-tree-plugin-world.ts";
import { crc32Koopman } from "../azure-disk/crc32-koopman.ts";
import { inTreePlugins } from "../in-tree-plugins.ts";

const { signal } = new AbortController();
const attachedPlugins = inTreePlugins().flatMap((plugin) =>
  isAttachable(plugin) ? [plugin.pluginName] : [],
);

/** The plugin as one with attached volumes. */
function attaching(plugin: VolumePlugin) {
  if (!isAttachable(plugin) || !isDeviceMountable(plugin) || !isInTreeAttachable(plugin))
    throw new Error(`${plugin.pluginName} attaches nothing`);
  return plugin;
}

/** Attaches, waits and mounts at the global directory; returns that and the device. */
async function mounted({ controller, node }: InTreePluginWorld, spec: VolumeSpec) {
  const reported = await attaching(controller).newAttacher().attach(spec, "node-1", signal);
  const attacher = attaching(node).newAttacher();
  const path = attacher.getDeviceMountPath(spec);
  const device = await attacher.waitForAttach(spec, reported, signal, podOf("a"));
  await attacher.mountDevice(spec, device, path, signal);
  return { path, device, reported };
}

/** The same volume with other fields in its source. */
function withSource(spec: VolumeSpec, field: string, changes: object, readOnly = false): VolumeSpec {
  const pv = spec.persistentVolume;
  const source = (pv?.spec as Record<string, object> | undefined)?.[field];
  return specOfPersistentVolume(
    { ...pv, spec: { ...pv?.spec, [field]: { ...source, ...changes } } },
    readOnly,
  );
}

describe("the device", () => {
  it.each([
    ["aws-ebs", "awsElasticBlockStore", "/devices/i-node-1/xvdbb", "1"],
    ["gce-pd", "gcePersistentDisk", "/devices/i-node-1/disk/by-id/google-kubernetes-dynamic-pvc-1", "-part1"],
  ])("%s: a partition has a device of its own", async (plugin, field, device, suffix) => {
    const world = await InTreePluginWorld.of(`kubernetes.io/${plugin}`);
    const spec = withSource(await world.provisioned(), field, { partition: 1 });
    const reported = await attaching(world.controller).newAttacher().attach(spec, "node-1", signal);
    expect(reported).toBe(device);
    await world.host.truncateFile("/partition", 1 << 20);
    const partition = await world.host.attachLoop("/partition");
    await world.host.symlink(partition, `${device}${suffix}`);
    expect(await attaching(world.node).newAttacher().waitForAttach(spec, reported, signal)).toBe(partition);
  });

  it("Azure reports the number, and the node looks in its own directory", async () => {
    const world = await InTreePluginWorld.of("kubernetes.io/azure-disk");
    const { reported, device } = await mounted(world, await world.provisioned());
    expect(reported).toBe("1");
    expect(device).toMatch(/^\/dev\/loop/);
  });

  it("is waited for, also where its link leads nowhere yet, and found by a relative link", async () => {
    const { clock, host, node, provisioned } = await worldOf("aws-ebs");
    const spec = await provisioned();
    await host.makeDirectory("/d/by-id");
    await host.symlink("../disk", "/d/by-id/x");
    let found: string | undefined;
    const waiting = attaching(node)
      .newAttacher()
      .waitForAttach(spec, "/d/by-id/x", signal)
      .then((device) => {
        found = device;
      });
    await clock.advance(50_000);
    expect(found).toBeUndefined();
    await host.truncateFile("/backing-x", 1 << 20);
    await host.symlink(await host.attachLoop("/backing-x"), "/d/disk");
    await clock.advance(1_000);
    await waiting;
    expect(found).toMatch(/^\/dev\/loop/);
  });

  it("is not reported: the sentence says so", async () => {
    const { node, provisioned } = await worldOf("cinder");
    const waiting = attaching(node)
      .newAttacher()
      .waitForAttach(await provisioned(), "", signal);
    await expect(waiting).rejects.toThrow(/gives no devicePath: attach it again/);
  });
});

async function worldOf(plugin: string) {
  const world = await InTreePluginWorld.of(`kubernetes.io/${plugin}`);
  const { clock, host, node, controller, cloud } = world;
  return { world, clock, host, node, controller, cloud, provisioned: () => world.provisioned() };
}

describe.each(attachedPlugins)("%s: what is wrong with a file system is said", (pluginName) => {
  const fieldOf = (spec: VolumeSpec) => {
    const fields = Object.keys(spec.persistentVolume?.spec ?? {});
    const known = [
      "awsElasticBlockStore",
      "gcePersistentDisk",
      "azureDisk",
      "cinder",
      "vsphereVolume",
      "rbd",
    ];
    return fields.find((field) => known.includes(field)) as string;
  };

  it("a type that nothing can make", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const spec = await world.provisioned();
    const wrong = withSource(spec, fieldOf(spec), { fsType: "fat99" });
    await expect(mounted(world, wrong)).rejects.toThrow(/fsType "fat99": correct the volume's fsType/);
    expect(await world.host.listMounts("/kubelet")).toEqual([]);
  });

  it("a type other than that on the disk, whose data stays", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const spec = await world.provisioned();
    const { path } = await mounted(world, spec);
    await world.host.appendFileDurable(`${path}/data`, "kept");
    await attaching(world.node).newDeviceUnmounter().unmountDevice(path, signal);
    const wrong = withSource(spec, fieldOf(spec), { fsType: "xfs" });
    await expect(mounted(world, wrong)).rejects.toThrow(
      /it holds ext4 and its fsType is "xfs": set fsType to ext4/,
    );
    const again = await mounted(world, spec);
    expect(await world.host.readFile(`${again.path}/data`)).toBe("kept");
  });

  it("a device that has gone", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const spec = await world.provisioned();
    const attacher = attaching(world.node).newAttacher();
    const mounting = attacher.mountDevice(spec, "/dev/gone", attacher.getDeviceMountPath(spec), signal);
    await expect(mounting).rejects.toThrow(/device \/dev\/gone has gone: .* attached again/);
  });

  it("a blank disk that is only read", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const spec = await world.provisioned();
    const reading = withSource(spec, fieldOf(spec), {}, true);
    await expect(mounted(world, reading)).rejects.toThrow(/is to be read and holds no file system/);
  });
});

describe("names that name nothing are refused, and none leaves its directory", () => {
  it.each<[string, object, RegExp]>([
    [
      "gce-pd",
      { gcePersistentDisk: { pdName: "../../etc" } },
      /pdName "..\/..\/etc": expected the name of a disk/,
    ],
    ["cinder", { cinder: { volumeID: "../x" } }, /volumeID "..\/x": expected the UUID/],
    [
      "azure-disk",
      { azureDisk: { diskURI: "/subscriptions/../x", diskName: "x" } },
      /diskURI .* expected \/subscriptions/,
    ],
    [
      "vsphere-volume",
      { vsphereVolume: { volumePath: "[ds] a/../../x.vmdk" } },
      /volumePath .*: expected \[<datastore>\]/,
    ],
    ["rbd", { rbd: { monitors: ["m"], image: "../x" } }, /pool and image "rbd:..\/x": expected names/],
    ["rbd", { rbd: { monitors: ["m"], pool: "a-image-b", image: "c" } }, /the pool without -image-/],
    ["rbd", { rbd: { monitors: [], image: "c" } }, /monitors is empty: name the monitors/],
    [
      "azure-disk",
      { azureDisk: { diskURI: "https://a/x.vhd", diskName: "x", kind: "Dedicated" } },
      /kind Dedicated is not supported/,
    ],
  ])("%s: %j", async (plugin, source, message) => {
    const { node, controller } = await worldOf(plugin);
    const spec = specOfPersistentVolume({ metadata: { name: "pv" }, spec: source as never }, false);
    const use = async () => {
      await attaching(controller).newAttacher().attach(spec, "node-1", signal);
      attaching(node).newAttacher().getDeviceMountPath(spec);
    };
    await expect(use()).rejects.toThrow(message);
  });
});

describe("Azure's hashed directories", () => {
  it("have the checksum of upstream", () => {
    // The check value of CRC-32K.
    expect(crc32Koopman("123456789")).toBe(String(0x2d3dd0ae));
  });

  it("lead back to the disk after a restart", async () => {
    const world = await InTreePluginWorld.of("kubernetes.io/azure-disk");
    const spec = await world.provisioned();
    const { path } = await mounted(world, spec);
    expect(path).toMatch(/^\/kubelet\/plugins\/kubernetes.io\/azure-disk\/mounts\/m\d+$/);
    await world.restartNode();
    if (!listsGlobalMounts(world.node)) throw new Error("nothing is listed");
    const [found] = await world.node.listGlobalMounts();
    expect(found && world.node.getVolumeName(found.spec)).toBe(world.node.getVolumeName(spec));
  });

  it("are not shared by two disks with one hash", async () => {
    const world = await InTreePluginWorld.of("kubernetes.io/azure-disk");
    const spec = await world.provisioned();
    const { path, device } = await mounted(world, spec);
    const record = `/kubelet/plugins/kubernetes.io/azure-disk/volumes/${path.slice(path.lastIndexOf("/") + 1)}`;
    await world.host.writeFileAtomic(record, "/subscriptions/other");
    const mounting = attaching(world.node).newDeviceMounter().mountDevice(spec, device, path, signal);
    await expect(mounting).rejects.toThrow(
      /in use by volume \/subscriptions\/other, whose name has the same hash/,
    );
  });
});

describe("a volume that is only read", () => {
  it("GCE attaches to several nodes", async () => {
    const { world, controller, cloud } = await worldOf("gce-pd");
    const spec = { ...(await world.provisioned()), readOnly: true };
    const attacher = attaching(controller).newAttacher();
    await attacher.attach(spec, "node-1", signal);
    await attacher.attach(spec, "node-2", signal);
    expect([...cloud.disks.values()][0]?.attachments.size).toBe(2);
  });
});

describe("offline expansion", () => {
  it.each(["azure-disk", "cinder"])("%s grows a disk only while no node has it", async (plugin) => {
    const { world, controller } = await worldOf(plugin);
    const spec = await world.provisioned();
    await attaching(controller).newAttacher().attach(spec, "node-1", signal);
    if (!isExpandable(controller)) throw new Error("it cannot grow");
    const grow = () => controller.expandVolumeDevice(spec, 4n * 1024n ** 3n, 2n * 1024n ** 3n, signal);
    await expect(grow()).rejects.toThrow(/only while they are attached to no node: end the pods/);
    const name = controller.getVolumeName(spec);
    await attaching(controller).newDetacher().detach(name, "node-1", signal);
    expect(await grow()).toBe(4n * 1024n ** 3n);
    // The controller died before it said so, and a pod came: there is nothing to do.
    await attaching(controller).newAttacher().attach(spec, "node-1", signal);
    expect(await grow()).toBe(4n * 1024n ** 3n);
  });
});

describe("Ceph RBD", () => {
  const attachments = ({ cloud }: InTreePluginWorld) =>
    [...cloud.disks.values()].flatMap((d) => [...d.attachments.keys()]);
  const wait = ({ node }: InTreePluginWorld, spec: VolumeSpec, pod: Pod = podOf("a")) =>
    attaching(node).newAttacher().waitForAttach(spec, "", signal, pod);

  it("maps on the node alone, and unmaps with the global mount", async () => {
    const { world, controller } = await worldOf("rbd");
    const spec = await world.provisioned();
    expect(await attaching(controller).newAttacher().attach(spec, "node-1", signal)).toBe("");
    expect(attachments(world)).toEqual([]);
    const { path } = await mounted(world, spec);
    expect(path).toBe("/kubelet/plugins/kubernetes.io/rbd/mounts/rbd-image-kubernetes-dynamic-pvc-1");
    expect(attachments(world)).toEqual(["i-node-1"]);
    await attaching(world.node).newDeviceUnmounter().unmountDevice(path, signal);
    expect(attachments(world)).toEqual([]);
  });

  // With the loss of power: the machine lost it a few seconds after the mount, and with it the directory. The agent that came back found
  // nothing of the volume, a crossing that waited for the node's volumes to be gone flipped its gates, and CSI took the volume over while
  // the in-tree code still held it: C1.
  it.each([
    ["a restart", () => {}],
    ["a loss of power", ({ host }: InTreePluginWorld) => host.losePower()],
  ])("finds what was mapped and never mounted after %s, and unmaps it", async (_what, happens) => {
    const { world } = await worldOf("rbd");
    const spec = await world.provisioned();
    await wait(world, spec);
    happens(world);
    await world.restartNode();
    const { node } = world;
    if (!listsGlobalMounts(node)) throw new Error("nothing is listed");
    const [found] = await node.listGlobalMounts();
    expect(found && node.getVolumeName(found.spec)).toBe("rbd:kubernetes-dynamic-pvc-1");
    await attaching(node)
      .newDeviceUnmounter()
      .unmountDevice(found?.deviceMountPath ?? "", signal);
    expect([attachments(world), await node.listGlobalMounts()]).toEqual([[], []]);
  });

  it("unmaps what it cannot mount; where that fails, the mount counts as uncertain", async () => {
    const { world, cloud } = await worldOf("rbd");
    const wrong = withSource(await world.provisioned(), "rbd", { fsType: "fat99" });
    await expect(mounted(world, wrong)).rejects.toThrow(/fat99/);
    expect(attachments(world)).toEqual([]);
    cloud.before = (call) => {
      if (call.startsWith("detach")) throw new CloudError("Unavailable", "no answer");
    };
    await expect(mounted(world, wrong)).rejects.toMatchObject({ name: "UncertainProgressError" });
  });

  it("takes the secret of an inline volume from the pod's namespace alone", async () => {
    const { world } = await worldOf("rbd");
    const { image = "" } = (await world.provision()).spec?.rbd ?? {};
    const secretRef = { name: "ceph", namespace: "other" };
    const source = { monitors: ["m"], image, user: fakeCredentials.user, secretRef };
    const spec = specOfVolume({ name: "v", rbd: source as never });
    expect(await wait(world, spec)).toMatch(/^\/dev\/loop/);
    const elsewhere = { metadata: { name: "p", namespace: "elsewhere", uid: "u" } };
    await expect(wait(world, spec, elsewhere)).rejects.toThrow("Secret elsewhere/ceph does not exist");
  });

  it.each<[string, string, Readonly<Record<string, string>>, RegExp]>([
    [
      "of another type",
      "Opaque",
      { key: fakeCredentials.key },
      /type is "Opaque": create it with type kubernetes.io\/rbd/,
    ],
    ["without a key", "kubernetes.io/rbd", {}, /data.key is missing: add it/],
    ["with a wrong key", "kubernetes.io/rbd", { key: "wrong-key" }, /refuses user and key of its secret/],
  ])("names a secret %s, and leaves no directory", async (_name, type, values, message) => {
    const { world } = await worldOf("rbd");
    await world.secret("bad", type, values);
    const spec = withSource(await world.provisioned(), "rbd", {
      secretRef: { name: "bad", namespace: "default" },
    });
    const error = await wait(world, spec).catch((thrown: unknown) => thrown as Error);
    expect(String(error)).toMatch(message);
    expect(`${error} ${(error as Error).cause}`).not.toContain("wrong-key");
    expect(await world.host.readDirectory("/kubelet/plugins/kubernetes.io/rbd/mounts")).toEqual(
      type === "kubernetes.io/rbd" && "key" in values ? [] : undefined,
    );
  });

  it("says that another node has the image", async () => {
    const { world, cloud } = await worldOf("rbd");
    const spec = await world.provisioned();
    const [id = ""] = cloud.disks.keys();
    await cloud.attachDisk(id, "i-node-2", signal, { credentials: fakeCredentials });
    await expect(wait(world, spec)).rejects.toThrow(
      /in use by another node and cannot be attached to node-1/,
    );
  });

  it("attaches a block volume without a global mount, and finds it again with nothing of a pod", async () => {
    const { world, node } = await worldOf("rbd");
    const spec = await world.provisioned({ claim: { volumeMode: "Block" } });
    if (!isBlockVolumePlugin(node) || !listsGlobalMounts(node)) throw new Error("it has no block volumes");
    expect(await wait(world, spec)).toMatch(/^\/dev\/loop/);
    const mapper = await node.newBlockVolumeMapper(spec, podOf("a"));
    const deviceMountPath = mapper.getGlobalMapPath(spec);
    const found = await node.listGlobalMounts();
    expect(found.map((one) => one.deviceMountPath)).toEqual([deviceMountPath]);
    expect(found.map((one) => [node.getVolumeName(one.spec), isBlockSpec(one.spec)])).toEqual([
      [node.getVolumeName(spec), true],
    ]);
    const unmapper = await node.newBlockVolumeUnmapper("pvc-1", "");
    await unmapper.tearDownDevice?.(deviceMountPath, "", signal);
    expect(attachments(world)).toEqual([]);
  });
});

describe("Portworx", () => {
  const attachments = ({ cloud }: InTreePluginWorld) =>
    [...cloud.disks.values()].flatMap((d) => [...d.attachments.keys()]);
  const setUp = async ({ node }: InTreePluginWorld, spec: VolumeSpec, uid: string) =>
    (await node.newMounter(spec, podOf(uid))).setUp({}, signal);
  const tearDown = async ({ node }: InTreePluginWorld, uid: string) =>
    (await node.newUnmounter("pvc-1", uid)).tearDown(signal);
  const records = ({ host }: InTreePluginWorld) =>
    host.readDirectory("/kubelet/plugins/kubernetes.io/portworx-volume/volumes");

  it("is attached by the first pod and detached with the last", async () => {
    const { world } = await worldOf("portworx-volume");
    const spec = await world.provisioned();
    await setUp(world, spec, "a");
    await setUp(world, spec, "b");
    await world.restartNode();
    await tearDown(world, "a");
    expect(attachments(world)).toEqual(["i-node-1"]);
    await tearDown(world, "b");
    expect([attachments(world), await records(world)]).toEqual([[], []]);
  });

  // The record of a pod outlived a loss of power and its directory did not: no teardown came, and the volume stayed attached.
  it("after a loss of power the pod's directory is there as long as its record is", async () => {
    const { world } = await worldOf("portworx-volume");
    await setUp(world, await world.provisioned(), "a");
    world.host.losePower();
    await world.restartNode();
    expect(await records(world)).toEqual(["a~pvc-1"]);
    expect(await world.host.readDirectory("/kubelet/pods/a/volumes/kubernetes.io~portworx-volume")).toEqual([
      "pvc-1",
    ]);
    await tearDown(world, "a");
    expect([attachments(world), await records(world)]).toEqual([[], []]);
  });

  it("formats with what the class asked of the provider, of which the volume says nothing", async () => {
    const { world } = await worldOf("portworx-volume");
    await setUp(world, await world.provisioned({ parameters: { fs: "xfs" } }), "a");
    const [mount] = await world.host.listMounts("/kubelet/pods/a");
    expect(mount?.fsType).toBe("xfs");
  });

  it("knows the volume of a pod's directory after a restart", async () => {
    const { world } = await worldOf("portworx-volume");
    const spec = await world.provisioned();
    await setUp(world, spec, "a");
    await world.restartNode();
    const path = "/kubelet/pods/a/volumes/kubernetes.io~portworx-volume/pvc-1";
    expect(world.node.getVolumeName(await world.node.constructVolumeSpec("pvc-1", path))).toBe("1001");
  });

  // The machine lost its power a second after the mount, and the pod was gone when it came back. Only the file was left of the
  // pod's volume, and no directory by which it was found: for that pod the volume stayed attached, also once the pods that had it next were gone.
  it("is found by its directory after a loss of power, too", async () => {
    const { world } = await worldOf("portworx-volume");
    await setUp(world, await world.provisioned(), "a");
    world.host.losePower();
    await world.restartNode();
    const directory = "/kubelet/pods/a/volumes/kubernetes.io~portworx-volume";
    expect(await world.host.readDirectory(directory)).toEqual(["pvc-1"]);
    await tearDown(world, "a");
    expect([attachments(world), await records(world)]).toEqual([[], []]);
  });

  it("a teardown that was cut off is finished by the next", async () => {
    const { world, cloud } = await worldOf("portworx-volume");
    await setUp(world, await world.provisioned(), "a");
    cloud.before = (call) => {
      if (call.startsWith("detach")) throw new CloudError("Unavailable", "no answer");
    };
    await expect(tearDown(world, "a")).rejects.toThrow("no answer");
    cloud.before = () => {};
    await world.restartNode();
    await tearDown(world, "a");
    expect([attachments(world), await records(world)]).toEqual([[], []]);
  });

  it("what cannot be mounted is detached; where that fails, the mount counts as uncertain", async () => {
    const { world, cloud } = await worldOf("portworx-volume");
    const wrong = withSource(await world.provisioned(), "portworxVolume", { fsType: "fat99" });
    await expect(setUp(world, wrong, "a")).rejects.toThrow(/fat99/);
    expect([attachments(world), await records(world)]).toEqual([[], []]);
    cloud.before = (call) => {
      if (call.startsWith("detach")) throw new CloudError("Unavailable", "no answer");
    };
    await expect(setUp(world, wrong, "a")).rejects.toMatchObject({ name: "UncertainProgressError" });
    cloud.before = () => {};
    await tearDown(world, "a");
    expect([attachments(world), await records(world)]).toEqual([[], []]);
  });

  it("says that another node has the volume, and does not take it from there", async () => {
    const { world, cloud } = await worldOf("portworx-volume");
    const spec = await world.provisioned();
    await cloud.attachDisk("1001", "i-node-2", signal);
    await expect(setUp(world, spec, "a")).rejects.toThrow(
      /in use by another node and cannot be attached to node-1/,
    );
    expect([attachments(world), await records(world)]).toEqual([["i-node-2"], []]);
  });
});

it("an error of the host that no rule explains stays as it is", async () => {
  const { world, host } = await worldOf("cinder");
  const spec = await world.provisioned();
  const reported = await attaching(world.controller).newAttacher().attach(spec, "node-1", signal);
  const device = await attaching(world.node).newAttacher().waitForAttach(spec, reported, signal);
  await host.format(device, "ext4");
  const fileSystem = host.disks.byDevice(device)?.backing.disk.fileSystem;
  if (fileSystem !== undefined) fileSystem.errors = "uncorrectable";
  await expect(mounted(world, spec)).rejects.toThrow(HostError);
});
