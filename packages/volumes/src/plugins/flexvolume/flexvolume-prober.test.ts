/** Drivers that come, change, break and go, found through a plugin manager under the virtual clock. */
import { appendFile, chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { noMeter, recordingLogger, SeededRandom, systemClock, unprivilegedHost } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import type { VolumeHost } from "../../framework/volume-host.ts";
import { isAttachable } from "../../framework/volume-plugin.ts";
import { createVolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { flexVolumeSpecOf } from "./flexvolume-node-half.ts";
import { flexVolumeProber } from "./flexvolume-prober.ts";
import { driverDirectory, flexWorld, hangs, onlyInit, succeeds } from "./testing/flex-world.ts";

const signal = new AbortController().signal;

async function started(world = flexWorld(), options: { readonly minIntervalMs?: number } = {}) {
  const prober = flexVolumeProber(world.env, { directory: driverDirectory, ...options });
  const starting = createVolumePluginManager(world.volumeHost, [], prober);
  await world.clock.advance(0);
  const manager = await starting;
  const names = () => manager.plugins.map(({ pluginName }) => pluginName);
  /** After `ms` of virtual time. */
  const namesAfter = async (ms: number) => {
    await world.clock.advance(ms);
    return names();
  };
  return Object.assign(world, { prober, manager, names, namesAfter });
}

/** Calls of `init` so far, as the directories of the drivers. */
const inits = ({ calls }: { readonly calls: readonly string[] }) =>
  calls.filter((call) => call.endsWith(" init")).map((call) => call.slice(0, -" init".length));

describe("discovery (docs/behaviour/flexvolume.md 2, 3 and 7)", () => {
  it("knows at its start what is installed, under the names of vendor and driver (flexvolume.md 2.2, 3)", async () => {
    const world = flexWorld();
    await world.install("k8s.io~nfs", succeeds);
    await world.install("plain", onlyInit({ attach: false }));
    const { names, manager, prober } = await started(world);
    expect(names()).toEqual(["k8s.io/nfs", "plain"]);
    expect(manager.findPluginBySpec(flexVolumeSpecOf("k8s.io/nfs", "v")).pluginName).toBe("k8s.io/nfs");
    expect(() => manager.findPluginBySpec(flexVolumeSpecOf("k8s.io/other", "v"))).toThrow(
      "no volume plugin matched",
    );
    await prober.stop();
  });

  it("makes the driver directory when it is missing, for its owner alone (flexvolume.md 2.2, 8)", async () => {
    const { host, prober } = await started();
    expect(await host.stat(driverDirectory)).toMatchObject({ kind: "directory", mode: 0o700 });
    await prober.stop();
  });

  it("finds a driver that is installed after the start, within a second (flexvolume.md 2.2, 8)", async () => {
    const world = await started();
    await world.clock.advance(60_000);
    await world.install("v.io~d", succeeds);
    expect(await world.namesAfter(1000)).toEqual(["v.io/d"]);
    await world.prober.stop();
  });

  it("looks once for two changes 100 ms apart, and misses neither (flexvolume.md 2.5, 7)", async () => {
    const world = await started();
    await world.clock.advance(5000);
    await world.install("v.io~a", succeeds);
    await world.clock.advance(100);
    await world.install("v.io~b", succeeds);
    expect(await world.namesAfter(800)).toEqual(["v.io/a"]);
    expect(await world.namesAfter(200)).toEqual(["v.io/a", "v.io/b"]);
    await world.prober.stop();
  });

  it("looks at most once a second in a storm of 10,000 changes (flexvolume.md 2.5, 7)", async () => {
    const world = await started();
    const lists: number[] = [];
    const readDirectory = world.host.readDirectory.bind(world.host);
    world.host.readDirectory = (path) => {
      if (path === driverDirectory) lists.push(world.clock.monotonicMs());
      return readDirectory(path);
    };
    for (let i = 0; i < 10_000; i++) {
      await world.host.makeDirectory(`${driverDirectory}/d${i % 2}`);
      await world.host.removeDirectory(`${driverDirectory}/d${i % 2}`);
      await world.clock.advance(1);
    }
    expect(lists.length).toBeGreaterThan(8);
    expect(lists.length).toBeLessThanOrEqual(11);
    await world.prober.stop();
  });

  it("looks at each change at once where no interval is asked for, as 1.20 (flexvolume.md 3)", async () => {
    const world = await started(flexWorld(), { minIntervalMs: 0 });
    await world.clock.advance(5000);
    await world.install("v.io~a", succeeds);
    expect(await world.namesAfter(1)).toEqual(["v.io/a"]);
    await world.install("v.io~b", succeeds);
    expect(await world.namesAfter(1)).toEqual(["v.io/a", "v.io/b"]);
    await world.prober.stop();
  });

  it("does not see names with a dot, of directories and of programs that are being written (flexvolume.md 6, 7)", async () => {
    const world = await started();
    const directory = `${driverDirectory}/v.io~d`;
    await world.host.makeDirectory(directory, 0o755);
    await world.host.writeFileAtomic(`${directory}/.d`, "1", { mode: 0o755 });
    await world.host.makeDirectory(`${driverDirectory}/.hidden`, 0o755);
    await world.host.writeFileAtomic(`${driverDirectory}/.hidden/.hidden`, "1", { mode: 0o755 });
    await world.clock.advance(5000);
    expect(world.calls).toEqual([]);
    expect(world.errors()).toEqual([]);
    await world.install("v.io~d", succeeds);
    expect(await world.namesAfter(1000)).toEqual(["v.io/d"]);
    expect(inits(world)).toEqual(["v.io~d"]);
    await world.prober.stop();
  });

  it("asks only the driver that has changed (flexvolume.md 8)", async () => {
    const world = flexWorld();
    await world.install("v.io~a", succeeds);
    await world.install("v.io~b", succeeds);
    await started(world);
    await world.install("v.io~b", succeeds);
    await world.clock.advance(30_000);
    expect(inits(world)).toEqual(["v.io~a", "v.io~b", "v.io~b"]);
  });

  it("sees a change inside a directory of a driver that came later (flexvolume.md 7)", async () => {
    const world = await started();
    await world.install("v.io~d", succeeds);
    await world.host.makeDirectory(`${driverDirectory}/v.io~d/lib`);
    await world.clock.advance(2000);
    await world.host.writeFileAtomic(`${driverDirectory}/v.io~d/lib/helper`, "1");
    await world.clock.advance(1000);
    expect(inits(world)).toEqual(["v.io~d", "v.io~d"]);
    await world.prober.stop();
  });

  it("removes a driver with its program, and with its directory (flexvolume.md 7)", async () => {
    const world = flexWorld();
    await world.install("v.io~a", succeeds);
    await world.install("v.io~b", succeeds);
    const { namesAfter, host, prober } = await started(world);
    await host.removeFile(world.path("v.io~a"));
    expect(await namesAfter(1000)).toEqual(["v.io/b"]);
    await host.removeTree(`${driverDirectory}/v.io~b`);
    expect(await namesAfter(1000)).toEqual([]);
    await world.install("v.io~a", succeeds);
    expect(await namesAfter(1000)).toEqual(["v.io/a"]);
    await prober.stop();
  });

  it("makes a driver directory that is removed again, and watches it (flexvolume.md 7)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", succeeds);
    const { namesAfter, host, prober } = await started(world);
    await host.removeTree(driverDirectory);
    expect(await namesAfter(11_000)).toEqual([]);
    expect(await host.stat(driverDirectory)).toMatchObject({ kind: "directory" });
    await world.install("v.io~d", succeeds);
    expect(await namesAfter(1000)).toEqual(["v.io/d"]);
    await prober.stop();
  });

  it("drops the old version with an update whose init fails, and says so (flexvolume.md 8)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", succeeds);
    const { namesAfter, manager, prober } = await started(world);
    await world.install("v.io~d", () => ({ status: "Failure", message: "no kernel module" }));
    expect(await namesAfter(1000)).toEqual([]);
    expect(() => manager.findPluginByName("v.io/d")).toThrow("no volume plugin matched name: v.io/d");
    expect(world.errors()).toEqual([
      "Flexvolume driver v.io/d: init command failed, status: Failure, reason: no kernel module",
    ]);
    await world.install("v.io~d", succeeds);
    expect(await namesAfter(1000)).toEqual(["v.io/d"]);
    await prober.stop();
  });

  it("tries a driver that does not work again, with growing delays (flexvolume.md 8)", async () => {
    const world = flexWorld();
    let works = false;
    await world.install("v.io~d", () => ({ status: works ? "Success" : "Failure" }));
    const { namesAfter, prober } = await started(world);
    expect(await namesAfter(60_000)).toEqual([]);
    expect(inits(world).length).toBeLessThan(7);
    works = true;
    expect(await namesAfter(60_000)).toEqual(["v.io/d"]);
    await prober.stop();
  });

  it("keeps good drivers when others are broken, in every way a driver can be (flexvolume.md 8)", async () => {
    const world = flexWorld();
    await world.install("v.io~bad", () => "Segmentation fault");
    await world.install("v.io~none", () => ({ status: "Not supported" }));
    await world.install("v.io~hangs", hangs);
    await world.install("a~b~c", succeeds);
    await world.install("attaches", succeeds);
    const readOnly = await world.install("v.io~mode", succeeds);
    const text = (await world.host.readFile(readOnly)) ?? "";
    await world.host.writeFileAtomic(readOnly, text, { mode: 0o644 });
    await world.install("v.io~good", succeeds);
    const prober = flexVolumeProber(world.env, { directory: driverDirectory });
    const starting = createVolumePluginManager(world.volumeHost, [], prober);
    await world.clock.advance(10_000);
    expect((await starting).plugins.map(({ pluginName }) => pluginName)).toEqual(["v.io/good"]);
    expect(
      world
        .errors()
        .map((error) => error.slice("Flexvolume driver ".length))
        .sort(),
    ).toEqual([
      expect.stringContaining('a/b/c: "a/b/c" is no name of a plugin'),
      expect.stringContaining("attaches: a driver that attaches needs a vendor"),
      expect.stringContaining("v.io/bad: init printed something that is not JSON"),
      expect.stringContaining("v.io/hangs: init did not end within 10 s"),
      expect.stringContaining("v.io/mode: its program cannot be executed: make its mode 0755"),
      expect.stringContaining("v.io/none: does not support init"),
    ]);
    await prober.stop();
  });

  it("does not wait for a driver that hangs: others come meanwhile (flexvolume.md 8)", async () => {
    const world = await started();
    await world.install("v.io~hangs", hangs);
    await world.clock.advance(1000);
    await world.install("v.io~good", succeeds);
    expect(await world.namesAfter(1000)).toEqual(["v.io/good"]);
    await world.prober.stop();
  });

  it("keeps what it knows while the directory cannot be read (flexvolume.md 7)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", succeeds);
    const { namesAfter, host, prober } = await started(world);
    const readDirectory = host.readDirectory.bind(host);
    host.readDirectory = () => Promise.reject(new Error("EIO"));
    await host.makeDirectory(`${driverDirectory}/v.io~e`);
    expect(await namesAfter(30_000)).toEqual(["v.io/d"]);
    host.readDirectory = readDirectory;
    await world.install("v.io~e", succeeds);
    expect(await namesAfter(60_000)).toEqual(["v.io/d", "v.io/e"]);
    await prober.stop();
  });

  it("makes a new plugin without an attacher when an update no longer attaches (flexvolume.md 7)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", onlyInit({ attach: true }));
    const { clock, manager, prober } = await started(world);
    const before = manager.findPluginByName("v.io/d");
    expect(isAttachable(before)).toBe(true);
    await world.install("v.io~d", onlyInit({ attach: false }));
    await clock.advance(1000);
    const after = manager.findPluginByName("v.io/d");
    expect(after).not.toBe(before);
    expect(isAttachable(after)).toBe(false);
    expect(manager.findAttachablePluginByName("v.io/d")).toBeUndefined();
    await prober.stop();
  });

  it("asks an updated driver for what the old one did not support, also for volumes in use (flexvolume.md 7)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", onlyInit());
    const { clock, manager, prober } = await started(world);
    const before = manager.findPluginByName("v.io/d");
    const path = "/kubelet/pods/uid/volumes/v.io~d/vol";
    const tearDown = async () => {
      await world.host.makeDirectory(path);
      await (await before.newUnmounter("vol", "uid")).tearDown(signal);
    };
    for (let i = 0; i < 2; i++) await tearDown();
    const unmounts = () => world.calls.filter((call) => call.includes(" unmount ")).length;
    expect(unmounts()).toBe(1);
    await world.install("v.io~d", succeeds);
    await clock.advance(1000);
    await tearDown();
    expect(unmounts()).toBe(2);
    await prober.stop();
  });

  it("unmounts what was mounted before its driver went, once that is installed again (flexvolume.md 8)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", succeeds);
    const { clock, manager, prober } = await started(world);
    const before = manager.findPluginByName("v.io/d");
    await world.host.makeDirectory("/kubelet/pods/uid/volumes/v.io~d/vol");
    delete world.programs[world.path("v.io~d")];
    await world.host.removeTree(`${driverDirectory}/v.io~d`);
    await clock.advance(1000);
    const unmounter = await before.newUnmounter("vol", "uid");
    await expect(unmounter.tearDown(signal)).rejects.toThrow(
      "cannot be run (ENOENT): install the driver again",
    );
    await world.install("v.io~d", succeeds);
    await clock.advance(1000);
    await unmounter.tearDown(signal);
    expect(await world.host.stat("/kubelet/pods/uid/volumes/v.io~d/vol")).toBeUndefined();
    await prober.stop();
  });

  it("follows links within the directory, and none out of it or to hidden names (flexvolume.md 8)", async () => {
    const world = flexWorld();
    await world.install("v.io~d", succeeds);
    await world.host.makeDirectory("/elsewhere/out");
    await world.host.writeFileAtomic("/elsewhere/out/out", "1", { mode: 0o755 });
    await world.host.makeDirectory(`${driverDirectory}/.store`);
    await world.host.symlink("v.io~d", `${driverDirectory}/w.io~d`);
    await world.host.symlink("/elsewhere/out", `${driverDirectory}/v.io~out`);
    await world.host.symlink(".store", `${driverDirectory}/v.io~store`);
    await world.host.makeDirectory(`${driverDirectory}/v.io~link`);
    await world.host.symlink("/elsewhere/out/out", `${driverDirectory}/v.io~link/link`);
    world.programs[world.path("w.io~d")] = async () => ({
      code: 0,
      stdout: '{"status":"Success"}',
      stderr: "",
    });
    const { names, prober } = await started(world);
    expect(names()).toEqual(["v.io/d", "w.io/d"]);
    expect(world.errors()).toEqual([
      "Flexvolume driver v.io/link: its program is a link out of the driver directory: install the file itself",
    ]);
    await prober.stop();
  });

  it("ends when it is stopped while a driver hangs (flexvolume.md 8)", async () => {
    const world = flexWorld();
    await world.install("v.io~hangs", hangs);
    const prober = flexVolumeProber(world.env, { directory: driverDirectory });
    const starting = prober.init(world.volumeHost);
    await world.clock.advance(100);
    const stopping = prober.stop();
    await world.clock.advance(60_000);
    await stopping;
    await starting;
  });
});

