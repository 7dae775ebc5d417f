import { constants, existsSync } from "node:fs";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KeyedLock } from "../locks/keyed-lock.ts";
import { HostError } from "./host.ts";
import { kernelHost } from "./kernel-host.ts";
import { mountsBelow, parseMountInfo } from "./mount-info.ts";
import { openBelow } from "./node-sub-path.ts";
import { codeOfText } from "./to-host-error.ts";
import { unprivilegedHost } from "./unprivileged-host.ts";

const never = new AbortController().signal;
let dir: string;
beforeEach(async () => {
  dir = await fs.realpath(await fs.mkdtemp(`${tmpdir()}/longshore-real-`));
});
afterEach(() => fs.rm(dir, { recursive: true, force: true }));

describe("programs", () => {
  const host = kernelHost();

  test("run without a shell, with exactly the environment they are given", async () => {
    const result = await host.runProgram(process.execPath, {
      args: ["-e", "console.log(process.argv[1], process.env.A, process.env.HOME); process.exit(3)", "$A; *"],
      env: { A: "1" },
      cwd: dir,
      signal: never,
    });
    expect(result).toEqual({ code: 3, stdout: "$A; * 1 undefined\n", stderr: "" });
  });

  test("reads what it is given, and none of it need be read", async () => {
    const echo = "process.stdin.pipe(process.stdout)";
    const input = "a: 1\n".repeat(50_000);
    const result = await host.runProgram(process.execPath, { args: ["-e", echo], input, signal: never });
    expect(result).toEqual({ code: 0, stdout: input, stderr: "" });
    const deaf = { args: ["-e", "process.exit(4)"], input, signal: never };
    expect((await host.runProgram(process.execPath, deaf)).code).toBe(4);
  });

  test("one that a signal ended has code -1", async () => {
    const result = await host.runProgram(process.execPath, {
      args: ["-e", "process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)"],
      signal: never,
    });
    expect(result.code).toBe(-1);
  });

  test("giving up kills it and rejects with the reason", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const running = host.runProgram(process.execPath, {
      args: ["-e", "setInterval(() => {}, 1000)"],
      signal: controller.signal,
    });
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
    await expect(host.runProgram("true", { args: [], signal: controller.signal })).rejects.toBe(reason);
  });
});

describe("files and links", () => {
  const host = kernelHost();

  test("what is appended, sized or replaced is never at the end of a link", async () => {
    await fs.writeFile(`${dir}/victim`, "kept");
    await fs.symlink(`${dir}/victim`, `${dir}/link`);
    await expect(host.appendFileDurable(`${dir}/link`, "x")).rejects.toMatchObject({ code: "ELOOP" });
    await expect(host.truncateFile(`${dir}/link`, 0)).rejects.toMatchObject({ code: "ELOOP" });
    await host.writeFileAtomic(`${dir}/link`, "new");
    expect(await fs.readFile(`${dir}/victim`, "utf8")).toBe("kept");
    expect(await fs.readFile(`${dir}/link`, "utf8")).toBe("new");
  });

  test("a directory that is swapped for a link all the time leads no change of group out of its tree", async () => {
    const outside = `${dir}/outside`;
    const tree = `${dir}/tree`;
    await fs.mkdir(outside, { mode: 0o700 });
    await fs.writeFile(`${outside}/f`, "", { mode: 0o600 });
    await fs.mkdir(`${tree}/a`, { recursive: true });
    await fs.symlink(outside, `${tree}/b`);
    let ended = false;
    const swap = (async () => {
      while (!ended) {
        await fs.rename(`${tree}/a`, `${tree}/c`);
        await fs.rename(`${tree}/b`, `${tree}/a`);
        await fs.rename(`${tree}/a`, `${tree}/b`);
        await fs.rename(`${tree}/c`, `${tree}/a`);
      }
    })();
    for (let i = 0; i < 300; i++) await host.chownTree(tree, process.getegid?.() ?? 0);
    ended = true;
    await swap;
    expect((await fs.stat(outside)).mode & 0o7777).toBe(0o700);
    expect((await fs.stat(`${outside}/f`)).mode & 0o7777).toBe(0o600);
  });
});

