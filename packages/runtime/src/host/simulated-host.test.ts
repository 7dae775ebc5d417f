import { describe, expect, test } from "vitest";
import { SeededRandom } from "../random.ts";
import { HostError } from "./host.ts";
import { SimulatedDisks } from "./simulated-disks.ts";
import { SimulatedHost } from "./simulated-host.ts";

const ext4 = { fsType: "ext4" };

/** Two nodes and a cloud that share their disks, with one formatted disk. */
async function twoNodes() {
  const violations: string[] = [];
  const disks = new SimulatedDisks((violation) => violations.push(violation));
  const [cloud, a, b] = ["cloud", "a", "b"].map((name) => new SimulatedHost({ name, disks })) as [
    SimulatedHost,
    SimulatedHost,
    SimulatedHost,
  ];
  await cloud.truncateFile("/disk", 2 ** 30);
  const device = await cloud.attachLoop("/disk");
  await cloud.format(device, "ext4");
  for (const host of [a, b]) await host.makeDirectory("/m");
  return { disks, violations, cloud, a, b, device };
}

describe("losing power", () => {
  test("what was made durable stays, what was not goes, and mounts are gone", async () => {
    const host = new SimulatedHost();
    await host.makeDirectory("/etc");
    await host.writeFileAtomic("/etc/kept", "old");
    await host.writeFileAtomic("/etc/kept", "new");
    await host.appendFileDurable("/etc/log", "a\n");
    await host.makeDirectory("/etc/volatile");
    await host.removeFile("/etc/log");
    await host.rename("/etc/kept", "/etc/renamed");
    await host.truncateFile("/etc/renamed", 1);
    await host.symlink("/etc", "/link");
    await host.bindMount("/etc", "/tmp");
    host.losePower();
    expect(host.boots).toBe(2);
    expect(await host.readDirectory("/")).toEqual(["dev", "etc", "tmp"]);
    expect(await host.readDirectory("/etc")).toEqual(["kept", "log"]);
    expect(await host.readFile("/etc/kept")).toBe("new");
    expect(await host.readFile("/etc/log")).toBe("a\n");
    expect(await host.readDirectory("/tmp")).toEqual([]);
  });

  test("a reboot in order keeps what was written, and ends mounts and devices", async () => {
    const { disks, b, a, device } = await twoNodes();
    await a.mountDevice(device, "/m", ext4);
    await a.makeDirectory("/m/page-cache");
    await a.makeDirectory("/etc/page-cache");
    await a.mountMemory("/tmp", { mode: 0o700, sizeBytes: 2 ** 20 });
    await a.makeDirectory("/tmp/of-memory");
    a.reboot();
    expect(a.boots).toBe(2);
    expect(await a.readDirectory("/etc")).toEqual(["page-cache"]);
    expect(await a.readDirectory("/m")).toEqual([]);
    expect(await a.readDirectory("/tmp")).toEqual([]);
    expect(await a.listMounts("/m")).toEqual([]);
    await b.mountDevice(device, "/m", ext4);
    expect(await b.readDirectory("/m")).toEqual(["page-cache"]);
    expect(disks.violations).toEqual([]);
    a.losePower();
    expect(await a.readDirectory("/etc")).toEqual(["page-cache"]);
  });

  test("with luck, a prefix of the changes reached the disk", async () => {
    const left = new Set<string>();
    for (let seed = 0; seed < 50; seed++) {
      const host = new SimulatedHost();
      for (const name of ["1", "2", "3"]) await host.makeDirectory(`/d${name}`);
      host.losePower(new SeededRandom(seed));
      left.add(
        (await host.readDirectory("/"))?.filter((name) => name.startsWith("d") && name !== "dev").join() ??
          "",
      );
    }
    expect([...left].sort()).toEqual(["", "d1", "d1,d2", "d1,d2,d3"]);
  });

  test("a disk keeps what was synced; unmounting syncs", async () => {
    const { a, b, device } = await twoNodes();
    await a.mountDevice(device, "/m", ext4);
    await a.makeDirectory("/m/synced");
    await a.unmount("/m");
    await a.mountDevice(device, "/m", ext4);
    await a.appendFileDurable("/m/log", "1\n");
    await a.makeDirectory("/m/volatile");
    a.losePower();
    await b.mountDevice(device, "/m", ext4);
    expect(await b.readDirectory("/m")).toEqual(["log", "synced"]);
    expect(await b.readFile("/m/log")).toBe("1\n");
  });

  test("it takes the devices that the host attached, not their content", async () => {
    const { cloud, a, disks, device } = await twoNodes();
    await a.mountDevice(device, "/m", ext4);
    await a.writeFileAtomic("/m/data", "x");
    await cloud.writeFileAtomic("/anything", ""); // Makes the backing file's name durable.
    cloud.losePower();
    expect(disks.loops()).toEqual([]);
    expect(await cloud.findLoop("/disk")).toBeUndefined();
    const again = await cloud.attachLoop("/disk");
    a.losePower();
    await a.makeDirectory("/m");
    await a.mountDevice(again, "/m", ext4);
    expect(await a.readFile("/m/data")).toBe("x");
  });

  test("the operation in which power is lost never happens and never settles", async () => {
    let isDying = false;
    const host: SimulatedHost = new SimulatedHost({
      beforeChange: () => {
        if (isDying) host.losePower();
      },
    });
    await host.writeFileAtomic("/f", "old");
    isDying = true;
    let hasSettled = false;
    void host.writeFileAtomic("/f", "new").finally(() => {
      hasSettled = true;
    });
    isDying = false;
    for (let i = 0; i < 10; i++) await Promise.resolve();
    expect(hasSettled).toBe(false);
    expect(await host.readFile("/f")).toBe("old");
  });
});

