/**
 * The kernel's form of the {@link Host} seam: real mounts and loop devices, made by the system's own
 * programs. Needs root.
 *
 * Invariants
 *  - A device that holds anything that blkid knows is never formatted.
 *  - A tree is removed only when no mount is at or below it.
 *  - One backing file has at most one loop device, as long as one process attaches it.
 */
import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { systemClock } from "../clock/system-clock.ts";
import { KeyedLock } from "../locks/keyed-lock.ts";
import { deviceNumberOf } from "./device-number.ts";
import {
  type ChownOptions,
  type DiskBlocks,
  type DiskBlocksQuery,
  type DiskCopy,
  type FileStat,
  type FileSystemUsage,
  type Host,
  HostError,
  type Mount,
  type ProgramOptions,
  type TreeUsage,
} from "./host.ts";
import { baseOf, checkedPath, childOf, isAtOrBelow, parentOf } from "./host-paths.ts";
import { blocksOfFile } from "./kernel-disk-blocks.ts";
import { whileUnwritten } from "./kernel-disk-copies.ts";
import { allocate, check, keepRoom, keepRoomMounted } from "./kernel-disk-images.ts";
import { type LoopDevice, loopDevices } from "./kernel-loop-devices.ts";
import { relabelTree } from "./kernel-selinux.ts";
import { type MountInfo, mountsBelow, parseMountInfo } from "./mount-info.ts";
import { chownTree } from "./node-chown-tree.ts";
import { writeInPlace } from "./node-devices.ts";
import * as files from "./node-files.ts";
import { runProgram, runTool } from "./node-programs.ts";
import { openBelow } from "./node-sub-path.ts";
import { treeUsage } from "./node-tree-usage.ts";
import { makeSubPathTarget, namesOfSubPath } from "./sub-path-target.ts";
import { errnoOf, hostStep, isMissing } from "./to-host-error.ts";

/**
 * Of ext3 and ext4: never asks, never reserves blocks for root. Nothing is discarded, now or by the kernel afterwards (see
 * `kernel-disk-images.ts`), and after an error nothing more is written, since it might be acknowledged and lost.
 */
const extOptions = ["-q", "-F", "-m0", "-e", "remount-ro", "-E"];
const extExtended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";

/** mkfs per file system. */
const formatters: Readonly<Record<string, readonly string[]>> = {
  ext3: ["mkfs.ext3", ...extOptions, extExtended],
  ext4: ["mkfs.ext4", ...extOptions, extExtended],
  xfs: ["mkfs.xfs", "-q", "-K"],
  btrfs: ["mkfs.btrfs", "-q", "-K"],
};

/** How far a device must be readable before it may count as blank: blkid says nothing of a failed read. */
const probeBytes = 128 * 1024;

/** The last pause before a detached device that is still there counts as in use, in milliseconds. */
const passingMs = 320;
const never = new AbortController().signal;

class KernelHost implements Host {
  readonly form = "kernel";
  readonly #watcher = new files.DirectoryWatcher();
  readonly #loopLock = new KeyedLock();

  async stat(path: string): Promise<FileStat | undefined> {
    const checked = checkedPath("stat", path);
    const stat = await files.statFile("stat", checked);
    if (stat?.kind !== "blockDevice") return stat;
    return { ...stat, sizeBytes: await hostStep("stat", path, () => deviceSize(checked)) };
  }

  async readFile(path: string): Promise<string | undefined> {
    return files.readText(checkedPath("readFile", path));
  }

  async writeFileAtomic(
    path: string,
    data: string | Uint8Array,
    options: { readonly mode?: number } = {},
  ): Promise<void> {
    await files.writeAtomic(checkedPath("writeFileAtomic", path), data, options.mode ?? 0o600);
  }

  async appendFileDurable(path: string, data: string): Promise<void> {
    await files.appendDurable(checkedPath("appendFileDurable", path), data);
  }

  async truncateFile(path: string, sizeBytes: number): Promise<void> {
    await files.setFileSize(checkedPath("truncateFile", path), sizeBytes);
  }

  async allocateFile(path: string, sizeBytes: number): Promise<void> {
    await allocate(checkedPath("allocateFile", path), sizeBytes);
  }

  async makeDirectory(path: string, mode = 0o700): Promise<void> {
    const checked = checkedPath("makeDirectory", path);
    await hostStep("makeDirectory", path, () => files.makeDirectories(checked, mode));
  }

  async readDirectory(path: string): Promise<readonly string[] | undefined> {
    const checked = checkedPath("readDirectory", path);
    await this.#watcher.willRead(checked);
    return hostStep("readDirectory", path, () => files.listNames(checked));
  }

  async removeFile(path: string): Promise<void> {
    await files.unlinkFile(checkedPath("removeFile", path));
  }

