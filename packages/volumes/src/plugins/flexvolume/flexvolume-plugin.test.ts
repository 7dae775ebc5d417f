/** The plugin of a driver: what it calls when, on a simulated host. */
import type { PersistentVolume, Pod } from "@longshore/kube";
import { HostError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { FailedPreconditionError, UncertainProgressError } from "../../framework/node-error-kind.ts";
import { type InTreeAttachableVolumePlugin, isAttachable } from "../../framework/volume-plugin.ts";
import { specOfPersistentVolume, specOfVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { FlexVolumeDriver } from "./driver-calls.ts";
import { parseDriverStatus } from "./driver-status.ts";
import { volumeOfDeviceMount } from "./flexvolume-names.ts";
import { type FlexVolumePlugin, flexVolumePlugin } from "./flexvolume-plugin.ts";
import { flexWorld, hangs, onlyInit, succeeds, type TestFlexDriver } from "./testing/flex-world.ts";

const signal = new AbortController().signal;
const pod: Pod = {
  metadata: { name: "p", namespace: "ns", uid: "uid" },
  spec: { containers: [], serviceAccountName: "sa" },
};
const podPath = "/kubelet/pods/uid/volumes/v.io~d/pv-1";
const globalPath = "/kubelet/plugins/kubernetes.io/flexvolume/v.io/d/mounts/pv-1";

function pvSpec(flexVolume: object = {}, readOnly = false): VolumeSpec {
  const pv = {
    metadata: { name: "pv-1" },
    spec: { flexVolume: { driver: "v.io/d", ...flexVolume }, claimRef: { namespace: "claims", name: "c" } },
  };
  return specOfPersistentVolume(pv as PersistentVolume, readOnly);
}

async function pluginOf(answers: TestFlexDriver, capabilities: object = {}) {
  const world = flexWorld();
  const executable = await world.install("v.io~d", answers);
  const driver = new FlexVolumeDriver(world.env, { pluginName: "v.io/d", executable });
  const said = parseDriverStatus(JSON.stringify({ status: "Success", capabilities }));
  const plugin = flexVolumePlugin(driver, said.capabilities) as FlexVolumePlugin &
    InTreeAttachableVolumePlugin;
  await plugin.init(world.volumeHost);
  const mount = async (spec = pvSpec(), fsGroup?: number) => {
    const mounter = await plugin.newMounter(spec, pod);
    await mounter.setUp(fsGroup === undefined ? {} : { fsGroup }, signal);
    return mounter;
  };
  /** A formatted disk that holds a file. */
  const device = async () => {
    await world.host.truncateFile("/disk", 8 << 20);
    return world.host.attachLoop("/disk");
  };
  return { ...world, plugin, mount, device };
}

/** The JSON options of a call that was made. */
const optionsOf = (call = ""): unknown =>
  JSON.parse(call.slice(call.indexOf("{"), call.lastIndexOf("}") + 1));

describe("the plugin (docs/behaviour/flexvolume.md 4.4)", () => {
  it("supports the volumes of its driver alone, inline or of a PersistentVolume", async () => {
    const { plugin } = await pluginOf(succeeds);
    expect(plugin.canSupport(pvSpec())).toBe(true);
    expect(plugin.canSupport(specOfVolume({ name: "v", flexVolume: { driver: "v.io/d" } }))).toBe(true);
    expect(plugin.canSupport(pvSpec({ driver: "v.io/other" }))).toBe(false);
    expect(plugin.canSupport(specOfVolume({ name: "v", emptyDir: {} }))).toBe(false);
    expect(plugin.supportsMountOption()).toBe(false);
    expect(plugin.getVolumeName(pvSpec())).toBe("pv-1");
  });

  it("has no attacher where the driver says so", async () => {
    const { plugin } = await pluginOf(succeeds, { attach: false });
    expect(isAttachable(plugin)).toBe(false);
  });

  it("rebuilds a spec from the directory of a pod, inline with the driver's name", async () => {
    const { plugin } = await pluginOf(succeeds);
    const found = await plugin.constructVolumeSpec("pv-1", podPath);
    expect(found.volume).toEqual({ name: "pv-1", flexVolume: { driver: "v.io/d" } });
    expect(plugin.canSupport(found)).toBe(true);
  });

  it("knows the volume of a device mount", () => {
    expect(volumeOfDeviceMount("/kubelet", globalPath)).toEqual({ pluginName: "v.io/d", volumeName: "pv-1" });
    expect(volumeOfDeviceMount("/kubelet", `${globalPath}/sub`)).toBeUndefined();
    expect(volumeOfDeviceMount("/other", globalPath)).toBeUndefined();
  });

  it("refuses a name that would leave its directory", async () => {
    const { plugin } = await pluginOf(succeeds);
    await expect(plugin.newUnmounter("..", "uid")).rejects.toThrow('volume name ".." cannot be');
    expect(() =>
      plugin
        .newAttacher()
        .getDeviceMountPath(specOfVolume({ name: "a/b", flexVolume: { driver: "v.io/d" } })),
    ).toThrow('volume name "a/b" cannot be');
  });
});

describe("the controller's half", () => {
  it("attaches with options and node, and takes the device from the answer", async () => {
    const { plugin, calls } = await pluginOf(() => ({ status: "Success", device: "/dev/sdx" }));
    const spec = pvSpec({ fsType: "xfs", options: { size: "1" } }, true);
    expect(await plugin.newAttacher().attach(spec, "node-1", signal)).toBe("/dev/sdx");
    expect(calls[0]).toMatch(/^v\.io~d attach \{.*\} node-1$/);
    expect(optionsOf(calls[0])).toEqual({
      "kubernetes.io/fsType": "xfs",
      "kubernetes.io/readwrite": "ro",
      "kubernetes.io/pvOrVolumeName": "pv-1",
      size: "1",
    });
  });

  it("lets the user's options replace its own", async () => {
    const { plugin, calls } = await pluginOf(succeeds);
    await plugin.newAttacher().attach(pvSpec({ options: { "kubernetes.io/fsType": "mine" } }), "n", signal);
    expect(optionsOf(calls[0])).toMatchObject({ "kubernetes.io/fsType": "mine" });
  });

  it("detaches by the volume's name", async () => {
    const { plugin, calls } = await pluginOf(succeeds);
    await plugin.newDetacher().detach("pv-1", "node-1", signal);
    expect(calls).toEqual(["v.io~d detach pv-1 node-1"]);
  });

  it("counts an unsupported attach and detach as done, with a warning", async () => {
    const { plugin, logger } = await pluginOf(onlyInit());
    expect(await plugin.newAttacher().attach(pvSpec(), "n", signal)).toBe("");
    await plugin.newDetacher().detach("pv-1", "n", signal);
    expect(logger.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "warn the Flexvolume driver does not support attach",
      "warn the Flexvolume driver does not support detach",
    ]);
  });

  it("declares no volume detached of which the driver does not say so", async () => {
    const answers: object[] = [
      { status: "Success", attached: true },
      { status: "Success", attached: false },
    ];
    const { plugin } = await pluginOf(() => answers.shift() ?? { status: "Success" });
    const [a, b, c] = [pvSpec(), pvSpec(), pvSpec()];
    const attached = await plugin.newAttacher().volumesAreAttached([a, b, c], "n", signal);
    expect([attached.get(a), attached.get(b), attached.get(c)]).toEqual([true, false, undefined]);
    const none = await pluginOf(onlyInit());
    expect((await none.plugin.newAttacher().volumesAreAttached([a], "n", signal)).size).toBe(0);
  });

  it("asks the driver for the volume's name before it attaches, and only a failure of that counts", async () => {
    const { plugin, calls } = await pluginOf(() => ({ status: "Success", volumeName: "theirs" }));
    expect(await plugin.canAttach(pvSpec())).toBe(true);
    expect(calls[0]).toContain("getvolumename {");
    expect(await (await pluginOf(onlyInit())).plugin.canAttach(pvSpec())).toBe(true);
    const refusing = await pluginOf(() => ({ status: "Failure", message: "option pool is missing" }));
    await expect(refusing.plugin.canAttach(pvSpec())).rejects.toThrow("option pool is missing");
  });

  it("expands to the size that the driver names, or to the requested one", async () => {
    const { plugin, calls } = await pluginOf(() => ({ status: "Success", volumeNewSize: 20 }));
    expect(await plugin.expandVolumeDevice(pvSpec(), 15n, 10n, signal)).toBe(20n);
    expect(calls[0]).toMatch(/ 15 10$/);
    expect(await (await pluginOf(onlyInit())).plugin.expandVolumeDevice(pvSpec(), 15n, 10n, signal)).toBe(
      15n,
    );
    expect((await pluginOf(succeeds, { requiresFSResize: false })).plugin.requiresFSResize()).toBe(false);
  });
});

describe("the node's half", () => {
  it("mounts with what the driver is to know of the pod, and with its Secret", async () => {
    const { mount, calls, secrets } = await pluginOf(succeeds);
    secrets.set("claims/s", { type: "v.io/d", data: { key: "cGFzcw==" } });
    const mounter = await mount(pvSpec({ secretRef: { name: "s" } }), 1234);
    expect(mounter.getPath()).toBe(podPath);
    expect(calls[0]).toContain(` mount ${podPath} {`);
    expect(optionsOf(calls[0])).toEqual({
      "kubernetes.io/fsType": "",
      "kubernetes.io/readwrite": "rw",
      "kubernetes.io/pvOrVolumeName": "pv-1",
      "kubernetes.io/pod.name": "p",
      "kubernetes.io/pod.namespace": "ns",
      "kubernetes.io/pod.uid": "uid",
      "kubernetes.io/serviceAccount.name": "sa",
      "kubernetes.io/mounterArgs.FsGroup": "1234",
      "kubernetes.io/secret/key": "cGFzcw==",
    });
  });

  it("finds the Secret in the pod's namespace, the one that the volume names, or the claim's", async () => {
    const { mount, secrets } = await pluginOf(succeeds);
    const inline = specOfVolume({ name: "v", flexVolume: { driver: "v.io/d", secretRef: { name: "s" } } });
    await expect(mount(inline)).rejects.toThrow("Secret ns/s of Flexvolume v does not exist: create it");
    await expect(mount(pvSpec({ secretRef: { name: "s" } }))).rejects.toThrow("Secret claims/s of");
    const named = pvSpec({ secretRef: { name: "s", namespace: "other" } });
    await expect(mount(named)).rejects.toThrow("Secret other/s of");
    secrets.set("other/s", { type: "Opaque", data: {} });
    await expect(mount(named)).rejects.toThrow('has not the type "v.io/d"');
  });

  it("shows no Secret in the error of a driver that repeats it", async () => {
    const { mount, secrets } = await pluginOf((_command, args) => ({
      status: "Failure",
      message: `pass ${args[1]}`,
    }));
    secrets.set("claims/s", { type: "v.io/d", data: { key: "cGFzcw==" } });
    const error = (await mount(pvSpec({ secretRef: { name: "s" } })).catch((e: Error) => e)) as Error;
    expect(error.message).toContain("*** {");
    expect(error.message).not.toMatch(/cGFzcw|pass/);
  });

  it("mounts the device, binds it for the pod and takes both down where the driver supports none of it", async () => {
    const { plugin, host, mount, device } = await pluginOf(onlyInit());
    const path = await device();
    const attacher = plugin.newAttacher();
    expect(await attacher.waitForAttach(pvSpec(), path, signal)).toBe(path);
    expect(attacher.getDeviceMountPath(pvSpec())).toBe(globalPath);
    for (let repeat = 0; repeat < 2; repeat++) {
      await attacher.mountDevice(pvSpec(), path, globalPath, signal);
      await mount();
    }
    await host.appendFileDurable(`${podPath}/data`, "kept");
    expect(await host.readFile(`${globalPath}/data`)).toBe("kept");
    expect(await host.fileSystemOf(path)).toBe("ext4");
    for (let repeat = 0; repeat < 2; repeat++)
      await (await plugin.newUnmounter("pv-1", "uid")).tearDown(signal);
    expect(await host.stat(podPath)).toBeUndefined();
    for (let repeat = 0; repeat < 2; repeat++)
      await plugin.newDeviceUnmounter().unmountDevice(globalPath, signal);
    expect(await host.stat(globalPath)).toBeUndefined();
    expect(await host.listMounts("/kubelet")).toEqual([]);
    await attacher.mountDevice(pvSpec(), path, globalPath, signal);
    expect(await host.readFile(`${globalPath}/data`)).toBe("kept");
  });

  it("mounts read-only and formats nothing where the volume is read-only", async () => {
    const { plugin, host, device } = await pluginOf(onlyInit());
    const path = await device();
    await host.format(path, "ext4");
    const spec = pvSpec({ readOnly: true });
    await plugin.newAttacher().mountDevice(spec, path, globalPath, signal);
    expect(await host.listMounts("/kubelet")).toMatchObject([{ target: globalPath, readOnly: true }]);
  });

  it("does nothing for an unsupported mountdevice without a device", async () => {
    const { plugin, host } = await pluginOf(onlyInit());
    await plugin.newAttacher().mountDevice(pvSpec(), "", globalPath, signal);
    expect(await host.listMounts("/kubelet")).toEqual([]);
  });

  it("calls the driver for what is not there or mounted already no second time", async () => {
    const { plugin, host, mount, calls, device } = await pluginOf(succeeds);
    const path = await device();
    await host.format(path, "ext4");
    for (const target of [podPath, globalPath]) {
      await host.makeDirectory(target);
      await host.mountDevice(path, target, { fsType: "ext4" });
    }
    await mount();
    await plugin.newAttacher().mountDevice(pvSpec(), path, globalPath, signal);
    await (await plugin.newUnmounter("other", "uid")).tearDown(signal);
    await plugin.newDeviceUnmounter().unmountDevice(`${globalPath}-other`, signal);
    expect(calls).toEqual([]);
  });

  it("does not call unmountdevice for a directory where nothing is mounted", async () => {
    const { plugin, host, calls } = await pluginOf(succeeds);
    await host.makeDirectory(globalPath);
    await plugin.newDeviceUnmounter().unmountDevice(globalPath, signal);
    expect(calls).toEqual([]);
    expect(await host.stat(globalPath)).toBeUndefined();
  });

  it("keeps a directory that is still mounted after a driver's unmount", async () => {
    const { plugin, host, device } = await pluginOf(succeeds);
    const path = await device();
    await host.format(path, "ext4");
    await host.makeDirectory(podPath);
    await host.mountDevice(path, podPath, { fsType: "ext4" });
    await host.appendFileDurable(`${podPath}/data`, "kept");
    await expect((await plugin.newUnmounter("pv-1", "uid")).tearDown(signal)).rejects.toThrow();
    expect(await host.readFile(`${podPath}/data`)).toBe("kept");
  });

  it("removes the directory of a failed mount when nothing is in it", async () => {
    const { host, mount } = await pluginOf(() => ({ status: "Failure", message: "no server" }));
    await expect(mount()).rejects.toThrow("mount command failed, status: Failure, reason: no server");
    expect(await host.stat(podPath)).toBeUndefined();
  });

  it("does not know what has come of a mount that was killed", async () => {
    const { clock, mount } = await pluginOf(hangs);
    const failed = mount().catch((error: unknown) => error);
    await clock.advance(600_000);
    expect(await failed).toBeInstanceOf(UncertainProgressError);
  });

  it("says so when a driver supports neither attach nor mount", async () => {
    const { mount } = await pluginOf(onlyInit(), { attach: false });
    await expect(mount()).rejects.toThrow("supports neither attach nor mount: correct the driver");
  });

  it.each([
    ["gives files to the pod's group", {}, false, true],
    ["leaves a read-only volume", {}, true, false],
    ["leaves it to a driver that says so", { fsGroup: false }, false, false],
  ])("%s", async (_what, capabilities, readOnly, isGiven) => {
    const { host, mount } = await pluginOf(succeeds, capabilities);
    const given: string[] = [];
    host.chownTree = async (path, gid) => {
      given.push(`${path} ${gid}`);
      throw new Error("EIO");
    };
    await mount(pvSpec({ readOnly }), 7);
    expect(given).toEqual(isGiven ? [`${podPath} 7`] : []);
  });

  it("grows the file system by the driver, or as for any device", async () => {
    const where = {
      devicePath: "/dev/x",
      deviceMountPath: globalPath,
      path: globalPath,
      phase: "staged",
    } as const;
    const sizes = { newSizeBytes: 20n, oldSizeBytes: 10n };
    const { plugin, calls } = await pluginOf(succeeds);
    expect(await plugin.nodeExpand({ spec: pvSpec(), ...where, ...sizes }, signal)).toBe(true);
    expect(calls[0]).toMatch(/ expandfs \{.*\} \/dev\/x .*mounts\/pv-1 20 10$/);
    const inline = specOfVolume({ name: "v", flexVolume: { driver: "v.io/d" } });
    await expect(plugin.nodeExpand({ spec: inline, ...where, ...sizes }, signal)).rejects.toThrow(
      "of no PersistentVolume",
    );

    const other = await pluginOf(onlyInit());
    const path = await other.device();
    await other.plugin.newAttacher().mountDevice(pvSpec(), path, globalPath, signal);
    const before = await other.host.usage(globalPath);
    await other.host.truncateFile("/disk", 16 << 20);
    await other.host.attachLoop("/disk");
    await other.plugin.nodeExpand({ spec: pvSpec(), ...where, devicePath: path, ...sizes }, signal);
    expect((await other.host.usage(globalPath)).totalBytes).toBeGreaterThan(before.totalBytes);
  });

  it("grows the file system unmounted where it may not otherwise, before any pod has it", async () => {
    const { plugin, host, device } = await pluginOf(onlyInit());
    const devicePath = await device();
    await plugin.newAttacher().mountDevice(pvSpec(), devicePath, globalPath, signal);
    const before = await host.usage(globalPath);
    await host.truncateFile("/disk", 16 << 20);
    await host.attachLoop("/disk");
    host.growFileSystem = async () => {
      throw new HostError("growFileSystem", devicePath, "EPERM");
    };
    const where = { spec: pvSpec(), devicePath, deviceMountPath: globalPath, newSizeBytes: 20n };
    const published = { ...where, path: podPath, phase: "published" } as const;
    await expect(plugin.nodeExpand(published, signal)).rejects.toThrow(FailedPreconditionError);
    expect((await host.usage(globalPath)).totalBytes).toBe(before.totalBytes);
    await plugin.nodeExpand({ ...where, path: globalPath, phase: "staged" }, signal);
    expect((await host.usage(globalPath)).totalBytes).toBeGreaterThan(before.totalBytes);
  });

  it("asks for no growth of a file system where the driver needs none", async () => {
    const { plugin, calls } = await pluginOf(succeeds, { requiresFSResize: false });
    const where = { devicePath: "", deviceMountPath: "", path: podPath, phase: "published" } as const;
    expect(await plugin.nodeExpand({ spec: pvSpec(), ...where, newSizeBytes: 2n }, signal)).toBe(true);
    expect(calls).toEqual([]);
  });
});