describe("a part of a volume", () => {
  test.runIf(process.platform === "linux")(
    "a directory that becomes a link all the time leads no part out of the volume",
    async () => {
      const [volume, outside] = [`${dir}/volume`, `${dir}/outside`];
      await fs.mkdir(volume);
      await fs.mkdir(`${outside}/x`, { recursive: true });
      const foreign = new Set([(await fs.stat(outside)).ino, (await fs.stat(`${outside}/x`)).ino]);
      let ended = false;
      const swap = (async () => {
        while (!ended) {
          await fs.mkdir(`${volume}/a/x`, { recursive: true }).catch(() => {});
          await fs.rm(`${volume}/a`, { recursive: true, force: true }).catch(() => {});
          await fs.symlink(outside, `${volume}/a`).catch(() => {});
          await fs.rm(`${volume}/a`, { recursive: true, force: true }).catch(() => {});
        }
      })();
      let opened = 0;
      for (let i = 0; i < 1000; i++) {
        const part = await openBelow(volume, ["a", "x", "new"]).catch(() => undefined);
        if (part === undefined) continue;
        opened++;
        expect(foreign).not.toContain((await part.handle.stat()).ino);
        expect(await fs.readlink(`/proc/self/fd/${part.handle.fd}`)).not.toContain("outside");
        await part.handle.close();
      }
      ended = true;
      await swap;
      expect(opened).toBeGreaterThan(0);
      expect(await fs.readdir(`${outside}/x`)).toEqual([]);
    },
  );
});

describe("leftovers of a crash", () => {
  test("a writer's temporary file is not listed and does not keep its directory", async () => {
    const host = kernelHost();
    await host.makeDirectory(`${dir}/d`);
    await fs.writeFile(`${dir}/d/.vol_data.json.1-1.longshore-tmp`, "{");
    expect(await host.readDirectory(`${dir}/d`)).toEqual([]);
    await host.removeDirectory(`${dir}/d`);
    expect(await host.stat(`${dir}/d`)).toBeUndefined();
  });

  test.each([
    ["before anything moved", (_m: string, record: string) => fs.mkdir(record)],
    [
      "after the directory was put aside",
      async (m: string, record: string) => {
        await fs.mkdir(record);
        await fs.writeFile(`${record}/mounts.json`, "[]");
        await fs.rename(m, `${record}/under`);
      },
    ],
  ])("a mount point of the unprivileged host heals: %s", async (_when, crash) => {
    const host = unprivilegedHost();
    const m = `${dir}/parent/m`;
    await host.makeDirectory(m);
    await host.makeDirectory(`${dir}/source`);
    await host.writeFileAtomic(`${m}/below`, "x");
    await crash(m, `${dir}/parent/.m.longshore-mount`);
    expect(await host.isMountPoint(m)).toBe(false);
    expect(await host.listMounts(dir)).toEqual([]);
    await host.makeDirectory(m);
    expect(await host.readFile(`${m}/below`)).toBe("x");
    await host.bindMount(`${dir}/source`, m);
    expect(await host.isMountPoint(m)).toBe(true);
    await host.unmount(m);
    expect(await host.readFile(`${m}/below`)).toBe("x");
    await host.removeFile(`${m}/below`);
    await host.removeDirectory(m);
    await host.removeDirectory(`${dir}/parent`);
  });

  test("a crash that leaves only the record does not keep the parent from going", async () => {
    const host = unprivilegedHost();
    await host.makeDirectory(`${dir}/parent`);
    await fs.mkdir(`${dir}/parent/.m.longshore-mount`);
    await host.removeDirectory(`${dir}/parent`);
    expect(await host.stat(`${dir}/parent`)).toBeUndefined();
  });
});