  async removeDirectory(path: string): Promise<void> {
    await files.removeEmptyDirectory(checkedPath("removeDirectory", path));
  }

  async removeTree(path: string): Promise<void> {
    const checked = checkedPath("removeTree", path);
    await hostStep("removeTree", path, async () => {
      const parent = await realPath(parentOf(checked));
      if (parent === undefined) return;
      // Only the parent is resolved: a link under the last name is removed, not followed.
      const real = childOf(parent, baseOf(checked));
      const infos = await readMounts();
      if (infos.some((info) => isAtOrBelow(info.target, real))) {
        throw new HostError("removeTree", path, "EBUSY");
      }
      await fs.rm(real, { recursive: true, force: true });
    });
  }

  async rename(from: string, to: string): Promise<void> {
    await files.renamePath(checkedPath("rename", from), checkedPath("rename", to));
  }

  async symlink(target: string, path: string): Promise<void> {
    await files.makeLink(target, checkedPath("symlink", path));
  }

  async readLink(path: string): Promise<string | undefined> {
    return files.linkTarget(checkedPath("readLink", path));
  }

  async chownTree(path: string, gid: number, options: ChownOptions = {}): Promise<void> {
    const checked = checkedPath("chownTree", path);
    await chownTree(checked, gid, options);
  }

  async relabelTree(path: string, label: string): Promise<void> {
    await relabelTree(checkedPath("relabelTree", path), label);
  }

  async watchDirectory(path: string, signal: AbortSignal): Promise<void> {
    await this.#watcher.wait(checkedPath("watchDirectory", path), signal);
  }

  async usage(path: string): Promise<FileSystemUsage> {
    return files.fileSystemUsage(checkedPath("usage", path));
  }

  async treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage> {
    return treeUsage(checkedPath("treeUsage", path), signal);
  }

  async mountDevice(
    device: string,
    target: string,
    options: { readonly fsType: string; readonly flags?: readonly string[]; readonly readOnly?: boolean },
  ): Promise<void> {
    const from = checkedPath("mountDevice", device);
    const to = checkedPath("mountDevice", target);
    const isDevice = (await hostStep("mountDevice", device, () => fs.stat(from))).isBlockDevice();
    if (!isDevice) throw new HostError("mountDevice", device, "ENOTBLK");
    // A copy of an xfs has the UUID of its original, and may be mounted at the same time.
    const copyable = options.fsType === "xfs" ? ["nouuid"] : [];
    const flags = [...(options.flags ?? []), ...copyable, ...(options.readOnly === true ? ["ro"] : [])];
    const type = options.fsType === "" ? [] : ["-t", options.fsType];
    const opts = flags.length === 0 ? [] : ["-o", flags.join(",")];
    await runTool("mountDevice", target, "mount", [...type, ...opts, from, to]);
    await keepRoomMounted(from);
  }

  async mountMemory(
    target: string,
    { mode, sizeBytes }: { readonly mode: number; readonly sizeBytes?: number },
  ): Promise<boolean> {
    const to = checkedPath("mountMemory", target);
    const size = sizeBytes === undefined ? [] : [`size=${sizeBytes}`];
    const options = [`mode=${mode.toString(8)}`, ...size].join(",");
    await runTool("mountMemory", target, "mount", ["-t", "tmpfs", "-o", options, "tmpfs", to]);
    return true;
  }

  async bindMount(
    source: string,
    target: string,
    options: { readonly readOnly?: boolean } = {},
  ): Promise<void> {
    const from = checkedPath("bindMount", source);
    const to = checkedPath("bindMount", target);
    const how = options.readOnly === true ? "bind,ro" : "bind";
    await runTool("bindMount", target, "mount", ["-o", how, from, to]);
  }

  async bindSubPath(root: string, subPath: string, target: string): Promise<void> {
    const below = checkedPath("bindSubPath", root);
    const to = checkedPath("bindSubPath", target);
    const names = namesOfSubPath(subPath);
    await hostStep("bindSubPath", target, async () => {
      const { handle } = await openBelow(below, names);
      try {
        const stat = await handle.stat({ bigint: true });
        const inode = `${stat.dev}:${stat.ino}`;
        const kind = stat.isDirectory() ? "directory" : "file";
        if (await makeSubPathTarget(this, to, { inode, kind })) return;
        // What was opened, by its descriptor: no path of the volume is resolved a second time.
        const opened = `/proc/${process.pid}/fd/${handle.fd}`;
        await runTool("bindSubPath", target, "mount", ["--no-canonicalize", "--bind", opened, to]);
        if ((await this.stat(to))?.inode === inode) return;
        await this.unmount(to);
        throw new HostError("bindSubPath", target, "ESTALE");
      } finally {
        await handle.close();
      }
    });
  }