describe("discovery on a real file system", () => {
  it("sees a driver that is installed, overwritten in place, and removed", { timeout: 30_000 }, async () => {
    const dir = await mkdtemp(`${tmpdir()}/longshore-flex-`);
    const host = unprivilegedHost();
    const logger = recordingLogger();
    const env = { clock: systemClock, random: new SeededRandom(1), logger, meter: noMeter, host };
    const prober = flexVolumeProber(env, { directory: `${dir}/exec`, minIntervalMs: 20 });
    try {
      const manager = await createVolumePluginManager(env as unknown as VolumeHost, [], prober);
      const attach = () => manager.plugins.map((plugin) => isAttachable(plugin));
      const until = (what: readonly boolean[]) =>
        expect.poll(attach, { timeout: 8000, interval: 20 }).toEqual(what);
      const script = (can: boolean) =>
        `#!/bin/sh\necho '{"status":"Success","capabilities":{"attach":${can}}}'\n`;
      await mkdir(`${dir}/exec/v.io~d`);
      await writeFile(`${dir}/exec/v.io~d/.d`, script(false));
      await chmod(`${dir}/exec/v.io~d/.d`, 0o755);
      await rename(`${dir}/exec/v.io~d/.d`, `${dir}/exec/v.io~d/d`);
      await until([false]);
      await writeFile(`${dir}/exec/v.io~d/d`, script(true));
      await until([true]);
      await rm(`${dir}/exec/v.io~d`, { recursive: true });
      await until([]);
      await appendFile(`${dir}/other`, "x");
    } finally {
      await prober.stop();
      await rm(dir, { recursive: true, force: true });
    }
  });
});