describe("unprivileged host", () => {
  test("what one process mounts, another sees and unmounts", async () => {
    const [one, two] = [unprivilegedHost(), unprivilegedHost()];
    await one.truncateFile(`${dir}/disk`, 1024);
    const device = await one.attachLoop(`${dir}/disk`);
    await one.format(device, "ext4");
    await one.makeDirectory(`${dir}/m`);
    await one.mountDevice(device, `${dir}/m`, { fsType: "ext4" });
    expect(await two.isMountPoint(`${dir}/m`)).toBe(true);
    await expect(two.detachLoop(`${dir}/disk`)).rejects.toMatchObject({ code: "EBUSY" });
    await two.unmount(`${dir}/m`);
    await two.detachLoop(`${dir}/disk`);
    expect(await one.findLoop(`${dir}/disk`)).toBeUndefined();
    await one.removeFile(`${dir}/disk`);
    await one.removeDirectory(`${dir}/m`);
    expect(await fs.readdir(dir)).toEqual([]);
  });
});

const isRoot = process.geteuid?.() === 0 && process.platform === "linux";
describe.skipIf(!isRoot)("detaching a device of the kernel that a program looks at", () => {
  const host = kernelHost();

  test("waits until it has been looked at; one that stays open is busy", async () => {
    const backing = `${dir}/looked-at.img`;
    await host.truncateFile(backing, 2 ** 20);
    const opened = await fs.open(await host.attachLoop(backing));
    await expect(host.detachLoop(backing)).rejects.toMatchObject({ code: "EBUSY" });
    const detached = host.detachLoop(backing);
    await opened.close();
    await detached;
    expect(await host.findLoop(backing)).toBeUndefined();
  });
});

describe.skipIf(!isRoot)("a device of the kernel that something has for itself", () => {
  // As a file system in another mount namespace does; such a namespace would keep the devices of other tests, too.
  test("is held until it is let go", async () => {
    const host = kernelHost();
    const backing = `${dir}/held.img`;
    await host.truncateFile(backing, 2 ** 20);
    const device = await host.attachLoop(backing);
    const link = `${dir}/name-of-the-provider`;
    await host.symlink(device, link);
    const holder = await fs.open(device, constants.O_RDONLY | constants.O_EXCL);
    expect(await host.isDeviceHeld(device)).toBe(true);
    expect(await host.isDeviceHeld(link)).toBe(true);
    await holder.close();
    // A program that another test starts has the open file until it runs: a moment.
    await expect.poll(() => host.isDeviceHeld(link), { timeout: 5000 }).toBe(false);
    await host.detachLoop(backing);
  });
});

describe.skipIf(!isRoot)("growing a mounted file system of the kernel", () => {
  test.each([
    ["ext4", "mkfs.ext4", 64],
    ["xfs", "mkfs.xfs", 320],
  ])("%s", async (fsType, program, megabytes) => {
    const host = kernelHost();
    const backing = `${dir}/disk`;
    await host.truncateFile(backing, megabytes * 2 ** 20);
    const device = await host.attachLoop(backing);
    try {
      const made = await host.format(device, fsType).catch((error: HostError) => error.code);
      if (made === "ENOSYS") return expect(program).toBe("mkfs.xfs"); // Not installed here.
      await host.makeDirectory(`${dir}/m`);
      await host.mountDevice(device, `${dir}/m`, { fsType });
      const before = (await host.usage(`${dir}/m`)).totalBytes;
      await host.truncateFile(backing, 2 * megabytes * 2 ** 20);
      await host.attachLoop(backing);
      const grown = await host.growFileSystem(device, `${dir}/m`).catch((error: HostError) => error.code);
      const after = (await host.usage(`${dir}/m`)).totalBytes;
      // ext4 grows while mounted only with CAP_SYS_RESOURCE, which some containers lack.
      if (grown === "EPERM") expect([fsType, after]).toEqual(["ext4", before]);
      else expect(after / before).toBeGreaterThan(1.8);
    } finally {
      if (await host.isMountPoint(`${dir}/m`)) await host.unmount(`${dir}/m`);
      await host.detachLoop(backing);
    }
  });
});