  async unmount(target: string): Promise<void> {
    const checked = checkedPath("unmount", target);
    // Asked first: umount(8) says of a missing path, too, that it is no mount point.
    if ((await this.stat(checked)) === undefined) throw new HostError("unmount", target, "ENOENT");
    await runTool("unmount", target, "umount", [checked]);
  }

  async isMountPoint(path: string): Promise<boolean> {
    const checked = checkedPath("isMountPoint", path);
    const infos = await readMounts();
    if (infos.some((info) => info.target === checked)) return true;
    const real = await hostStep("isMountPoint", path, () => realPath(checked));
    return real !== undefined && infos.some((info) => info.target === real);
  }

  async listMounts(prefix: string): Promise<readonly Mount[]> {
    const checked = checkedPath("listMounts", prefix);
    const real = await hostStep("listMounts", prefix, () => realPath(checked));
    return mountsBelow(await readMounts(), real ?? checked);
  }

  async attachLoop(backingFile: string): Promise<string> {
    const checked = checkedPath("attachLoop", backingFile);
    const real = await hostStep("attachLoop", backingFile, () => fs.realpath(checked));
    return this.#loopLock.run(real, async () => {
      const present = (await findLoopDevice(real))?.path;
      if (present !== undefined) {
        await runTool("attachLoop", backingFile, "losetup", ["--set-capacity", present]);
        await keepRoom(present);
        return present;
      }
      const made = await runTool("attachLoop", backingFile, "losetup", ["--find", "--show", real]);
      const device = made.trim();
      await keepRoom(device);
      // What was said of the device when it had another file is still in force.
      if (await refusesWrites(device)) await this.setDeviceReadOnly(device, false);
      return device;
    });
  }

  async detachLoop(backingFile: string): Promise<void> {
    const checked = checkedPath("detachLoop", backingFile);
    const real = (await hostStep("detachLoop", backingFile, () => realPath(checked))) ?? checked;
    await this.#loopLock.run(real, async () => {
      const loop = await findLoopDevice(real);
      if (loop === undefined) return;
      const infos = await readMounts();
      if (infos.some((info) => info.deviceNumber === loop.deviceNumber)) {
        throw new HostError("detachLoop", backingFile, "EBUSY");
      }
      await runTool("detachLoop", backingFile, "losetup", ["--detach", loop.path]);
      // Someone else may still have it open, and the kernel waits for that one: a program that looks at all devices
      // is done in no time, another mount namespace is not.
      for (let pauseMs = 10; (await findLoopDevice(real)) !== undefined; pauseMs *= 2) {
        if (pauseMs > passingMs) throw new HostError("detachLoop", backingFile, "EBUSY");
        await systemClock.sleep(pauseMs, never);
      }
    });
  }

  async copyDisks(copies: readonly DiskCopy[]): Promise<void> {
    const checked = copies.map(({ source, target }) => {
      return { source: checkedPath("copyDisks", source), target: checkedPath("copyDisks", target) };
    });
    const loops = await loopDevices();
    const devices: LoopDevice[] = [];
    for (const { source } of checked) {
      const real = await hostStep("copyDisks", source, () => fs.realpath(source));
      const loop = loops.find((candidate) => candidate.backingFile === real);
      if (loop !== undefined) devices.push(loop);
    }
    await whileUnwritten(devices, await readMounts(), async () => {
      for (const { source, target } of checked) await files.copySparse("copyDisks", source, target);
    });
  }

  async diskBlocks(backingFile: string, query: DiskBlocksQuery): Promise<DiskBlocks> {
    const base = query.base === undefined ? {} : { base: checkedPath("diskBlocks", query.base) };
    return blocksOfFile(checkedPath("diskBlocks", backingFile), { ...query, ...base });
  }

  async writeDevice(device: string, text: string): Promise<void> {
    const checked = checkedPath("writeDevice", device);
    await hostStep("writeDevice", device, () => writeInPlace(checked, text, false));
  }

  async setDeviceReadOnly(device: string, readOnly: boolean): Promise<void> {
    const checked = checkedPath("setDeviceReadOnly", device);
    await runTool("setDeviceReadOnly", device, "blockdev", [readOnly ? "--setro" : "--setrw", checked]);
  }

  async isDeviceHeld(device: string): Promise<boolean> {
    const checked = checkedPath("isDeviceHeld", device);
    return hostStep("isDeviceHeld", device, async () => {
      const real = await realPath(checked);
      if (real === undefined) return false;
      const stat = await fs.stat(real, { bigint: true });
      if (!stat.isBlockDevice()) return false;
      const number = deviceNumberOf(stat.rdev);
      const isMounted = (await readMounts()).some(({ deviceNumber }) => deviceNumber === number);
      return !isMounted && (await refusesExclusiveUse(real));
    });
  }

  async findLoop(backingFile: string): Promise<string | undefined> {
    const checked = checkedPath("findLoop", backingFile);
    const real = (await hostStep("findLoop", backingFile, () => realPath(checked))) ?? checked;
    return (await findLoopDevice(real))?.path;
  }

  async fileSystemOf(device: string): Promise<string | undefined> {
    const checked = checkedPath("fileSystemOf", device);
    await hostStep("fileSystemOf", device, () => probeReadable(checked));
    const args = ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", checked];
    // 2: nothing was found. Source: blkid(8), EXIT STATUS.
    const output = await runTool("fileSystemOf", device, "blkid", args, { okCodes: [0, 2] });
    const found = new Map(output.split("\n").map((line) => line.split("=", 2) as [string, string]));
    // A disk with a partition table is not blank, and must not be formatted.
    return found.get("TYPE") ?? found.get("PTTYPE");
  }

  async checkFileSystem(device: string): Promise<boolean> {
    const checked = checkedPath("checkFileSystem", device);
    return check(checked, await this.fileSystemOf(checked));
  }

  async format(device: string, fsType: string): Promise<void> {
    const checked = checkedPath("format", device);
    const [program, ...args] = formatters[fsType] ?? [];
    if (program === undefined) throw new HostError("format", device, "ENODEV");
    if ((await this.fileSystemOf(checked)) !== undefined) throw new HostError("format", device, "EEXIST");
    await runTool("format", device, program, [...args, checked]);
  }

  async growFileSystem(device: string, mountPath: string): Promise<void> {
    const checked = checkedPath("growFileSystem", device);
    const mounted = checkedPath("growFileSystem", mountPath);
    const fsType = await this.fileSystemOf(checked);
    if (fsType === undefined) throw new HostError("growFileSystem", device, "EINVAL");
    if (fsType === "xfs") await runTool("growFileSystem", device, "xfs_growfs", [mounted]);
    else if (fsType === "btrfs") {
      await runTool("growFileSystem", device, "btrfs", ["filesystem", "resize", "max", mounted]);
    } else await runTool("growFileSystem", device, "resize2fs", [checked]);
  }

  async growUnmounted(device: string): Promise<void> {
    const checked = checkedPath("growUnmounted", device);
    const fsType = await this.fileSystemOf(checked);
    if (fsType === undefined) throw new HostError("growUnmounted", device, "EINVAL");
    if (!fsType.startsWith("ext")) return;
    // 1: errors were corrected. Source: e2fsck(8), EXIT CODE.
    await runTool("growUnmounted", device, "e2fsck", ["-f", "-p", checked], { okCodes: [0, 1] });
    await runTool("growUnmounted", device, "resize2fs", [checked]);
  }

  async runProgram(program: string, options: ProgramOptions) {
    return runProgram(program, options);
  }
}