describe("one writer (C2)", () => {
  test("mounting a disk read-write on two hosts at once is a violation", async () => {
    const { a, b, device, disks, violations } = await twoNodes();
    await a.mountDevice(device, "/m", ext4);
    await a.makeDirectory("/n");
    await a.bindMount("/m", "/n");
    expect(disks.violations).toEqual([]);
    expect(disks.mountedOn(device)).toEqual(["a", "a"]);
    await b.mountDevice(device, "/m", { ...ext4, readOnly: true });
    expect(disks.violations).toEqual([]);
    await b.unmount("/m");
    await a.unmount("/m"); // Still bound at /n.
    await b.mountDevice(device, "/m", ext4);
    expect(disks.violations).toEqual(["C2: disk /disk is mounted read-write on a and on b"]);
    expect(violations).toEqual(disks.violations);
  });

  test("one host after the other is fine, also after the first one lost power", async () => {
    const { a, b, device, disks } = await twoNodes();
    await a.mountDevice(device, "/m", ext4);
    await a.unmount("/m");
    await b.mountDevice(device, "/m", ext4);
    b.losePower();
    await a.mountDevice(device, "/m", ext4);
    expect(disks.violations).toEqual([]);
  });
});

describe("devices", () => {
  test("a device's name is used again for another disk", async () => {
    const host = new SimulatedHost();
    for (const name of ["/one", "/two"]) await host.truncateFile(name, 1024);
    const device = await host.attachLoop("/one");
    await host.detachLoop("/one");
    expect(await host.attachLoop("/two")).toBe(device);
    expect(await host.readDirectory("/dev")).toEqual(["loop0"]);
  });

  test("a grown disk has more room once its file system has grown", async () => {
    const { cloud, a, device } = await twoNodes();
    await a.mountDevice(device, "/m", ext4);
    await cloud.truncateFile("/disk", 2 ** 31);
    await cloud.attachLoop("/disk");
    expect((await a.usage("/m")).totalBytes).toBe(2 ** 30);
    await a.growFileSystem(device, "/m");
    expect((await a.usage("/m")).totalBytes).toBe(2 ** 31);
  });
});

test("a tree of another group, or with too few bits at its root, is given to the group", async () => {
  const host = new SimulatedHost();
  await host.makeDirectory("/t");
  await host.chownTree("/t", 1);
  for (const [gid, mode] of [
    [1, 0o600],
    [2, 0o660],
  ] as const) {
    await host.writeFileAtomic("/t/f", "", { mode: 0o600 });
    await host.chownTree("/t", gid, { onlyOnRootMismatch: true });
    expect((await host.stat("/t/f"))?.mode).toBe(mode);
  }
  await host.makeDirectory("/u", 0o755);
  await host.chownTree("/u", 0, { readOnly: true, onlyOnRootMismatch: true });
  expect((await host.stat("/u"))?.mode).toBe(0o2755);
});