describe.skipIf(!isRoot)("copies of disks of the kernel", () => {
  const host = kernelHost();
  const backing = () => `${dir}/disk`;
  const copied = () => `${dir}/copy`;
  afterEach(async () => {
    for (const mount of [...(await host.listMounts(dir))].reverse()) await host.unmount(mount.target);
    for (const file of [backing(), copied()]) await host.detachLoop(file);
  });

  async function mountedDisk(fsType: string, megabytes: number): Promise<string> {
    await host.truncateFile(backing(), megabytes * 2 ** 20);
    const device = await host.attachLoop(backing());
    await host.format(device, fsType);
    await host.makeDirectory(`${dir}/m`);
    await host.mountDevice(device, `${dir}/m`, { fsType });
    return device;
  }

  const hasXfs = ["/sbin", "/usr/sbin"].some((bin) => existsSync(`${bin}/mkfs.xfs`));
  test.skipIf(!hasXfs)("a copy of an xfs is mounted beside its original (needs mkfs.xfs)", async () => {
    await mountedDisk("xfs", 320);
    await host.writeFileAtomic(`${dir}/m/data`, "x");
    await host.copyDisks([{ source: backing(), target: copied() }]);
    const device = await host.attachLoop(copied());
    await host.makeDirectory(`${dir}/n`);
    await host.mountDevice(device, `${dir}/n`, { fsType: "xfs" });
    expect(await host.readFile(`${dir}/n/data`)).toBe("x");
  });

  test("a copy stays sparse", async () => {
    await mountedDisk("ext4", 1024);
    await host.copyDisks([{ source: backing(), target: copied() }]);
    const { size, blocks } = await fs.stat(copied());
    expect(size).toBe(1024 * 2 ** 20);
    expect(blocks * 512).toBeLessThan(64 * 2 ** 20);
  });

  test("a file system that a killed copy left frozen is copied, and takes writes afterwards", async () => {
    await mountedDisk("ext4", 16);
    await host.writeFileAtomic(`${dir}/m/data`, "x");
    const freeze = await host.runProgram("fsfreeze", { args: ["--freeze", `${dir}/m`], signal: never });
    expect(freeze.code).toBe(0);
    await host.copyDisks([{ source: backing(), target: copied() }]);
    await host.writeFileAtomic(`${dir}/m/data`, "y");
  });

  test("a file system stays mounted while it is copied, and its device is free afterwards", async () => {
    await mountedDisk("ext4", 256);
    await fs.writeFile(`${dir}/m/data`, Buffer.alloc(128 * 2 ** 20, 1));
    const copying = host.copyDisks([{ source: backing(), target: copied() }]);
    while ((await host.stat(copied())) === undefined) await new Promise(setImmediate);
    await expect(host.unmount(`${dir}/m`)).rejects.toMatchObject({ code: "EBUSY" });
    await copying;
    await host.unmount(`${dir}/m`);
    // Frozen for good, it would be busy.
    await host.detachLoop(backing());
    expect(await host.findLoop(backing())).toBeUndefined();
  });

  test("writes wait while a file system is copied, and none is torn", async () => {
    await mountedDisk("ext4", 64);
    // Two files that a writer keeps equal in turn: a copy of one instant has the second at most one behind.
    const writing = host.runProgram(process.execPath, {
      args: [
        "-e",
        `const fs = require("node:fs");
         for (let i = 1; i <= 3000; i++) for (const f of ["a", "b"]) fs.writeFileSync("${dir}/m/" + f, String(i));`,
      ],
      signal: never,
    });
    const waiting = async () => ((await host.readFile(`${dir}/m/b`)) ?? "") === "";
    while (await waiting()) await new Promise(setImmediate);
    await host.copyDisks([{ source: backing(), target: copied() }]);
    expect((await writing).code).toBe(0);
    const device = await host.attachLoop(copied());
    await host.makeDirectory(`${dir}/n`);
    await host.mountDevice(device, `${dir}/n`, { fsType: "ext4" });
    const numbers = await Promise.all(["a", "b"].map((name) => host.readFile(`${dir}/n/${name}`)));
    // A file that is being rewritten is empty for a moment, as it is after a crash.
    const [a, b] = numbers.map((text) => (text === "" ? undefined : Number(text)));
    if (a !== undefined && b !== undefined) expect([0, 1]).toContain(a - b);
  });

  test("a device that refuses writes cannot be written to", async () => {
    await host.truncateFile(backing(), 16 * 2 ** 20);
    const device = await host.attachLoop(backing());
    await host.setDeviceReadOnly(device, true);
    await expect(fs.writeFile(device, "x")).rejects.toThrow();
    await host.setDeviceReadOnly(device, false);
    await fs.writeFile(device, "x");
    await host.setDeviceReadOnly(device, true);
    await host.detachLoop(backing());
    // The kernel keeps the flag with the device; still, the next file must be writable.
    await fs.writeFile(await host.attachLoop(backing()), "x");
  });

  test("a device that is written to all the time is not copied torn, but refused", async () => {
    await host.truncateFile(backing(), 64 * 2 ** 20);
    const device = await host.attachLoop(backing());
    const stop = new AbortController();
    const args = [
      "-e",
      `const fs = require("node:fs"); const f = fs.openSync("${device}", "rs+");
       for (let i = 0; ; i++) fs.writeSync(f, Buffer.alloc(4096, i), 0, 4096, (i % 4096) * 4096);`,
    ];
    // Several, so that one writes whenever the machine lets another wait.
    const writers = [1, 2, 3].map(() => host.runProgram(process.execPath, { args, signal: stop.signal }));
    const writing = Promise.allSettled(writers);
    const isWritten = async () => (await fs.readFile(device)).subarray(0, 8192).some((byte) => byte !== 0);
    while (!(await isWritten())) await new Promise(setImmediate);
    const copying = host.copyDisks([{ source: backing(), target: copied() }]);
    await expect(copying).rejects.toMatchObject({ code: "EAGAIN" });
    stop.abort();
    await writing;
    await host.copyDisks([{ source: backing(), target: copied() }]);
    expect((await fs.readFile(copied())).equals(await fs.readFile(device))).toBe(true);
  });
});

