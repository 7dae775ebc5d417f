/**
 * The unprivileged form of the {@link Host} seam: directories and links stand in for devices and
 * mounts, so that a cluster runs without root and on macOS. Its behaviour equals the kernel's as far
 * as the contract suite goes; what only the kernel can do (a read-only mount against a foreign
 * process, capacity of a device) it does not claim.
 */
import * as fs from "node:fs/promises";
import { KeyedLock } from "../locks/keyed-lock.ts";
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
import { checkedPath, isAtOrBelow } from "./host-paths.ts";
import { blocksOfFile } from "./kernel-disk-blocks.ts";
import { chownTree } from "./node-chown-tree.ts";
import { writeInPlace } from "./node-devices.ts";
import * as files from "./node-files.ts";
import { runProgram } from "./node-programs.ts";
import { openBelow } from "./node-sub-path.ts";
import { treeUsage } from "./node-tree-usage.ts";
import { makeSubPathTarget, namesOfSubPath } from "./sub-path-target.ts";
import { hostStep, isMissing } from "./to-host-error.ts";
import { blocksOfImage } from "./tree-image.ts";
import * as devices from "./unprivileged-devices.ts";
import * as mounts from "./unprivileged-mounts.ts";

const fileSystemTypes: ReadonlySet<string> = new Set(["ext4", "ext3", "xfs", "btrfs"]);

class UnprivilegedHost implements Host {
  readonly form = "unprivileged";
  readonly #watcher = new files.DirectoryWatcher();
  readonly #lock = new KeyedLock();

