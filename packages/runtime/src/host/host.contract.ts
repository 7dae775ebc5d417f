/** What every form of the Host seam does alike. Run by the tests of the forms. */
import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Host, HostError } from "./host.ts";

/** A host under test. */
export interface HostUnderTest {
  readonly host: Host;
  /** An empty directory for the test. */
  readonly dir: string;
  /** Another host that sees the same devices; the same one where there is only one machine. */
  readonly other?: Host;
  /** Called after all mounts and devices of the test are gone. */
  close(): Promise<void>;
}

const megabyte = 1024 * 1024;
const signal = new AbortController().signal;

/** Declares the contract's tests for one form. */
export function hostContract(form: string, make: () => Promise<HostUnderTest>): void {
  describe(`host contract: ${form}`, () => {
    let subject: HostUnderTest;
    let host: Host;
    let dir: string;
    beforeEach(async () => {
      subject = await make();
      ({ host, dir } = subject);
    });
    afterEach(async () => {
      for (const mount of [...(await host.listMounts(dir))].reverse()) await host.unmount(mount.target);
      for (const name of ["disk", "blank"]) await host.detachLoop(`${dir}/${name}`);
      await subject.close();
    });

    /** A formatted device of a new backing file. */
    async function disk(name = "disk", sizeBytes = 16 * megabyte) {
      const backing = `${dir}/${name}`;
      await host.truncateFile(backing, sizeBytes);
      const device = await host.attachLoop(backing);
      await host.format(device, "ext4");
      return { backing, device };
    }

    async function directories<N extends string>(...names: N[]): Promise<Record<N, string>> {
      const paths = {} as Record<N, string>;
      for (const name of names) {
        paths[name] = `${dir}/${name}`;
        await host.makeDirectory(paths[name]);
      }
      return paths;
    }

    describe("paths", () => {
      test.each(["relative", "../x", "/a/../b", "", "/a\0b"])("%j is refused", async (path) => {
        expect(await codeOf(host.stat(path))).toBe("EINVAL");
        expect(await codeOf(host.writeFileAtomic(path, ""))).toBe("EINVAL");
        expect(await codeOf(host.bindMount(path, dir))).toBe("EINVAL");
        expect(await codeOf(host.bindMount(dir, path))).toBe("EINVAL");
        expect(await codeOf(host.removeTree(path))).toBe("EINVAL");
      });

      test("a trailing slash changes nothing", async () => {
        await host.makeDirectory(`${dir}/a/`);
        expect(await host.readDirectory(`${dir}/`)).toEqual(["a"]);
      });
    });

    describe("files", () => {
      test("what is not there reads as undefined and is removed without complaint", async () => {
        const missing = `${dir}/missing`;
        expect(await host.stat(missing)).toBeUndefined();
        expect(await host.stat(`${missing}/below`)).toBeUndefined();
        expect(await host.readFile(missing)).toBeUndefined();
        expect(await host.readDirectory(missing)).toBeUndefined();
        expect(await host.readLink(missing)).toBeUndefined();
        expect(await host.isMountPoint(missing)).toBe(false);
        expect(await host.findLoop(missing)).toBeUndefined();
        await host.removeFile(missing);
        await host.removeDirectory(missing);
        await host.removeTree(missing);
        await host.detachLoop(missing);
      });

      test("an atomic write makes a file, and replaces it each time", async () => {
        const path = `${dir}/file`;
        await host.writeFileAtomic(path, "one");
        const before = await host.stat(path);
        expect(before).toMatchObject({ kind: "file", mode: 0o600, sizeBytes: 3 });
        await host.writeFileAtomic(path, "zwölf", { mode: 0o644 });
        const after = await host.stat(path);
        expect(after).toMatchObject({ kind: "file", mode: 0o644, sizeBytes: 6 });
        expect(after?.inode).not.toBe(before?.inode);
        expect(await host.readFile(path)).toBe("zwölf");
        expect(await host.readDirectory(dir)).toEqual(["file"]);
      });

      test("the version of a file changes with what it holds, that of a directory with its names", async () => {
        await host.writeFileAtomic(`${dir}/file`, "one");
        const versions = async () => [
          (await host.stat(`${dir}/file`))?.version,
          (await host.stat(dir))?.version,
        ];
        const before = await versions();
        await host.readFile(`${dir}/file`);
        expect(await versions()).toEqual(before);
        await host.appendFileDurable(`${dir}/file`, "two");
        const appended = await versions();
        expect(appended[0]).not.toBe(before[0]);
        expect(appended[1]).toBe(before[1]);
        await host.writeFileAtomic(`${dir}/other`, "one");
        const named = await versions();
        expect(named[0]).toBe(appended[0]);
        expect(named[1]).not.toBe(appended[1]);
      });

      test("a write into a directory that is not there is ENOENT and leaves nothing", async () => {
        expect(await codeOf(host.writeFileAtomic(`${dir}/no/file`, "x"))).toBe("ENOENT");
        expect(await codeOf(host.appendFileDurable(`${dir}/no/file`, "x"))).toBe("ENOENT");
        expect(await host.readDirectory(dir)).toEqual([]);
      });

      test("a write over a directory is EISDIR", async () => {
        await host.makeDirectory(`${dir}/d`);
        expect(await codeOf(host.writeFileAtomic(`${dir}/d`, "x"))).toBe("EISDIR");
        expect(await codeOf(host.removeFile(`${dir}/d`))).toBe("EISDIR");
        expect(await codeOf(host.readFile(`${dir}/d`))).toBe("EISDIR");
        expect(await host.readDirectory(dir)).toEqual(["d"]);
      });

      test("appending makes the file and adds to it", async () => {
        await host.appendFileDurable(`${dir}/log`, "a\n");
        await host.appendFileDurable(`${dir}/log`, "b\n");
        expect(await host.readFile(`${dir}/log`)).toBe("a\nb\n");
        await host.truncateFile(`${dir}/log`, 6);
        await host.appendFileDurable(`${dir}/log`, "ü");
        expect(await host.readFile(`${dir}/log`)).toBe("a\nb\n\0\0ü");
        expect((await host.stat(`${dir}/log`))?.sizeBytes).toBe(8);
      });

      test("truncating makes a sparse file, grows and cuts", async () => {
        const path = `${dir}/sparse`;
        await host.truncateFile(path, 8 * 1024 * megabyte);
        expect(await host.stat(path)).toMatchObject({ kind: "file", sizeBytes: 8 * 1024 * megabyte });
        await host.writeFileAtomic(path, "abcdef");
        await host.truncateFile(path, 3);
        expect(await host.readFile(path)).toBe("abc");
        await host.truncateFile(path, 5);
        expect(await host.readFile(path)).toBe("abc\0\0");
      });

      test("allocating makes a file of that size, never smaller, and keeps what is in it", async () => {
        const path = `${dir}/allocated`;
        await host.allocateFile(path, megabyte);
        expect(await host.stat(path)).toMatchObject({ kind: "file", sizeBytes: megabyte });
        await host.allocateFile(path, 10);
        expect((await host.stat(path))?.sizeBytes).toBe(megabyte);
        await host.writeFileAtomic(path, "abc");
        await host.allocateFile(path, 5);
        expect(await host.readFile(path)).toBe("abc\0\0");
      });

      test("more than the disk has is ENOSPC, and the file is as it was", async () => {
        if (host.form === "unprivileged") return; // It takes no room before it is written to.
        expect(await codeOf(host.allocateFile(`${dir}/f`, 2 ** 50))).toBe("ENOSPC");
        expect(await host.stat(`${dir}/f`)).toBeUndefined();
        await host.writeFileAtomic(`${dir}/f`, "abc");
        expect(await codeOf(host.allocateFile(`${dir}/f`, 2 ** 50))).toBe("ENOSPC");
        expect(await host.readFile(`${dir}/f`)).toBe("abc");
      });

      test("directories are made with their parents, and made again without complaint", async () => {
        await host.makeDirectory(`${dir}/a/b/c`, 0o711);
        await host.makeDirectory(`${dir}/a/b`);
        expect((await host.stat(`${dir}/a`))?.mode).toBe(0o711);
        expect((await host.stat(`${dir}/a/b/c`))?.mode).toBe(0o711);
        await host.makeDirectory(`${dir}/a/own/below`);
        expect((await host.stat(`${dir}/a/own`))?.mode).toBe(0o700);
        expect((await host.stat(`${dir}/a/own/below`))?.mode).toBe(0o700);
        await host.writeFileAtomic(`${dir}/f`, "");
        expect(await codeOf(host.makeDirectory(`${dir}/f`))).toBe("EEXIST");
        expect(await codeOf(host.readDirectory(`${dir}/f`))).toBe("ENOTDIR");
        expect(await host.readDirectory(dir)).toEqual(["a", "f"]);
      });

      test("only an empty directory is removed, a tree with everything in it", async () => {
        await host.makeDirectory(`${dir}/a/b`);
        await host.writeFileAtomic(`${dir}/a/b/f`, "");
        expect(await codeOf(host.removeDirectory(`${dir}/a`))).toBe("ENOTEMPTY");
        expect(await codeOf(host.removeDirectory(`${dir}/a/b/f`))).toBe("ENOTDIR");
        await host.removeTree(`${dir}/a`);
        expect(await host.readDirectory(dir)).toEqual([]);
        await host.writeFileAtomic(`${dir}/f`, "");
        await host.removeTree(`${dir}/f`);
        expect(await host.readDirectory(dir)).toEqual([]);
      });

      test("rename replaces a file and an empty directory only", async () => {
        await host.writeFileAtomic(`${dir}/a`, "a");
        await host.writeFileAtomic(`${dir}/b`, "b");
        await host.rename(`${dir}/a`, `${dir}/b`);
        expect(await host.readFile(`${dir}/b`)).toBe("a");
        expect(await codeOf(host.rename(`${dir}/a`, `${dir}/c`))).toBe("ENOENT");
        await host.makeDirectory(`${dir}/d/e`);
        await host.makeDirectory(`${dir}/g`);
        expect(await codeOf(host.rename(`${dir}/g`, `${dir}/d`))).toBe("ENOTEMPTY");
        await host.rename(`${dir}/d`, `${dir}/g`);
        expect(await host.readDirectory(`${dir}/g`)).toEqual(["e"]);
      });

      test("links are seen as links and followed on the way", async () => {
        await host.makeDirectory(`${dir}/real`);
        await host.symlink(`${dir}/real`, `${dir}/link`);
        await host.writeFileAtomic(`${dir}/link/f`, "x");
        expect(await host.readFile(`${dir}/real/f`)).toBe("x");
        expect(await host.stat(`${dir}/link`)).toMatchObject({ kind: "symlink" });
        expect(await host.readLink(`${dir}/link`)).toBe(`${dir}/real`);
        expect(await host.readLink(`${dir}/real`)).toBeUndefined();
        expect(await codeOf(host.symlink("x", `${dir}/link`))).toBe("EEXIST");
        await host.symlink("real/f", `${dir}/relative`);
        expect(await host.readFile(`${dir}/relative`)).toBe("x");
        await host.removeTree(`${dir}/link`);
        expect(await host.readDirectory(`${dir}/real`)).toEqual(["f"]);
        await host.symlink("loop", `${dir}/loop`);
        expect(await codeOf(host.readFile(`${dir}/loop`))).toBe("ELOOP");
      });

      test("a tree is given to a group: bits are added, links left alone", async () => {
        await host.makeDirectory(`${dir}/t/sub`, 0o700);
        await host.writeFileAtomic(`${dir}/t/sub/f`, "", { mode: 0o600 });
        await host.symlink("nowhere", `${dir}/t/link`);
        await host.chownTree(`${dir}/t`, process.getegid?.() ?? 0);
        expect((await host.stat(`${dir}/t/sub/f`))?.mode).toBe(0o660);
        expect((await host.stat(`${dir}/t/sub`))?.mode).toBe(0o2770);
        expect((await host.stat(`${dir}/t`))?.mode).toBe(0o2770);
      });

      test("a tree whose root is right already is left alone, if that is wanted", async () => {
        const gid = process.getegid?.() ?? 0;
        const policy = { onlyOnRootMismatch: true };
        await host.makeDirectory(`${dir}/t`, 0o700);
        const modeOf = async (path: string) => (await host.stat(path))?.mode;
        await host.chownTree(`${dir}/t`, gid, policy);
        expect(await modeOf(`${dir}/t`)).toBe(0o2770);
        await host.writeFileAtomic(`${dir}/t/later`, "", { mode: 0o600 });
        await host.chownTree(`${dir}/t`, gid, policy);
        expect(await modeOf(`${dir}/t/later`)).toBe(0o600);
        await host.chownTree(`${dir}/t`, gid);
        expect(await modeOf(`${dir}/t/later`)).toBe(0o660);
        // A file has no files below it: it is always looked at itself.
        await host.writeFileAtomic(`${dir}/f`, "", { mode: 0o600 });
        await host.chownTree(`${dir}/f`, gid, policy);
        expect(await modeOf(`${dir}/f`)).toBe(0o660);
      });

      test("labels of SELinux change nothing on a machine without it", async () => {
        if ((await host.stat("/sys/fs/selinux/enforce")) !== undefined) return;
        await host.writeFileAtomic(`${dir}/f`, "x");
        const before = await host.stat(`${dir}/f`);
        await host.relabelTree(`${dir}/f`, "system_u:object_r:container_file_t:s0:c1,c2");
        expect(await host.stat(`${dir}/f`)).toEqual(before);
        expect(await codeOf(host.relabelTree("relative", "l"))).toBe("EINVAL");
      });

      test("a tree takes what its files take, and no link's target", async () => {
        await host.makeDirectory(`${dir}/t/sub`);
        await host.writeFileAtomic(`${dir}/elsewhere`, "x".repeat(1_000_000));
        const { usedBytes: emptyBytes } = await host.treeUsage(`${dir}/t`, signal);
        await host.writeFileAtomic(`${dir}/t/sub/f`, "x".repeat(100_000));
        await host.symlink(`${dir}/elsewhere`, `${dir}/t/link`);
        await host.symlink(`${dir}/t`, `${dir}/t/sub/loop`);
        const { usedBytes, usedInodes } = await host.treeUsage(`${dir}/t`, signal);
        expect(usedInodes).toBe(5);
        expect(usedBytes - emptyBytes).toBeGreaterThanOrEqual(100_000);
        expect(usedBytes - emptyBytes).toBeLessThan(200_000);
        expect(await codeOf(host.treeUsage(`${dir}/missing`, signal))).toBe("ENOENT");
        const reason = new Error("enough");
        await expect(host.treeUsage(`${dir}/t`, AbortSignal.abort(reason))).rejects.toBe(reason);
      });

      test("a tree that is a link is not given to a group", async () => {
        await host.makeDirectory(`${dir}/elsewhere`, 0o700);
        await host.symlink(`${dir}/elsewhere`, `${dir}/target`);
        expect(await codeOf(host.chownTree(`${dir}/target`, process.getegid?.() ?? 0))).toBe("ELOOP");
        expect((await host.stat(`${dir}/elsewhere`))?.mode).toBe(0o700);
      });

      test("usage knows how much there is", async () => {
        const { totalBytes, availableBytes } = await host.usage(dir);
        expect(totalBytes).toBeGreaterThan(0);
        expect(availableBytes).toBeLessThanOrEqual(totalBytes);
        const { totalInodes, availableInodes } = await host.usage(dir);
        expect(availableInodes).toBeGreaterThanOrEqual(0);
        expect(availableInodes).toBeLessThanOrEqual(totalInodes);
        expect(await codeOf(host.usage(`${dir}/missing`))).toBe("ENOENT");
      });
    });

    describe("watching", () => {
      test("a change wakes the watcher", async () => {
        await host.readDirectory(dir);
        const woken = host.watchDirectory(dir, signal);
        await host.writeFileAtomic(`${dir}/f`, "");
        await woken;
        expect(await host.readDirectory(dir)).toEqual(["f"]);
      });

      test("a change between reading and watching is not missed", async () => {
        await host.readDirectory(dir);
        await host.makeDirectory(`${dir}/d`);
        await host.watchDirectory(dir, signal);
      });

      test("giving up rejects with the signal's reason", async () => {
        const controller = new AbortController();
        const reason = new Error("enough");
        await host.readDirectory(dir);
        const waiting = host.watchDirectory(dir, controller.signal);
        controller.abort(reason);
        await expect(waiting).rejects.toBe(reason);
        await expect(host.watchDirectory(dir, controller.signal)).rejects.toBe(reason);
      });

      test("a directory that is not there cannot be watched", async () => {
        expect(await codeOf(host.watchDirectory(`${dir}/missing`, signal))).toBe("ENOENT");
      });
    });

    describe("devices", () => {
      test("a backing file has one device, found again and gone after the detach", async () => {
        const backing = `${dir}/disk`;
        expect(await codeOf(host.attachLoop(backing))).toBe("ENOENT");
        await host.truncateFile(backing, 16 * megabyte);
        expect(await host.findLoop(backing)).toBeUndefined();
        const device = await host.attachLoop(backing);
        expect(await host.attachLoop(backing)).toBe(device);
        expect(await host.findLoop(backing)).toBe(device);
        expect(await host.stat(device)).toMatchObject({ sizeBytes: 16 * megabyte });
        await host.detachLoop(backing);
        await host.detachLoop(backing);
        expect(await host.findLoop(backing)).toBeUndefined();
      });

      test("the device sees the file's new size when it is attached again", async () => {
        const backing = `${dir}/disk`;
        await host.truncateFile(backing, 16 * megabyte);
        const device = await host.attachLoop(backing);
        await host.truncateFile(backing, 32 * megabyte);
        expect(await host.attachLoop(backing)).toBe(device);
        expect(await host.stat(device)).toMatchObject({ sizeBytes: 32 * megabyte });
      });

      test("a blank device has no file system; a formatted one is never formatted again", async () => {
        await host.truncateFile(`${dir}/disk`, 16 * megabyte);
        const device = await host.attachLoop(`${dir}/disk`);
        expect(await host.fileSystemOf(device)).toBeUndefined();
        await host.format(device, "ext4");
        expect(await host.fileSystemOf(device)).toBe("ext4");
        expect(await codeOf(host.format(device, "ext4"))).toBe("EEXIST");
        expect(await codeOf(host.format(device, "nosuchfs"))).toBe("ENODEV");
        expect(await codeOf(host.fileSystemOf(`${dir}/missing`))).toBe("ENOENT");
      });

      test("a link to a device stands for it", async () => {
        const { m } = await directories("m");
        await host.truncateFile(`${dir}/disk`, 16 * megabyte);
        const device = await host.attachLoop(`${dir}/disk`);
        const link = `${dir}/by-id`;
        await host.symlink(device, link);
        expect(await host.fileSystemOf(link)).toBeUndefined();
        await host.format(link, "ext4");
        expect(await codeOf(host.format(link, "ext4"))).toBe("EEXIST");
        expect(await host.fileSystemOf(device)).toBe("ext4");
        await host.checkFileSystem(link);
        await host.growUnmounted(link);
        await host.mountDevice(link, m, { fsType: "ext4" });
        expect(await host.listMounts(m)).toMatchObject([{ source: device }]);
        await host.unmount(m);
        await host.detachLoop(`${dir}/disk`);
      });

      test("data stays with the disk from device to device", async () => {
        const { backing, device } = await disk();
        const { m } = await directories("m");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.writeFileAtomic(`${m}/data`, "kept");
        await host.unmount(m);
        expect(await host.readFile(`${m}/data`)).toBeUndefined();
        await host.detachLoop(backing);

        const again = await host.attachLoop(backing);
        expect(await host.fileSystemOf(again)).toBe("ext4");
        const other = subject.other ?? host;
        await other.makeDirectory(`${dir}/n`);
        await other.mountDevice(again, `${dir}/n`, { fsType: "ext4" });
        expect(await other.readFile(`${dir}/n/data`)).toBe("kept");
        expect(await codeOf(host.detachLoop(backing))).toBe("EBUSY");
        await other.unmount(`${dir}/n`);
      });

      test("a mounted device is busy, also through a bind mount alone", async () => {
        const { backing, device } = await disk();
        const { m, b } = await directories("m", "b");
        await host.mountDevice(device, m, { fsType: "ext4" });
        expect(await codeOf(host.detachLoop(backing))).toBe("EBUSY");
        await host.bindMount(m, b);
        await host.unmount(m);
        expect(await codeOf(host.detachLoop(backing))).toBe("EBUSY");
        await host.unmount(b);
        await host.detachLoop(backing);
      });

      test("copies have what is on the disks, also what was not synced, and go their own way", async () => {
        const { device } = await disk();
        const { m, n, copies } = await directories("m", "n", "copies");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.truncateFile(`${m}/unsynced`, 5);
        await host.writeFileAtomic(`${m}/data`, "original");
        await host.truncateFile(`${dir}/blank`, 8 * megabyte);
        await host.copyDisks([
          { source: `${dir}/disk`, target: `${copies}/disk` },
          { source: `${dir}/blank`, target: `${copies}/blank` },
        ]);
        expect(await host.readDirectory(copies)).toContain("disk");
        expect(await host.stat(`${copies}/disk`)).toMatchObject({ kind: "file", sizeBytes: 16 * megabyte });
        expect(await host.stat(`${copies}/blank`)).toMatchObject({ sizeBytes: 8 * megabyte });
        await host.writeFileAtomic(`${m}/data`, "changed");
        const copy = await host.attachLoop(`${copies}/disk`);
        try {
          expect(await host.fileSystemOf(copy)).toBe("ext4");
          await host.mountDevice(copy, n, { fsType: "ext4" });
          expect(await host.readFile(`${n}/data`)).toBe("original");
          expect((await host.stat(`${n}/unsynced`))?.sizeBytes).toBe(5);
          await host.writeFileAtomic(`${n}/data`, "copy's own");
          expect(await host.readFile(`${m}/data`)).toBe("changed");
          await host.unmount(n);
        } finally {
          if (await host.isMountPoint(n)) await host.unmount(n);
          await host.detachLoop(`${copies}/disk`);
        }
      });

      test("a copy replaces what is at its target, and needs a source", async () => {
        await disk();
        await host.truncateFile(`${dir}/blank`, 8 * megabyte);
        await host.copyDisks([{ source: `${dir}/disk`, target: `${dir}/copy` }]);
        await host.copyDisks([{ source: `${dir}/blank`, target: `${dir}/copy` }]);
        const device = await host.attachLoop(`${dir}/copy`);
        expect(await host.fileSystemOf(device)).toBeUndefined();
        await host.detachLoop(`${dir}/copy`);
        const missing = host.copyDisks([{ source: `${dir}/missing`, target: `${dir}/other` }]);
        expect(await codeOf(missing)).toBe("ENOENT");
        expect(await host.stat(`${dir}/other`)).toBeUndefined();
      });

      test("what is written to a device is on its disk, whatever the device is bound to", async () => {
        const backing = `${dir}/raw`;
        await host.truncateFile(backing, 8 * megabyte);
        const device = await host.attachLoop(backing);
        await host.writeFileAtomic(`${dir}/bound`, "");
        await host.bindMount(device, `${dir}/bound`);
        const query = { blockBytes: 65_536, from: 0, max: 1000 };
        expect((await host.diskBlocks(backing, query)).blocks).toEqual([]);
        await host.writeDevice(`${dir}/bound`, "a".repeat(2 * 65_536 + 1));
        await host.copyDisks([{ source: backing, target: `${dir}/before` }]);
        expect((await host.diskBlocks(`${dir}/before`, query)).blocks).toEqual([0, 1, 2]);
        await host.writeDevice(device, `${"a".repeat(65_536)}${"b".repeat(65_536)}a`);
        await host.copyDisks([{ source: backing, target: `${dir}/after` }]);
        const delta = await host.diskBlocks(`${dir}/after`, { ...query, base: `${dir}/before` });
        expect(delta.blocks).toEqual([1]);
        await host.unmount(`${dir}/bound`);
        expect(await codeOf(host.writeDevice(`${dir}/bound`, ""))).toBe("ENOTBLK");
        expect(await codeOf(host.writeDevice(`${dir}/missing`, ""))).toBe("ENOENT");
        await host.detachLoop(backing);
      });

      test("the blocks of a disk are those with data, or those that changed since a copy", async () => {
        const { device } = await disk();
        await host.truncateFile(`${dir}/blank`, 8 * megabyte);
        const { m } = await directories("m");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.writeFileAtomic(`${m}/data`, "x".repeat(3 * megabyte));
        const source = `${dir}/disk`;
        await host.copyDisks([{ source, target: `${dir}/before` }]);
        await host.writeFileAtomic(`${m}/more`, "y".repeat(2 * megabyte));
        await host.copyDisks([{ source, target: `${dir}/after` }]);
        const all = async (name: string, base?: string, from = 0, max = 1000) => {
          const numbers: number[] = [];
          for (let next: number | undefined = from; next !== undefined; ) {
            const query = { blockBytes: 65_536, from: next, max, ...(base && { base: `${dir}/${base}` }) };
            const page = await host.diskBlocks(`${dir}/${name}`, query);
            expect(page.blocks.length).toBeLessThanOrEqual(max);
            numbers.push(...page.blocks);
            next = page.next;
          }
          return numbers;
        };
        const [before, after, delta] = [
          await all("before"),
          await all("after"),
          await all("after", "before"),
        ];
        expect(before.length).toBeGreaterThanOrEqual(48);
        expect(before.length).toBeLessThan(100);
        expect(delta.length).toBeGreaterThanOrEqual(32);
        expect(delta.length).toBeLessThan(after.length);
        for (const numbers of [before, after, delta]) {
          expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
          expect(numbers.at(-1)).toBeLessThan(256);
        }
        if (host.form === "kernel") {
          // With the changed blocks the earlier copy becomes the later one; the others hold nothing.
          const [held, wanted] = [await readFile(`${dir}/before`), await readFile(`${dir}/after`)];
          const range = (block: number) => [block * 65_536, (block + 1) * 65_536] as const;
          for (const block of delta) wanted.copy(held, range(block)[0], ...range(block));
          expect(held.equals(wanted)).toBe(true);
          for (const block of after) wanted.fill(0, ...range(block));
          expect(wanted.every((byte) => byte === 0)).toBe(true);
        }
        expect(await all("after", undefined, 0, 7)).toEqual(after);
        expect(await all("after", "before", 20)).toEqual(delta.filter((block) => block >= 20));
        expect(await all("after", "after")).toEqual([]);
        expect(await all("after", "blank")).toEqual(after);
        expect(await all("blank")).toEqual([]);
        expect(await codeOf(all("missing"))).toBe("ENOENT");
        expect(await codeOf(all("after", "missing"))).toBe("ENOENT");
      });

      test("a link to a mount point is a link, and no mount point of its own", async () => {
        await host.makeDirectory(`${dir}/real`);
        await host.makeDirectory(`${dir}/m`);
        await host.bindMount(`${dir}/real`, `${dir}/m`);
        await host.symlink(`${dir}/m`, `${dir}/link`);
        expect(await host.stat(`${dir}/link`)).toMatchObject({ kind: "symlink" });
        expect(await host.readLink(`${dir}/link`)).toBe(`${dir}/m`);
        expect(await host.isMountPoint(`${dir}/link`)).toBe(true);
        await host.removeFile(`${dir}/link`);
        expect(await host.stat(`${dir}/link`)).toBeUndefined();
        expect(await host.isMountPoint(`${dir}/m`)).toBe(true);
      });

      test("a device may refuse writes, and takes them again", async () => {
        const { device } = await disk();
        await host.setDeviceReadOnly(device, true);
        await host.setDeviceReadOnly(device, false);
        const { m } = await directories("m");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.writeFileAtomic(`${m}/f`, "x");
        expect(await codeOf(host.setDeviceReadOnly(`${dir}/missing`, true))).toBe("ENOENT");
      });

      test("a device is held by nothing that the mount table does not show", async () => {
        const { device } = await disk();
        expect(await host.isDeviceHeld(device)).toBe(false);
        const { m } = await directories("m");
        await host.mountDevice(device, m, { fsType: "ext4" });
        expect(await host.isDeviceHeld(device)).toBe(false);
        await host.unmount(m);
        expect(await host.isDeviceHeld(device)).toBe(false);
        expect(await host.isDeviceHeld(`${dir}/missing`)).toBe(false);
      });

      test("a sound file system passes its check, mounted or not, and a blank device too", async () => {
        const { device } = await disk();
        const { m } = await directories("m");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.writeFileAtomic(`${m}/f`, "x");
        expect(await host.checkFileSystem(device)).toBe(false);
        await host.unmount(m);
        expect(await host.checkFileSystem(device)).toBe(false);
        await host.mountDevice(device, m, { fsType: "ext4" });
        expect(await host.readFile(`${m}/f`)).toBe("x");
        await host.truncateFile(`${dir}/blank`, megabyte);
        expect(await host.checkFileSystem(await host.attachLoop(`${dir}/blank`))).toBe(false);
        expect(await codeOf(host.checkFileSystem(`${dir}/missing`))).toBe("ENOENT");
      });

      test("a file system is grown to its device only where it is mounted", async () => {
        const { device } = await disk();
        const { m } = await directories("m");
        expect(await codeOf(host.growFileSystem(`${dir}/missing`, m))).toBe("ENOENT");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.growFileSystem(device, m); // Nothing to grow: harmless.
      });

      test("a file system is grown unmounted, and keeps what is in it", async () => {
        const { backing, device } = await disk();
        const { m } = await directories("m");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.writeFileAtomic(`${m}/data`, "x");
        await host.unmount(m);
        await host.truncateFile(backing, 32 * megabyte);
        await host.attachLoop(backing);
        await host.growUnmounted(device);
        await host.growUnmounted(device);
        await host.mountDevice(device, m, { fsType: "ext4" });
        expect(await host.readFile(`${m}/data`)).toBe("x");
        expect((await host.usage(m)).totalBytes).toBeGreaterThan(20 * megabyte);
        await host.truncateFile(`${dir}/blank`, megabyte);
        expect(await codeOf(host.growUnmounted(await host.attachLoop(`${dir}/blank`)))).toBe("EINVAL");
      });
    });

    describe("mounts", () => {
      test("a device is mounted, listed, and unmounted", async () => {
        const { device } = await disk();
        const { m } = await directories("m");
        const before = await host.stat(m);
        expect(await host.isMountPoint(m)).toBe(false);
        await host.mountDevice(device, m, { fsType: "ext4" });
        expect(await host.isMountPoint(m)).toBe(true);
        expect(await host.stat(m)).toMatchObject({ kind: "directory" });
        expect((await host.stat(m))?.inode).not.toBe(before?.inode);
        expect(await host.listMounts(dir)).toEqual([
          { source: device, target: m, fsType: "ext4", readOnly: false },
        ]);
        expect(await host.listMounts(m)).toHaveLength(1);
        expect(await host.listMounts(`${dir}/mm`)).toEqual([]);
        expect(await codeOf(host.mountDevice(device, m, { fsType: "ext4" }))).toBe("EBUSY");
        await host.unmount(m);
        expect(await host.isMountPoint(m)).toBe(false);
        expect(await host.stat(m)).toEqual(before);
        expect(await host.listMounts(dir)).toEqual([]);
        expect(await codeOf(host.unmount(m))).toBe("EINVAL");
        expect(await codeOf(host.unmount(`${dir}/missing`))).toBe("ENOENT");
      });

      test("what cannot be mounted is refused", async () => {
        await host.truncateFile(`${dir}/blank`, 16 * megabyte);
        const blank = await host.attachLoop(`${dir}/blank`);
        const { m } = await directories("m");
        await host.writeFileAtomic(`${dir}/f`, "");
        const { device } = await disk();
        expect(await codeOf(host.mountDevice(blank, m, { fsType: "ext4" }))).toBe("EINVAL");
        expect(await codeOf(host.mountDevice(device, `${dir}/missing`, { fsType: "ext4" }))).toBe("ENOENT");
        expect(await codeOf(host.mountDevice(device, `${dir}/f`, { fsType: "ext4" }))).toBe("ENOTDIR");
        expect(await codeOf(host.mountDevice(`${dir}/missing`, m, { fsType: "ext4" }))).toBe("ENOENT");
        expect(await codeOf(host.bindMount(`${dir}/missing`, m))).toBe("ENOENT");
        expect(await codeOf(host.bindMount(m, `${dir}/missing`))).toBe("ENOENT");
        expect(await codeOf(host.bindMount(m, `${dir}/f`))).toBe("ENOTDIR");
        expect(await host.listMounts(dir)).toEqual([]);
      });

      test("a mount hides what is below it and gives it back", async () => {
        const { device } = await disk();
        const { m } = await directories("m");
        await host.writeFileAtomic(`${m}/below`, "x");
        await host.mountDevice(device, m, { fsType: "ext4" });
        expect(await host.readFile(`${m}/below`)).toBeUndefined();
        await host.unmount(m);
        expect(await host.readFile(`${m}/below`)).toBe("x");
      });

      test("a bind mount shows the same files, and lives on without its source's mount", async () => {
        const { device } = await disk();
        const { m, b } = await directories("m", "b");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.bindMount(m, b);
        expect(await host.listMounts(b)).toEqual([
          { source: device, target: b, fsType: "ext4", readOnly: false },
        ]);
        await host.writeFileAtomic(`${m}/f`, "x");
        expect(await host.readFile(`${b}/f`)).toBe("x");
        await host.unmount(m);
        await host.appendFileDurable(`${b}/f`, "y");
        expect(await host.readFile(`${b}/f`)).toBe("xy");
      });

      test("a bind mount of a part of a file system names that part", async () => {
        const { source, b } = await directories("source", "b");
        await host.bindMount(source, b);
        expect(await host.listMounts(b)).toMatchObject([{ source, target: b, readOnly: false }]);
      });

      test("a read-only mount refuses writes", async () => {
        const { device } = await disk();
        const { m, b, c } = await directories("m", "b", "c");
        await host.mountDevice(device, m, { fsType: "ext4" });
        await host.writeFileAtomic(`${m}/f`, "x");
        await host.bindMount(m, b, { readOnly: true });
        expect(await host.listMounts(b)).toMatchObject([{ readOnly: true }]);
        expect(await host.readFile(`${b}/f`)).toBe("x");
        expect(await codeOf(host.writeFileAtomic(`${b}/g`, "y"))).toBe("EROFS");
        expect(await codeOf(host.appendFileDurable(`${b}/f`, "y"))).toBe("EROFS");
        expect(await codeOf(host.removeFile(`${b}/f`))).toBe("EROFS");
        expect(await codeOf(host.makeDirectory(`${b}/d`))).toBe("EROFS");
        await host.writeFileAtomic(`${m}/f`, "z");
        await host.unmount(b);
        await host.unmount(m);
        await host.mountDevice(device, c, { fsType: "ext4", readOnly: true });
        expect(await host.listMounts(c)).toMatchObject([{ readOnly: true }]);
        expect(await codeOf(host.writeFileAtomic(`${c}/g`, "y"))).toBe("EROFS");
      });

      test("mounts stack on one target and come off one by one", async () => {
        const { a, b, m } = await directories("a", "b", "m");
        await host.writeFileAtomic(`${a}/name`, "a");
        await host.writeFileAtomic(`${b}/name`, "b");
        await host.bindMount(a, m);
        await host.bindMount(b, m);
        expect(await host.listMounts(m)).toHaveLength(2);
        expect(await host.readFile(`${m}/name`)).toBe("b");
        await host.unmount(m);
        expect(await host.readFile(`${m}/name`)).toBe("a");
        await host.unmount(m);
        expect(await host.readDirectory(m)).toEqual([]);
      });

      test("a device is bound to a file for a raw block volume", async () => {
        await host.truncateFile(`${dir}/disk`, 16 * megabyte);
        const device = await host.attachLoop(`${dir}/disk`);
        await host.writeFileAtomic(`${dir}/block`, "");
        await host.bindMount(device, `${dir}/block`);
        expect(await host.isMountPoint(`${dir}/block`)).toBe(true);
        expect((await host.stat(`${dir}/block`))?.sizeBytes).toBe(16 * megabyte);
        await host.unmount(`${dir}/block`);
        expect(await host.stat(`${dir}/block`)).toMatchObject({ kind: "file", sizeBytes: 0 });
      });

      test("a mount point cannot be removed, nor a tree with one in it", async () => {
        const { source, parent } = await directories("source", "parent");
        const target = `${parent}/m`;
        await host.makeDirectory(target);
        await host.writeFileAtomic(`${source}/precious`, "x");
        await host.bindMount(source, target);
        expect(await codeOf(host.removeDirectory(target))).toBe("EBUSY");
        expect(await codeOf(host.removeTree(target))).toBe("EBUSY");
        expect(await codeOf(host.removeTree(parent))).toBe("EBUSY");
        expect(await codeOf(host.removeDirectory(parent))).toBe("ENOTEMPTY");
        expect(await codeOf(host.rename(target, `${parent}/n`))).toBe("EBUSY");
        expect(await host.readFile(`${source}/precious`)).toBe("x");
        expect(await host.readDirectory(parent)).toEqual(["m"]);
        await host.unmount(target);
        await host.removeDirectory(target);
        await host.removeDirectory(parent);
        expect(await host.readFile(`${source}/precious`)).toBe("x");
      });

      test("a file system in memory is empty at first, bounded, and gone with its unmount", async () => {
        const { m } = await directories("m");
        const isThere = await host.mountMemory(m, { mode: 0o750, sizeBytes: megabyte });
        expect(isThere).toBe(host.form !== "unprivileged");
        expect(await host.isMountPoint(m)).toBe(isThere);
        if (!isThere) return;
        expect(await host.listMounts(m)).toMatchObject([{ source: "tmpfs", target: m, fsType: "tmpfs" }]);
        expect((await host.stat(m))?.mode).toBe(0o750);
        await host.writeFileAtomic(`${m}/f`, "x");
        const much = "x".repeat(2 * megabyte);
        expect(await codeOf(host.writeFileAtomic(`${m}/g`, much))).toBe("ENOSPC");
        await host.unmount(m);
        expect(await host.readDirectory(m)).toEqual([]);
      });

      test("a part of a volume is bound, as a directory or a file", async () => {
        const { volume } = await directories("volume");
        await host.makeDirectory(`${volume}/a/b`);
        await host.writeFileAtomic(`${volume}/a/b/f`, "x");
        await host.bindSubPath(volume, "a/b", `${dir}/t/0`);
        await host.bindSubPath(volume, "a//b/./f", `${dir}/t/1`);
        expect(await host.readFile(`${dir}/t/0/f`)).toBe("x");
        expect(await host.readFile(`${dir}/t/1`)).toBe("x");
        expect(await host.isMountPoint(`${dir}/t/0`)).toBe(true);
        expect(await host.isMountPoint(`${dir}/t/1`)).toBe(true);
        await host.bindSubPath(volume, "a/b", `${dir}/t/0`);
        expect(await host.listMounts(`${dir}/t/0`)).toHaveLength(1);
        await host.bindSubPath(volume, "a/b/f", `${dir}/t/0`);
        expect(await host.listMounts(`${dir}/t/0`)).toHaveLength(1);
        expect(await host.readFile(`${dir}/t/0`)).toBe("x");
      });

      test("missing directories of a part are made with the mode of the volume", async () => {
        const volume = `${dir}/volume`;
        await host.makeDirectory(volume, 0o751);
        await host.bindSubPath(volume, "new/deep", `${dir}/t/0`);
        expect(await host.stat(`${volume}/new/deep`)).toMatchObject({ kind: "directory", mode: 0o751 });
        expect((await host.stat(`${volume}/new`))?.mode).toBe(0o751);
        await host.writeFileAtomic(`${dir}/t/0/f`, "x");
        expect(await host.readFile(`${volume}/new/deep/f`)).toBe("x");
      });

      test("links in a part are followed as long as they stay in the volume", async () => {
        const { volume, outside } = await directories("volume", "outside");
        await host.makeDirectory(`${volume}/a`);
        await host.writeFileAtomic(`${volume}/a/f`, "x");
        await host.symlink("a", `${volume}/inside`);
        await host.symlink(outside, `${volume}/absolute`);
        await host.symlink("../outside", `${volume}/relative`);
        await host.symlink("nowhere", `${volume}/dangling`);
        await host.symlink("round", `${volume}/round`);
        await host.bindSubPath(volume, "inside", `${dir}/t`);
        expect(await host.readFile(`${dir}/t/f`)).toBe("x");
        const bound = (subPath: string) => codeOf(host.bindSubPath(volume, subPath, `${dir}/u`));
        expect(await bound("absolute")).toBe("EXDEV");
        expect(await bound("relative")).toBe("EXDEV");
        expect(await bound("absolute/new")).toBe("EXDEV");
        expect(await bound("dangling")).toBe("ENOENT");
        expect(await bound("round")).toBe("ELOOP");
        expect(await bound("a/f/below")).toBe("ENOTDIR");
        for (const path of ["../outside", "/a", "a/../..", "", "."]) expect(await bound(path)).toBe("EINVAL");
        expect(await host.readDirectory(outside)).toEqual([]);
        expect(await host.isMountPoint(`${dir}/u`)).toBe(false);
      });

      test("a link to a mount point names the same mount", async () => {
        const { source, m } = await directories("source", "m");
        await host.symlink(m, `${dir}/link`);
        await host.bindMount(source, `${dir}/link`);
        expect(await host.isMountPoint(m)).toBe(true);
        expect(await host.isMountPoint(`${dir}/link`)).toBe(true);
        expect(await host.listMounts(dir)).toMatchObject([{ target: m }]);
        await host.unmount(`${dir}/link`);
        expect(await host.isMountPoint(m)).toBe(false);
      });
    });

    test("a program that is not there is ENOENT", async () => {
      expect(await codeOf(host.runProgram("/no/such/program", { args: [], signal }))).toBe("ENOENT");
    });
  });
}

/** The code that an operation fails with; `ok` when it does not. */
async function codeOf(operation: Promise<unknown>): Promise<string> {
  try {
    await operation;
    return "ok";
  } catch (error) {
    expect(error).toBeInstanceOf(HostError);
    return (error as HostError).code;
  }
}