test.skipIf(!isRoot)("mount flags, which may be secret, are in no error", async () => {
  const host = kernelHost();
  await host.truncateFile(`${dir}/disk`, 16 * 2 ** 20);
  const device = await host.attachLoop(`${dir}/disk`);
  await host.format(device, "ext4");
  const flags = ["password=hunter2"];
  const failure = await host
    .mountDevice(device, dir, { fsType: "ext4", flags })
    .catch((error: unknown) => error);
  await host.detachLoop(`${dir}/disk`);
  expect(failure).toMatchObject({ code: "EINVAL" });
  expect(inspect(failure, { depth: 10 })).not.toContain("hunter2");
});

describe.skipIf(!isRoot)("an ext4 with errors", () => {
  const host = kernelHost();
  let device: string;
  const damage = async (request: string) => {
    const result = await host.runProgram("debugfs", { args: ["-w", "-R", request, device], signal: never });
    expect(result.code).toBe(0);
  };
  beforeEach(async () => {
    await host.truncateFile(`${dir}/disk`, 16 << 20);
    device = await host.attachLoop(`${dir}/disk`);
    await host.format(device, "ext4");
  });
  afterEach(() => host.detachLoop(`${dir}/disk`));

  test("is corrected where that is safe", async () => {
    await damage("set_super_value free_blocks_count 7");
    await damage("set_super_value state 2");
    expect(await host.checkFileSystem(device)).toBe(true);
    expect(await host.checkFileSystem(device)).toBe(false);
  });

  test("is refused where it is not, with what to do", async () => {
    await damage("set_super_value state 2");
    await damage("clri <2>");
    const failure = await host.checkFileSystem(device).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "EUCLEAN", cause: { message: expect.stringContaining("e2fsck") } });
  });
});