  async stat(path: string): Promise<FileStat | undefined> {
    const checked = checkedPath("stat", path);
    const stat = await files.statFile("stat", checked);
    if (stat?.kind === "symlink" && (await this.#isStandIn("stat", checked))) {
      const real = await hostStep("stat", path, () => fs.realpath(checked));
      return files.statFile("stat", real);
    }
    const backingFile = stat?.kind === "directory" ? devices.backingFileOf(checked) : undefined;
    if (stat === undefined || backingFile === undefined) return stat;
    const backing = await files.statFile("stat", backingFile);
    return backing?.kind === "file" ? { ...stat, sizeBytes: backing.sizeBytes } : stat;
  }

  async readFile(path: string): Promise<string | undefined> {
    return files.readText(checkedPath("readFile", path));
  }

  async writeFileAtomic(
    path: string,
    data: string | Uint8Array,
    options: { readonly mode?: number } = {},
  ): Promise<void> {
    const checked = await this.#writable("writeFileAtomic", path);
    await this.#refuseMountPoint("writeFileAtomic", checked);
    await files.writeAtomic(checked, data, options.mode ?? 0o600);
  }

  async appendFileDurable(path: string, data: string): Promise<void> {
    await files.appendDurable(await this.#writable("appendFileDurable", path), data);
  }

  async truncateFile(path: string, sizeBytes: number): Promise<void> {
    await files.setFileSize(await this.#writable("truncateFile", path), sizeBytes);
  }

  async allocateFile(path: string, sizeBytes: number): Promise<void> {
    const checked = await this.#writable("allocateFile", path);
    const present = await files.statFile("allocateFile", checked);
    if (present === undefined || present.sizeBytes < sizeBytes) await files.setFileSize(checked, sizeBytes);
  }

  async makeDirectory(path: string, mode = 0o700): Promise<void> {
    const checked = checkedPath("makeDirectory", path);
    await hostStep("makeDirectory", path, async () => {
      if ((await files.statFile("makeDirectory", checked)) !== undefined) {
        return files.makeDirectories(checked, mode);
      }
      await mounts.healMountPoint(checked);
      await this.#writable("makeDirectory", path);
      return files.makeDirectories(checked, mode);
    });
  }

  async readDirectory(path: string): Promise<readonly string[] | undefined> {
    const checked = checkedPath("readDirectory", path);
    await this.#watcher.willRead(checked);
    return hostStep("readDirectory", path, async () => {
      const names = await files.listNames(checked);
      return names?.filter((name) => !mounts.isMountRecord(name));
    });
  }

  async removeFile(path: string): Promise<void> {
    const checked = await this.#writable("removeFile", path);
    await this.#refuseMountPoint("removeFile", checked);
    await files.unlinkFile(checked);
    await hostStep("removeFile", path, () => devices.forgetDetached(checked));
  }

  async removeDirectory(path: string): Promise<void> {
    const checked = await this.#writable("removeDirectory", path);
    await this.#refuseMountPoint("removeDirectory", checked);
    await hostStep("removeDirectory", path, async () => {
      await mounts.healMountPoint(checked);
      await mounts.healDirectory(checked);
    });
    await files.removeEmptyDirectory(checked);
  }

  async removeTree(path: string): Promise<void> {
    const checked = await this.#writable("removeTree", path);
    if ((await this.listMounts(checked)).length > 0) throw new HostError("removeTree", path, "EBUSY");
    await hostStep("removeTree", path, () => fs.rm(checked, { recursive: true, force: true }));
  }

  async rename(from: string, to: string): Promise<void> {
    const source = await this.#writable("rename", from);
    const target = await this.#writable("rename", to);
    await this.#refuseMountPoint("rename", source);
    await this.#refuseMountPoint("rename", target);
    await files.renamePath(source, target);
  }

  async symlink(target: string, path: string): Promise<void> {
    await files.makeLink(target, await this.#writable("symlink", path));
  }

  async readLink(path: string): Promise<string | undefined> {
    const checked = checkedPath("readLink", path);
    return (await this.#isStandIn("readLink", checked)) ? undefined : files.linkTarget(checked);
  }

  async chownTree(path: string, gid: number, options: ChownOptions = {}): Promise<void> {
    const checked = checkedPath("chownTree", path);
    // Only a link that stands in for a mount is followed.
    const isMount = await this.#isStandIn("chownTree", checked);
    const real = isMount ? await hostStep("chownTree", path, () => fs.realpath(checked)) : checked;
    await chownTree(real, gid, options);
  }

  async relabelTree(path: string, _label: string): Promise<void> {
    checkedPath("relabelTree", path);
  }

  async watchDirectory(path: string, signal: AbortSignal): Promise<void> {
    await this.#watcher.wait(checkedPath("watchDirectory", path), signal);
  }

  async usage(path: string): Promise<FileSystemUsage> {
    return files.fileSystemUsage(checkedPath("usage", path));
  }

  async treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage> {
    const checked = checkedPath("treeUsage", path);
    const isMount = await this.#isStandIn("treeUsage", checked);
    const real = isMount ? await hostStep("treeUsage", path, () => fs.realpath(checked)) : checked;
    return treeUsage(real, signal);
  }

  async mountDevice(
    device: string,
    target: string,
    options: { readonly fsType: string; readonly flags?: readonly string[]; readonly readOnly?: boolean },
  ): Promise<void> {
    const checked = checkedPath("mountDevice", device);
    checkedPath("mountDevice", target);
    await hostStep("mountDevice", target, async () => {
      const source = await fs.realpath(checked);
      const fsType = await devices.fileSystemType("mountDevice", source);
      if (fsType === undefined || (options.fsType !== "" && options.fsType !== fsType)) {
        throw new HostError("mountDevice", target, "EINVAL");
      }
      const link = devices.filesOf(source);
      if ((await isDirectory(target)) !== true) throw new HostError("mountDevice", target, "ENOTDIR");
      const readOnly = options.readOnly === true || options.flags?.includes("ro") === true;
      await this.#mount("mountDevice", target, { source, fsType, readOnly, link });
    });
  }

  async mountMemory(target: string): Promise<boolean> {
    checkedPath("mountMemory", target);
    return false;
  }

  async bindMount(
    source: string,
    target: string,
    options: { readonly readOnly?: boolean } = {},
  ): Promise<void> {
    const from = checkedPath("bindMount", source);
    checkedPath("bindMount", target);
    await hostStep("bindMount", target, async () => {
      const real = await fs.realpath(from);
      // As in the kernel, a bind mount of a read-only mount is read-only.
      const inherited = await mounts.mountAbove(from);
      const readOnly = options.readOnly === true || inherited?.readOnly === true;
      const device = await devices.deviceHolding(real);
      const fsType = (device && (await devices.fileSystemType("bindMount", device))) ?? "bind";
      const isWhole = device !== undefined && real === devices.filesOf(device);
      const toFile = (await fs.stat(target)).isFile();
      const isDevice = toFile && (await devices.isDeviceDirectory(real));
      if (!isDevice && (await fs.stat(real)).isFile() !== toFile) {
        throw new HostError("bindMount", target, "ENOTDIR");
      }
      // A device bound to a file is a raw block volume: what can be written there is the backing file.
      const link = isDevice ? (devices.backingFileOf(real) ?? real) : real;
      await this.#mount("bindMount", target, { source: isWhole ? device : real, fsType, readOnly, link });
    });
  }

  async bindSubPath(root: string, subPath: string, target: string): Promise<void> {
    const below = checkedPath("bindSubPath", root);
    const to = checkedPath("bindSubPath", target);
    const names = namesOfSubPath(subPath);
    await hostStep("bindSubPath", target, async () => {
      const { handle, path } = await openBelow(below, names);
      try {
        const stat = await handle.stat({ bigint: true });
        const kind = stat.isDirectory() ? "directory" : "file";
        if (await makeSubPathTarget(this, to, { inode: `${stat.dev}:${stat.ino}`, kind })) return;
        await this.bindMount(path, to);
      } finally {
        await handle.close();
      }
    });
  }

  async unmount(target: string): Promise<void> {
    const checked = checkedPath("unmount", target);
    await hostStep("unmount", target, async () => {
      const canonical = await mounts.canonicalMountPoint(checked);
      await this.#lock.run(canonical, () => mounts.removeTopMount(canonical));
    });
  }

  async isMountPoint(path: string): Promise<boolean> {
    const checked = checkedPath("isMountPoint", path);
    return hostStep("isMountPoint", path, async () => {
      try {
        return (await mounts.mountsOn(await mounts.canonicalMountPoint(checked))).length > 0;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    });
  }

  async listMounts(prefix: string): Promise<readonly Mount[]> {
    const checked = checkedPath("listMounts", prefix);
    return hostStep("listMounts", prefix, async () => {
      try {
        const canonical = await mounts.canonicalMountPoint(checked);
        return await mounts.mountsBelow(canonical, devices.isDeviceDirectory);
      } catch (error) {
        if (isMissing(error)) return [];
        throw error;
      }
    });
  }

  async attachLoop(backingFile: string): Promise<string> {
    const checked = checkedPath("attachLoop", backingFile);
    return hostStep("attachLoop", backingFile, async () => {
      const real = await fs.realpath(checked);
      return this.#lock.run(real, () => devices.attachDevice(real));
    });
  }

  async detachLoop(backingFile: string): Promise<void> {
    const checked = checkedPath("detachLoop", backingFile);
    await hostStep("detachLoop", backingFile, async () => {
      const real = await realOr(checked);
      await this.#lock.run(real, () => devices.detachDevice(real));
    });
  }

  async copyDisks(copies: readonly DiskCopy[]): Promise<void> {
    for (const { source, target } of copies) {
      const from = checkedPath("copyDisks", source);
      const to = checkedPath("copyDisks", target);
      await hostStep("copyDisks", source, async () => {
        // The contents first: the backing file makes the copy count as a disk.
        await devices.copyContents(await fs.realpath(from), to);
        await files.copySparse("copyDisks", from, to);
      });
    }
  }

  async diskBlocks(backingFile: string, query: DiskBlocksQuery): Promise<DiskBlocks> {
    const image = async (path: string) => {
      const checked = checkedPath("diskBlocks", path);
      return hostStep("diskBlocks", path, async () => {
        const real = await fs.realpath(checked);
        return devices.imageOf(real, query.blockBytes);
      });
    };
    const own = await image(backingFile);
    const base = query.base === undefined ? undefined : await image(query.base);
    // Without a file system what programs wrote to the device is in the backing file itself.
    if (own.length === 0 && (base ?? []).length === 0) {
      const baseFile = query.base === undefined ? {} : { base: checkedPath("diskBlocks", query.base) };
      return blocksOfFile(checkedPath("diskBlocks", backingFile), { ...query, ...baseFile });
    }
    const stat = await files.statFile("diskBlocks", checkedPath("diskBlocks", backingFile));
    return blocksOfImage(own, base, stat?.sizeBytes ?? 0, query);
  }

  async writeDevice(device: string, text: string): Promise<void> {
    const checked = checkedPath("writeDevice", device);
    await hostStep("writeDevice", device, async () => {
      const real = await fs.realpath(checked);
      const backing = devices.backingFileOf(real) ?? real;
      // A device that is bound to a file is a link to its backing file (`bindMount`).
      if (!(await devices.isAttached(backing))) throw new HostError("writeDevice", device, "ENOTBLK");
      if ((await mounts.mountAbove(checked))?.readOnly === true)
        throw new HostError("writeDevice", device, "EROFS");
      await writeInPlace(backing, text, true);
    });
  }

  async setDeviceReadOnly(device: string, _readOnly: boolean): Promise<void> {
    const checked = checkedPath("setDeviceReadOnly", device);
    await hostStep("setDeviceReadOnly", device, () => fs.stat(checked));
  }

  async isDeviceHeld(device: string): Promise<boolean> {
    checkedPath("isDeviceHeld", device);
    return false;
  }

  async findLoop(backingFile: string): Promise<string | undefined> {
    const checked = checkedPath("findLoop", backingFile);
    return hostStep("findLoop", backingFile, async () => {
      const real = await realOr(checked);
      return (await devices.isAttached(real)) ? devices.deviceOf(real) : undefined;
    });
  }

  async fileSystemOf(device: string): Promise<string | undefined> {
    const checked = checkedPath("fileSystemOf", device);
    return hostStep("fileSystemOf", device, async () =>
      devices.fileSystemType("fileSystemOf", await fs.realpath(checked)),
    );
  }

  async checkFileSystem(device: string): Promise<boolean> {
    await this.fileSystemOf(device);
    return false; // Its files lie in the machine's own file system.
  }

  async format(device: string, fsType: string): Promise<void> {
    const checked = checkedPath("format", device);
    if (!fileSystemTypes.has(fsType)) throw new HostError("format", device, "ENODEV");
    await hostStep("format", device, async () => {
      const source = await fs.realpath(checked);
      if ((await devices.fileSystemType("format", source)) !== undefined) {
        throw new HostError("format", device, "EEXIST");
      }
      await devices.makeFileSystem(source, fsType);
    });
  }

  async growFileSystem(device: string, mountPath: string): Promise<void> {
    const checked = checkedPath("growFileSystem", device);
    const mounted = checkedPath("growFileSystem", mountPath);
    await hostStep("growFileSystem", device, async () => {
      const source = await fs.realpath(checked);
      const fsType = await devices.fileSystemType("growFileSystem", source);
      const real = await fs.realpath(mounted);
      if (fsType === undefined || !isAtOrBelow(real, devices.filesOf(source))) {
        throw new HostError("growFileSystem", device, "EINVAL");
      }
    });
  }

  async growUnmounted(device: string): Promise<void> {
    const checked = checkedPath("growUnmounted", device);
    await hostStep("growUnmounted", device, async () => {
      if ((await devices.fileSystemType("growUnmounted", await fs.realpath(checked))) === undefined) {
        throw new HostError("growUnmounted", device, "EINVAL");
      }
    });
  }

  async runProgram(program: string, options: ProgramOptions) {
    return runProgram(program, options);
  }

  async #mount(operation: string, target: string, mount: Omit<mounts.StandInMount, "order">): Promise<void> {
    const canonical = await mounts.canonicalMountPoint(target);
    await this.#lock.run(canonical, async () => {
      const top = (await mounts.mountsOn(canonical)).at(-1);
      // As the kernel does: the same device twice on one mount point is EBUSY.
      if (operation === "mountDevice" && top?.link === mount.link) {
        throw new HostError(operation, target, "EBUSY");
      }
      const device = await devices.deviceHolding(mount.link);
      if (device !== undefined) await devices.addUser(device, canonical);
      await mounts.addMount(canonical, { ...mount, order: process.hrtime.bigint().toString() });
    });
  }

  /** The checked path. @throws HostError with EROFS when it lies in a mount that is read-only */
  async #writable(operation: string, path: string): Promise<string> {
    const checked = checkedPath(operation, path);
    const parent = checked.slice(0, checked.lastIndexOf("/")) || "/";
    const above = await hostStep(operation, path, () => mounts.mountAbove(parent));
    if (above?.readOnly === true) throw new HostError(operation, path, "EROFS");
    return checked;
  }

  async #refuseMountPoint(operation: string, path: string): Promise<void> {
    if (await this.#isStandIn(operation, path)) throw new HostError(operation, path, "EBUSY");
  }

  #isStandIn(operation: string, path: string): Promise<boolean> {
    return hostStep(operation, path, () => mounts.isStandIn(path));
  }
}

/** A machine without the right to mount. */
export function unprivilegedHost(): Host {
  return new UnprivilegedHost();
}

async function isDirectory(path: string): Promise<boolean> {
  return (await fs.stat(path)).isDirectory();
}

async function realOr(path: string): Promise<string> {
  return fs.realpath(path).catch(() => path);
}