/** The machine itself. @throws each operation throws HostError with EPERM where the right is missing */
export function kernelHost(): Host {
  return new KernelHost();
}

/** A file system, or another driver of the kernel, has the device for itself. */
async function refusesExclusiveUse(device: string): Promise<boolean> {
  try {
    await (await fs.open(device, constants.O_RDONLY | constants.O_EXCL)).close();
    return false;
  } catch (error) {
    return errnoOf(error) === "EBUSY";
  }
}

async function refusesWrites(device: string): Promise<boolean> {
  const flag = await fs.readFile(`/sys/block/${baseOf(device)}/ro`, "utf8").catch(() => "0");
  return flag.trim() === "1";
}

async function readMounts(): Promise<readonly MountInfo[]> {
  return parseMountInfo(await fs.readFile("/proc/self/mountinfo", "utf8"));
}

async function findLoopDevice(backingFile: string): Promise<LoopDevice | undefined> {
  return (await loopDevices()).find((loop) => loop.backingFile === backingFile);
}

async function realPath(path: string): Promise<string | undefined> {
  try {
    return await fs.realpath(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Capacity of a block device by its number, since it may have any name. */
async function deviceSize(device: string): Promise<number> {
  const { rdev } = await fs.stat(device, { bigint: true });
  const sectors = await fs.readFile(`/sys/dev/block/${deviceNumberOf(rdev)}/size`, "utf8").catch(() => "0");
  // sysfs counts in 512 bytes, whatever the sectors of the device have.
  return Number(sectors) * 512;
}

async function probeReadable(device: string): Promise<void> {
  const file = await fs.open(device, "r");
  try {
    await file.read(Buffer.alloc(probeBytes), 0, probeBytes, 0);
  } finally {
    await file.close();
  }
}