test("a machine with SELinux labels a tree, without its links' targets and without what is read-only", async () => {
  const host = new SimulatedHost();
  await host.writeFileAtomic("/elsewhere", "");
  await host.makeDirectory("/t/sub");
  await host.writeFileAtomic("/t/sub/f", "");
  await host.symlink("/elsewhere", "/t/link");
  await host.relabelTree("/t", "a");
  expect(host.labelOf("/t")).toBeUndefined();
  await host.makeDirectory("/sys/fs/selinux");
  await host.writeFileAtomic("/sys/fs/selinux/enforce", "1");
  await host.relabelTree("/t", "a");
  expect(["/t", "/t/sub", "/t/sub/f", "/elsewhere"].map((path) => host.labelOf(path))).toEqual([
    "a",
    "a",
    "a",
    undefined,
  ]);
  await host.makeDirectory("/ro");
  await host.bindMount("/t", "/ro", { readOnly: true });
  await host.relabelTree("/ro", "b");
  expect(host.labelOf("/t/sub/f")).toBe("a");
});

describe("room", () => {
  test("a full file system is ENOSPC, and removing makes room again", async () => {
    const host = new SimulatedHost({ capacityBytes: 10 });
    await host.writeFileAtomic("/a", "12345678");
    await expect(host.writeFileAtomic("/b", "123")).rejects.toMatchObject({ code: "ENOSPC" });
    await expect(host.appendFileDurable("/a", "123")).rejects.toMatchObject({ code: "ENOSPC" });
    expect(await host.readFile("/a")).toBe("12345678");
    await host.truncateFile("/sparse", 2 ** 40);
    await host.removeFile("/a");
    await host.writeFileAtomic("/b", "123");
    expect(await host.usage("/")).toEqual({
      totalBytes: 10,
      availableBytes: 7,
      totalInodes: 0,
      availableInodes: 0,
    });
  });
});

describe("what programs write to a device", () => {
  test("is there for the next host, after a power loss, and on a copy of the disk", async () => {
    const { cloud, a, b, device } = await twoNodes();
    expect(await a.readDevice(device)).toBe("");
    await a.writeDevice(device, "1\n");
    a.losePower();
    expect(await b.readDevice(device)).toBe("1\n");
    await cloud.copyDisks([{ source: "/disk", target: "/copy" }]);
    expect(await b.readDevice(await cloud.attachLoop("/copy"))).toBe("1\n");
  });

  test("has the room that the device has, and no file is a device", async () => {
    const { a } = await twoNodes();
    await a.truncateFile("/small", 512);
    await expect(a.writeDevice(await a.attachLoop("/small"), "x".repeat(513))).rejects.toMatchObject({
      code: "ENOSPC",
    });
    await a.writeFileAtomic("/file", "");
    await expect(a.writeDevice("/file", "")).rejects.toMatchObject({ code: "ENOTBLK" });
  });
});

describe("surroundings", () => {
  test("a fault hook decides the outcome of a change", async () => {
    const host = new SimulatedHost({
      beforeChange(operation, path) {
        if (path === "/bad") throw new HostError(operation, path, "EIO");
      },
    });
    await expect(host.writeFileAtomic("/bad", "")).rejects.toMatchObject({
      code: "EIO",
      operation: "writeFileAtomic",
    });
    await host.writeFileAtomic("/good", "");
  });

  test("sockets have names, and given programs run", async () => {
    const host = new SimulatedHost({
      programs: { "/bin/echo": async ({ args }) => ({ code: 0, stdout: args.join(" "), stderr: "" }) },
    });
    host.placeSocket("/s.sock");
    expect(await host.stat("/s.sock")).toMatchObject({ kind: "socket" });
    expect(() => host.placeSocket("/s.sock")).toThrow("EADDRINUSE");
    await host.removeFile("/s.sock");
    const signal = new AbortController().signal;
    expect(await host.runProgram("/bin/echo", { args: ["a", "b"], signal })).toMatchObject({ stdout: "a b" });
  });
});