describe("mountinfo", () => {
  const text = [
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "30 22 7:0 / /srv/nodes/a\\040b rw,relatime shared:2 - ext4 /dev/loop0 rw",
    "31 22 7:0 /sub /srv/nodes/bind ro,relatime shared:2 - ext4 /dev/loop0 rw",
    "32 22 8:1 /srv/data /srv/nodes/part rw - ext4 /dev/sda1 rw",
    "33 22 0:50 /inner /other rw - tmpfs tmpfs ro",
    "garbage",
    "",
  ].join("\n");

  test("is parsed, with escapes, read-only from mount or file system", () => {
    const infos = parseMountInfo(text);
    expect(infos).toHaveLength(5);
    expect(infos.map(({ target, readOnly }) => [target, readOnly])).toEqual([
      ["/", false],
      ["/srv/nodes/a b", false],
      ["/srv/nodes/bind", true],
      ["/srv/nodes/part", false],
      ["/other", true],
    ]);
  });

  test("a bind mount of a part is named by the path of the part", () => {
    expect(
      mountsBelow(parseMountInfo(text), "/srv/nodes").map(({ source, target }) => [source, target]),
    ).toEqual([
      ["/dev/loop0", "/srv/nodes/a b"],
      ["/srv/nodes/a b/sub", "/srv/nodes/bind"],
      ["/srv/data", "/srv/nodes/part"],
    ]);
    expect(mountsBelow(parseMountInfo(text), "/other")).toMatchObject([{ source: "tmpfs" }]);
  });
});

test.each([
  ["umount: /m: not mounted.", "EINVAL"],
  ["umount: /m: target is busy.", "EBUSY"],
  ["mount: /m: /dev/loop0 already mounted on /m.", "EBUSY"],
  ["mount: /m: permission denied.", "EPERM"],
  ["mount: /m: must be superuser to use mount.", "EPERM"],
  ["mount: /m: wrong fs type, bad option, bad superblock on /dev/loop0, missing codepage.", "EINVAL"],
  ["mount: /m: unknown filesystem type 'nosuch'.", "ENODEV"],
  ["mount: /m: mount point does not exist.", "ENOENT"],
  ["mount: /m: mount point is not a directory.", "ENOTDIR"],
  ["mount: /m: can't read superblock on /dev/loop0.", "EIO"],
  ["resize2fs: Permission denied to resize filesystem", "EPERM"],
  ["mkfs.ext4: No space left on device while writing", "ENOSPC"],
  ["losetup: /dev/loop0: write-protected", "EROFS"],
  ["something else", "EIO"],
])("%j means %s", (text, code) => {
  expect(codeOfText(text)).toBe(code);
});

test("a HostError says which operation, on what, and why, with its cause", () => {
  const cause = new Error("cause");
  const error = new HostError("unmount", "/m", "EBUSY", cause);
  expect(error).toMatchObject({
    message: "unmount /m: EBUSY",
    operation: "unmount",
    path: "/m",
    code: "EBUSY",
    cause,
  });
});

test("a keyed lock runs the work of one key in order, other keys at the same time, failures or not", async () => {
  const lock = new KeyedLock();
  const log: string[] = [];
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const first = lock.run("a", async () => {
    await gate;
    log.push("a1");
    throw new Error("a1 failed");
  });
  const second = lock.run("a", async () => log.push("a2"));
  await lock.run("b", async () => log.push("b1"));
  open();
  await expect(first).rejects.toThrow("a1 failed");
  await second;
  expect(log).toEqual(["b1", "a1", "a2"]);
});
