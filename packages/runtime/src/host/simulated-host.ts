/**
 * The simulated form of the {@link Host} seam: files, links, mounts, devices and file systems as
 * tables in memory. Deterministic, no I/O, promises only, so that it runs under a virtual clock.
 *
 * Invariants
 *  - An operation happens at once or not at all, before its promise resolves.
 *  - A disk's files live with the disk: every host of one {@link SimulatedDisks} that mounts it sees them.
 *  - After {@link SimulatedHost.losePower} only what was made durable is left; mounts are gone.
 */
import type { Random } from "../random.ts";
import { directoryBits, groupBits, isGivenToGroup } from "./group-ownership.ts";
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
  type ProgramResult,
  type TreeUsage,
  type WriteOptions,
} from "./host.ts";
import { checkedPath, childOf, enforceFile, isAtOrBelow } from "./host-paths.ts";
import { SimulatedDisks, type SimulatedLoop } from "./simulated-disks.ts";
import { type DirectoryNode, type FileNode, SimulatedFileSystem } from "./simulated-file-system.ts";
import { type Place, type SimulatedMount, SimulatedMounts, type Slot } from "./simulated-mounts.ts";
import { makeSubPathTarget, namesOfSubPath } from "./sub-path-target.ts";
import { blocksOfImage, type TreeEntry, treeImage } from "./tree-image.ts";

/** What a simulated host is like. */
export interface SimulatedHostOptions {
  /** Names the host in violations; default `host`. */
  readonly name?: string;
  /** Devices shared with other hosts; default its own. */
  readonly disks?: SimulatedDisks;
  /** Where {@link SimulatedDisks.shares} is mounted, an absolute path; default nowhere. */
  readonly sharesDir?: string;
  /** Capacity of the root file system in bytes; default 1 TiB. */
  readonly capacityBytes?: number;
  /** Programs that can be run, by path or name; any other is ENOENT. */
  readonly programs?: Readonly<Record<string, (options: ProgramOptions) => Promise<ProgramResult>>>;
  /**
   * Called before each changing operation. It may throw a HostError (that is the operation's
   * outcome) or lose power (the operation then never happens and never settles).
   */
  readonly beforeChange?: (operation: string, path: string) => void;
}

const maximumTextBytes = 2 ** 28;
/** What ext4 reserves room for by default. Source: mke2fs.conf(5), inode_ratio. */
const bytesPerInode = 16_384;
const fileSystemTypes: ReadonlySet<string> = new Set(["ext4", "ext3", "xfs", "btrfs"]);

/** Places of which the list of mounts is remembered. */
const listedMax = 100;

interface Listed {
  readonly mounts: SimulatedMounts;
  readonly version: number;
  readonly list: readonly Mount[];
}

/** A machine in memory. */
export class SimulatedHost implements Host {
  readonly form = "simulated";
  readonly name: string;
  readonly disks: SimulatedDisks;
  /** Paths of devices that something has for itself, unseen by the mount table. */
  readonly heldDevices = new Set<string>();
  readonly #options: SimulatedHostOptions;
  readonly #rootFileSystem: SimulatedFileSystem;
  #mounts: SimulatedMounts;
  #boots = 1;
  #memories = 0;
  /** The version of each directory when it was last read, so that no change falls between two looks. */
  readonly #seen = new WeakMap<DirectoryNode, number>();
  /** Mounts as they were listed last, by where. */
  readonly #listed = new Map<string, Listed>();

  constructor(options: SimulatedHostOptions = {}) {
    this.#options = options;
    this.name = options.name ?? "host";
    this.disks = options.disks ?? new SimulatedDisks();
    this.#rootFileSystem = new SimulatedFileSystem(this.name, "ext4", options.capacityBytes ?? 2 ** 40);
    for (const directory of ["/dev", "/tmp"]) this.#bootDirectory(directory);
    this.#rootFileSystem.commit();
    this.#mounts = this.#bootMounts();
  }

  /** How often the machine was started; goes up with each loss of power and each reboot. */
  get boots(): number {
    return this.#boots;
  }

  /**
   * The machine stops at once and comes back: mounts and its loop devices are gone, and of each file
   * system that it had mounted, changes that no durable write followed are undone. Work in progress on
   * it must be dropped by the caller. @param luck draws how many of those changes reached the disk all
   * the same (a prefix of them); default none
   */
  losePower(luck?: Random): void {
    this.#boot((fileSystem) =>
      fileSystem.losePower(luck?.below(fileSystem.uncommitted + 1, `changes kept on ${fileSystem.id}`)),
    );
  }

  /**
   * The machine shuts down in order and starts again: mounts and its loop devices are gone as after a loss of power, but every change
   * of a file system is on its disk. What runs on the machine must have been ended by the caller.
   */
  reboot(): void {
    this.#boot((fileSystem) => fileSystem.commit());
  }

  /** Puts the name of a unix socket into a directory, as a server that listens does. */
  placeSocket(path: string): void {
    const slot = this.#writableSlot("bind", path);
    if (slot.node !== undefined) throw new HostError("bind", path, "EADDRINUSE");
    const { fileSystem } = slot.mount;
    fileSystem.setEntry(slot.directory, slot.name, fileSystem.newSocket(0o600));
  }

  async stat(path: string): Promise<FileStat | undefined> {
    const place = this.#find("stat", path, false);
    if (place === undefined) return undefined;
    const { kind, mode, inode } = place.node;
    const version = "version" in place.node ? `${place.node.version}` : "0";
    const gid = "gid" in place.node ? place.node.gid : 0;
    return { kind, mode, gid, inode, version, sizeBytes: this.#sizeOf(place) };
  }

  async readFile(path: string): Promise<string | undefined> {
    const node = this.#find("readFile", path, true)?.node;
    if (node === undefined) return undefined;
    if (node.kind === "directory") throw new HostError("readFile", path, "EISDIR");
    if (node.kind !== "file") throw new HostError("readFile", path, "EINVAL");
    if (node.sizeBytes > maximumTextBytes) throw new HostError("readFile", path, "EFBIG");
    return node.data + "\0".repeat(node.sizeBytes - node.dataBytes);
  }

  async writeFileAtomic(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<void> {
    if (this.#lostBefore("writeFileAtomic", path)) return never();
    const slot = this.#writableSlot("writeFileAtomic", path);
    if (slot.node?.kind === "directory") throw new HostError("writeFileAtomic", path, "EISDIR");
    this.#refuseMountPoint("writeFileAtomic", slot);
    const { fileSystem } = slot.mount;
    const file = fileSystem.newFile(options.mode ?? 0o600);
    fileSystem.setData(path, file, typeof data === "string" ? data : Buffer.from(data).toString("utf8"));
    if (slot.node !== undefined) fileSystem.release(slot.node);
    fileSystem.setEntry(slot.directory, slot.name, file);
    fileSystem.commit();
  }

  async appendFileDurable(path: string, data: string): Promise<void> {
    if (this.#lostBefore("appendFileDurable", path)) return never();
    const { mount, file } = this.#openFile("appendFileDurable", path);
    mount.fileSystem.appendData(path, file, data);
    mount.fileSystem.commit();
  }

  async truncateFile(path: string, sizeBytes: number): Promise<void> {
    if (this.#lostBefore("truncateFile", path)) return never();
    const { mount, file } = this.#openFile("truncateFile", path);
    const data = sizeBytes >= file.dataBytes ? file.data : cut(file.data, sizeBytes);
    mount.fileSystem.setData(path, file, data, sizeBytes);
  }

  async allocateFile(path: string, sizeBytes: number): Promise<void> {
    if (this.#lostBefore("allocateFile", path)) return never();
    const isNew = this.#find("allocateFile", path, true) === undefined;
    const { mount, file } = this.#openFile("allocateFile", path);
    try {
      mount.fileSystem.allocate(path, file, sizeBytes);
    } catch (error) {
      if (isNew) this.#unlink(this.#writableSlot("allocateFile", path));
      throw error;
    }
    mount.fileSystem.commit();
  }

  async makeDirectory(path: string, mode = 0o700): Promise<void> {
    if (this.#lostBefore("makeDirectory", path)) return never();
    this.#makeDirectory(checkedPath("makeDirectory", path), mode);
  }

  async readDirectory(path: string): Promise<readonly string[] | undefined> {
    const node = this.#find("readDirectory", path, true)?.node;
    if (node === undefined) return undefined;
    if (node.kind !== "directory") throw new HostError("readDirectory", path, "ENOTDIR");
    this.#seen.set(node, node.version);
    return [...node.entries.keys()].sort();
  }

  async removeFile(path: string): Promise<void> {
    if (this.#lostBefore("removeFile", path)) return never();
    if (this.#find("removeFile", path, false) === undefined) return;
    const slot = this.#writableSlot("removeFile", path);
    this.#refuseMountPoint("removeFile", slot);
    if (slot.node?.kind === "directory") throw new HostError("removeFile", path, "EISDIR");
    this.#unlink(slot);
  }

  async removeDirectory(path: string): Promise<void> {
    if (this.#lostBefore("removeDirectory", path)) return never();
    if (this.#find("removeDirectory", path, false) === undefined) return;
    const slot = this.#writableSlot("removeDirectory", path);
    this.#refuseMountPoint("removeDirectory", slot);
    if (slot.node?.kind !== "directory") throw new HostError("removeDirectory", path, "ENOTDIR");
    if (slot.node.entries.size > 0) throw new HostError("removeDirectory", path, "ENOTEMPTY");
    this.#unlink(slot);
  }

  async removeTree(path: string): Promise<void> {
    if (this.#lostBefore("removeTree", path)) return never();
    const place = this.#find("removeTree", path, false);
    if (place === undefined) return;
    const mounted = this.#mounts.list.some((m) => isAtOrBelow(m.target, place.path));
    if (mounted) throw new HostError("removeTree", path, "EBUSY");
    this.#unlink(this.#writableSlot("removeTree", path));
  }

  async rename(from: string, to: string): Promise<void> {
    if (this.#lostBefore("rename", from)) return never();
    const source = this.#writableSlot("rename", from);
    const target = this.#writableSlot("rename", to);
    if (source.node === undefined) throw new HostError("rename", from, "ENOENT");
    if (source.mount.fileSystem !== target.mount.fileSystem) throw new HostError("rename", from, "EXDEV");
    this.#refuseMountPoint("rename", source);
    this.#refuseMountPoint("rename", target);
    if (source.node === target.node) return;
    if (isAtOrBelow(target.path, source.path)) throw new HostError("rename", from, "EINVAL");
    if (target.node !== undefined) {
      const directories = [source.node.kind === "directory", target.node.kind === "directory"];
      if (directories[0] === true && directories[1] === false) throw new HostError("rename", to, "ENOTDIR");
      if (directories[0] === false && directories[1] === true) throw new HostError("rename", to, "EISDIR");
      if (target.node.kind === "directory" && target.node.entries.size > 0) {
        throw new HostError("rename", to, "ENOTEMPTY");
      }
      this.#unlink(target);
    }
    const { fileSystem } = source.mount;
    fileSystem.setEntry(source.directory, source.name, undefined);
    fileSystem.setEntry(target.directory, target.name, source.node);
  }

  async symlink(target: string, path: string): Promise<void> {
    if (this.#lostBefore("symlink", path)) return never();
    if (target === "" || target.includes("\0")) throw new HostError("symlink", path, "EINVAL");
    const slot = this.#writableSlot("symlink", path);
    if (slot.node !== undefined) throw new HostError("symlink", path, "EEXIST");
    const { fileSystem } = slot.mount;
    fileSystem.setEntry(slot.directory, slot.name, fileSystem.newLink(target));
  }

  async readLink(path: string): Promise<string | undefined> {
    const node = this.#find("readLink", path, false)?.node;
    return node?.kind === "symlink" ? node.target : undefined;
  }

  async chownTree(path: string, gid: number, options: ChownOptions = {}): Promise<void> {
    if (this.#lostBefore("chownTree", path)) return never();
    const place = this.#find("chownTree", path, false);
    if (place === undefined) throw new HostError("chownTree", path, "ENOENT");
    if (place.node.kind === "symlink") throw new HostError("chownTree", path, "ELOOP");
    if (place.mount.readOnly) return;
    const bits = groupBits(options);
    if (options.onlyOnRootMismatch === true && place.node.kind === "directory") {
      if (isGivenToGroup({ isDirectory: true, mode: place.node.mode, gid: place.node.gid }, gid, bits))
        return;
    }
    chownNode(place.mount.fileSystem, place.node, gid, bits);
  }

  async relabelTree(path: string, label: string): Promise<void> {
    if (this.#lostBefore("relabelTree", path)) return never();
    const hasSELinux = this.#find("relabelTree", enforceFile, false) !== undefined;
    if (!hasSELinux) return;
    const place = this.#find("relabelTree", path, false);
    if (place === undefined) throw new HostError("relabelTree", path, "ENOENT");
    if (!place.mount.readOnly) relabelNode(place.mount.fileSystem, place.node, label);
  }

  /** The SELinux label that a file or directory was given; undefined: that with which it was made. */
  labelOf(path: string): string | undefined {
    const node = this.#find("labelOf", path, false)?.node;
    return node !== undefined && "label" in node ? node.label : undefined;
  }

  watchDirectory(path: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const node = this.#find("watchDirectory", path, true)?.node;
      if (node === undefined) throw new HostError("watchDirectory", path, "ENOENT");
      if (node.kind !== "directory") throw new HostError("watchDirectory", path, "ENOTDIR");
      if (node.version !== (this.#seen.get(node) ?? node.version)) {
        this.#seen.set(node, node.version);
        resolve();
        return;
      }
      const onAbort = () => {
        node.watchers.delete(wake);
        reject(signal.reason);
      };
      const wake = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      node.watchers.add(wake);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  async treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage> {
    signal.throwIfAborted();
    const place = this.#find("treeUsage", path, false);
    if (place === undefined) throw new HostError("treeUsage", path, "ENOENT");
    const sizes = sizesBelow(place.node);
    return { usedBytes: sizes.reduce((sum, size) => sum + size, 0), usedInodes: sizes.length };
  }

  async usage(path: string): Promise<FileSystemUsage> {
    const fileSystem = this.#find("usage", path, true)?.mount.fileSystem;
    if (fileSystem === undefined) throw new HostError("usage", path, "ENOENT");
    const { sizeBytes, usedBytes } = fileSystem;
    const totalInodes = Math.floor(sizeBytes / bytesPerInode);
    return {
      totalBytes: sizeBytes,
      availableBytes: sizeBytes - usedBytes,
      totalInodes,
      availableInodes: Math.max(0, totalInodes - fileSystem.nodeCount),
    };
  }

  async mountDevice(
    device: string,
    target: string,
    options: { readonly fsType: string; readonly flags?: readonly string[]; readonly readOnly?: boolean },
  ): Promise<void> {
    if (this.#lostBefore("mountDevice", target)) return never();
    const loop = this.#loopOf("mountDevice", device);
    const at = this.#existing("mountDevice", target);
    if (at.node.kind !== "directory") throw new HostError("mountDevice", target, "ENOTDIR");
    const { fileSystem } = loop.backing.disk;
    if (fileSystem === undefined || (options.fsType !== "" && options.fsType !== fileSystem.type)) {
      throw new HostError("mountDevice", target, "EINVAL");
    }
    if (at.mount.root === at.node && at.mount.root === fileSystem.root) {
      throw new HostError("mountDevice", target, "EBUSY");
    }
    const readOnly = options.readOnly === true || options.flags?.includes("ro") === true;
    this.#mounts.add({
      parent: at.mount,
      mountPoint: at.node,
      fileSystem,
      root: fileSystem.root,
      source: loop.path,
      target: at.path,
      readOnly,
      release: this.disks.use(this.name, fileSystem, readOnly, loop.path),
    });
  }

  async mountMemory(
    target: string,
    { mode, sizeBytes = 2 ** 30 }: { readonly mode: number; readonly sizeBytes?: number },
  ): Promise<boolean> {
    if (this.#lostBefore("mountMemory", target)) return never();
    const at = this.#existing("mountMemory", target);
    if (at.node.kind !== "directory") throw new HostError("mountMemory", target, "ENOTDIR");
    const fileSystem = new SimulatedFileSystem(`${this.name}-memory-${++this.#memories}`, "tmpfs", sizeBytes);
    fileSystem.root.mode = mode;
    this.#mounts.add({
      parent: at.mount,
      mountPoint: at.node,
      fileSystem,
      root: fileSystem.root,
      source: "tmpfs",
      target: at.path,
      readOnly: false,
      release: () => {},
    });
    return true;
  }

  async bindMount(
    source: string,
    target: string,
    options: { readonly readOnly?: boolean } = {},
  ): Promise<void> {
    if (this.#lostBefore("bindMount", target)) return never();
    const from = this.#existing("bindMount", source);
    const at = this.#existing("bindMount", target);
    if ((from.node.kind === "directory") !== (at.node.kind === "directory")) {
      throw new HostError("bindMount", target, "ENOTDIR");
    }
    const { fileSystem } = from.mount;
    const readOnly = options.readOnly === true || from.mount.readOnly;
    const loop = this.disks.loops().find((l) => l.backing.disk.fileSystem === fileSystem);
    this.#mounts.add({
      parent: at.mount,
      mountPoint: at.node,
      fileSystem,
      root: from.node,
      source: from.node === fileSystem.root ? from.mount.source : from.path,
      target: at.path,
      readOnly,
      release: loop === undefined ? () => {} : this.disks.use(this.name, fileSystem, readOnly, loop.path),
    });
  }

  async bindSubPath(root: string, subPath: string, target: string): Promise<void> {
    if (this.#lostBefore("bindSubPath", target)) return never();
    const { path, node } = this.#below(this.#existing("bindSubPath", root), namesOfSubPath(subPath));
    const kind = node.kind === "directory" ? "directory" : "file";
    if (!(await makeSubPathTarget(this, target, { inode: node.inode, kind }))) {
      await this.bindMount(path, target);
    }
  }

  async unmount(target: string): Promise<void> {
    if (this.#lostBefore("unmount", target)) return never();
    const { mount, node } = this.#existing("unmount", target);
    if (node !== mount.root || mount.parent === undefined) throw new HostError("unmount", target, "EINVAL");
    if (this.#mounts.list.some((m) => m.parent === mount)) throw new HostError("unmount", target, "EBUSY");
    this.#mounts.remove(mount);
    // The kernel writes a file system back before it unmounts it.
    if (!this.#mounts.list.some((m) => m.fileSystem === mount.fileSystem)) mount.fileSystem.commit();
  }

  async isMountPoint(path: string): Promise<boolean> {
    const place = this.#find("isMountPoint", path, true);
    return place !== undefined && place.node === place.mount.root;
  }

  async listMounts(prefix: string): Promise<readonly Mount[]> {
    return this.mountsBelow(prefix);
  }

  /** Mounts at or below `prefix` at this instant, for those who watch a simulation: the same list until one changes. */
  mountsBelow(prefix: string): readonly Mount[] {
    const below = this.#find("listMounts", prefix, true)?.path ?? checkedPath("listMounts", prefix);
    const { version } = this.#mounts;
    const last = this.#listed.get(below);
    if (last?.mounts === this.#mounts && last.version === version) return last.list;
    const list = this.#mounts.list
      .filter((mount) => isAtOrBelow(mount.target, below))
      .map(({ source, target, readOnly, fileSystem }) => {
        return { source, target, readOnly, fsType: fileSystem.type };
      });
    if (last === undefined && this.#listed.size >= listedMax) this.#listed.clear();
    this.#listed.set(below, { mounts: this.#mounts, version, list });
    return list;
  }

  /** The device that a path leads to at this instant, for those who watch a simulation; undefined where there is none. */
  deviceAt(path: string): string | undefined {
    const node = this.#find("stat", path, true)?.node;
    return node?.kind === "blockDevice" ? node.path : undefined;
  }

  async attachLoop(backingFile: string): Promise<string> {
    if (this.#lostBefore("attachLoop", backingFile)) return never();
    const place = this.#existing("attachLoop", backingFile);
    if (place.node.kind !== "file") throw new HostError("attachLoop", backingFile, "EINVAL");
    return this.disks.attach(this.name, place.path, place.node).path;
  }

  async detachLoop(backingFile: string): Promise<void> {
    if (this.#lostBefore("detachLoop", backingFile)) return never();
    const loop = this.#findLoop("detachLoop", backingFile);
    if (loop !== undefined) this.disks.detach(loop);
  }

  async copyDisks(copies: readonly DiskCopy[]): Promise<void> {
    if (this.#lostBefore("copyDisks", copies[0]?.target ?? "/")) return never();
    const sources = copies.map(({ source }) => this.#existing("copyDisks", source).node);
    const slots = copies.map(({ target }) => this.#writableSlot("copyDisks", target));
    sources.forEach((source, index) => {
      const slot = slots[index];
      if (slot === undefined) return;
      if (source.kind !== "file") throw new HostError("copyDisks", slot.path, "EINVAL");
      const { fileSystem } = slot.mount;
      const file = fileSystem.newFile(0o600);
      fileSystem.setData(slot.path, file, source.data, source.sizeBytes);
      // A file system that is held still writes back what it has in memory.
      source.disk.fileSystem?.commit();
      file.disk.raw = source.disk.raw;
      const original = source.disk.fileSystem;
      if (original !== undefined) {
        file.disk.fileSystem = this.disks.newFileSystem(original.type, original.sizeBytes);
        file.disk.fileSystem.copyFrom(original);
      }
      if (slot.node !== undefined) fileSystem.release(slot.node);
      fileSystem.setEntry(slot.directory, slot.name, file);
      fileSystem.commit();
    });
  }

  async diskBlocks(backingFile: string, query: DiskBlocksQuery): Promise<DiskBlocks> {
    const file = (path: string) => {
      const { node } = this.#existing("diskBlocks", path);
      if (node.kind !== "file") throw new HostError("diskBlocks", path, "EINVAL");
      return node;
    };
    const own = file(backingFile);
    const base = query.base === undefined ? undefined : imageOf(file(query.base), query.blockBytes);
    return blocksOfImage(imageOf(own, query.blockBytes), base, own.sizeBytes, query);
  }

  async isDeviceHeld(device: string): Promise<boolean> {
    return this.heldDevices.has(checkedPath("isDeviceHeld", device));
  }

  async setDeviceReadOnly(device: string, _readOnly: boolean): Promise<void> {
    if (this.#lostBefore("setDeviceReadOnly", device)) return never();
    this.#loopOf("setDeviceReadOnly", device);
  }

  /** What a pod's program reads on the device of a block volume: the text that programs wrote there. */
  async readDevice(device: string): Promise<string> {
    return this.#loopOf("readDevice", device).backing.disk.raw;
  }

  async writeDevice(device: string, text: string): Promise<void> {
    if (this.#lostBefore("writeDevice", device)) return never();
    const { backing, sizeBytes } = this.#loopOf("writeDevice", device);
    if (Buffer.byteLength(text) > sizeBytes) throw new HostError("writeDevice", device, "ENOSPC");
    backing.disk.raw = text;
  }

  async findLoop(backingFile: string): Promise<string | undefined> {
    return this.#findLoop("findLoop", backingFile)?.path;
  }

  async fileSystemOf(device: string): Promise<string | undefined> {
    return this.#loopOf("fileSystemOf", device).backing.disk.fileSystem?.type;
  }

  async checkFileSystem(device: string): Promise<boolean> {
    if (this.#lostBefore("checkFileSystem", device)) return never();
    const loop = this.#loopOf("checkFileSystem", device);
    const { fileSystem } = loop.backing.disk;
    const isMounted = this.disks.mountedOn(loop.path).length > 0;
    if (fileSystem === undefined || isMounted || !fileSystem.type.startsWith("ext")) return false;
    if (fileSystem.errors === "uncorrectable") throw new HostError("checkFileSystem", device, "EUCLEAN");
    const wasCorrected = fileSystem.errors === "correctable";
    fileSystem.errors = "none";
    return wasCorrected;
  }

  async format(device: string, fsType: string): Promise<void> {
    if (this.#lostBefore("format", device)) return never();
    const loop = this.#loopOf("format", device);
    if (!fileSystemTypes.has(fsType)) throw new HostError("format", device, "ENODEV");
    if (loop.backing.disk.fileSystem !== undefined) throw new HostError("format", device, "EEXIST");
    loop.backing.disk.fileSystem = this.disks.newFileSystem(fsType, loop.sizeBytes);
  }

  async growFileSystem(device: string, mountPath: string): Promise<void> {
    if (this.#lostBefore("growFileSystem", device)) return never();
    const loop = this.#loopOf("growFileSystem", device);
    const { fileSystem } = loop.backing.disk;
    if (fileSystem === undefined) throw new HostError("growFileSystem", device, "EINVAL");
    if (this.#existing("growFileSystem", mountPath).mount.fileSystem !== fileSystem) {
      throw new HostError("growFileSystem", mountPath, "EINVAL");
    }
    fileSystem.sizeBytes = Math.max(fileSystem.sizeBytes, loop.sizeBytes);
  }

  async growUnmounted(device: string): Promise<void> {
    if (this.#lostBefore("growUnmounted", device)) return never();
    const loop = this.#loopOf("growUnmounted", device);
    const { fileSystem } = loop.backing.disk;
    if (fileSystem === undefined) throw new HostError("growUnmounted", device, "EINVAL");
    if (fileSystem.type.startsWith("ext")) {
      fileSystem.sizeBytes = Math.max(fileSystem.sizeBytes, loop.sizeBytes);
    }
  }

  async runProgram(program: string, options: ProgramOptions): Promise<ProgramResult> {
    options.signal.throwIfAborted();
    const run = this.#options.programs?.[program];
    if (run === undefined) throw new HostError("runProgram", program, "ENOENT");
    return run(options);
  }

  /** @param left what becomes of each file system of which this host may have changed something */
  #boot(left: (fileSystem: SimulatedFileSystem) => void): void {
    this.#boots++;
    // What is read-only here has uncommitted changes of other hosts at most.
    const changed = new Set(this.#mounts.list.filter((m) => !m.readOnly).map((m) => m.fileSystem));
    // The other hosts see their devices there; those of this host are removed below.
    changed.delete(this.disks.devices);
    // The file server goes on.
    changed.delete(this.disks.shares);
    for (const mount of this.#mounts.list) mount.release();
    this.disks.losePower(this.name);
    for (const fileSystem of changed) left(fileSystem);
    this.#mounts = this.#bootMounts();
  }

  #bootMounts(): SimulatedMounts {
    const root: SimulatedMount = {
      parent: undefined,
      mountPoint: undefined,
      fileSystem: this.#rootFileSystem,
      root: this.#rootFileSystem.root,
      source: `/dev/${this.name}`,
      target: "/",
      readOnly: false,
      release: () => {},
    };
    const mounts = new SimulatedMounts(root);
    mounts.add({
      parent: root,
      mountPoint: this.#rootFileSystem.root.entries.get("dev"),
      fileSystem: this.disks.devices,
      root: this.disks.devices.root,
      source: "devtmpfs",
      target: "/dev",
      // Links to devices are made in it, as udev makes them; it has no room for data.
      readOnly: false,
      release: () => {},
    });
    const { sharesDir } = this.#options;
    if (sharesDir !== undefined) {
      const { shares } = this.disks;
      mounts.add({
        parent: root,
        mountPoint: this.#bootDirectory(sharesDir),
        fileSystem: shares,
        root: shares.root,
        source: "file-server:/",
        target: sharesDir,
        readOnly: false,
        release: () => {},
      });
    }
    return mounts;
  }

  /** A directory of the root file system that is there whenever the machine starts. */
  #bootDirectory(path: string): DirectoryNode {
    const fileSystem = this.#rootFileSystem;
    let at = fileSystem.root;
    for (const name of path.split("/").filter((part) => part !== "")) {
      const found = at.entries.get(name);
      if (found?.kind === "directory") {
        at = found;
        continue;
      }
      const made = fileSystem.newDirectory(0o755);
      fileSystem.setEntry(at, name, made);
      at = made;
    }
    return at;
  }

  /** Lets the fault hook act; true when the machine lost power in it. */
  #lostBefore(operation: string, path: string): boolean {
    checkedPath(operation, path);
    const boots = this.#boots;
    this.#options.beforeChange?.(operation, path);
    return boots !== this.#boots;
  }

  #find(operation: string, path: string, followLast: boolean): Place | undefined {
    return this.#mounts.find(operation, checkedPath(operation, path), followLast);
  }

  #existing(operation: string, path: string): Place {
    const place = this.#find(operation, path, true);
    if (place === undefined) throw new HostError(operation, path, "ENOENT");
    return place;
  }

  #writableSlot(operation: string, path: string): Slot {
    const slot = this.#mounts.slot(operation, checkedPath(operation, path));
    if (slot.mount.readOnly) throw new HostError(operation, path, "EROFS");
    return slot;
  }

  #refuseMountPoint(operation: string, slot: Slot): void {
    if (slot.node === undefined || this.#mounts.on(slot.mount, slot.node) === undefined) return;
    throw new HostError(operation, slot.path, "EBUSY");
  }

  #unlink(slot: Slot): void {
    const { fileSystem } = slot.mount;
    if (slot.node !== undefined) fileSystem.release(slot.node);
    fileSystem.setEntry(slot.directory, slot.name, undefined);
  }

  /** The file at `path`, made when there is none. */
  #openFile(operation: string, path: string): { mount: SimulatedMount; file: FileNode } {
    const place = this.#find(operation, path, true);
    if (place === undefined) {
      const { mount, directory, name, node } = this.#writableSlot(operation, path);
      if (node !== undefined) throw new HostError(operation, path, "ENOENT"); // A link that leads nowhere.
      const file = mount.fileSystem.newFile(0o600);
      mount.fileSystem.setEntry(directory, name, file);
      return { mount, file };
    }
    if (place.mount.readOnly) throw new HostError(operation, path, "EROFS");
    if (place.node.kind === "directory") throw new HostError(operation, path, "EISDIR");
    if (place.node.kind !== "file") throw new HostError(operation, path, "EINVAL");
    return { mount: place.mount, file: place.node };
  }

  #makeDirectory(path: string, mode: number): void {
    const place = this.#mounts.find("makeDirectory", path, true);
    if (place !== undefined) {
      if (place.node.kind !== "directory") throw new HostError("makeDirectory", path, "EEXIST");
      return;
    }
    this.#makeDirectory(path.slice(0, path.lastIndexOf("/")) || "/", mode);
    const { mount, directory, name, node } = this.#writableSlot("makeDirectory", path);
    if (node !== undefined) throw new HostError("makeDirectory", path, "EEXIST");
    mount.fileSystem.setEntry(directory, name, mount.fileSystem.newDirectory(mode));
  }

  /** What is at these names below the place; missing directories are made. */
  #below(root: Place, names: readonly string[]): Place {
    let at = root;
    for (const name of names) {
      const path = childOf(at.path, name);
      if (at.node.kind !== "directory") throw new HostError("bindSubPath", path, "ENOTDIR");
      if (this.#find("bindSubPath", path, false) === undefined) this.#makeDirectory(path, root.node.mode);
      at = this.#existing("bindSubPath", path);
      if (!isAtOrBelow(at.path, root.path)) throw new HostError("bindSubPath", path, "EXDEV");
    }
    return at;
  }

  #loopOf(operation: string, device: string): SimulatedLoop {
    const node = this.#existing(operation, device).node;
    const loop = node.kind === "blockDevice" ? this.disks.byDevice(node.path) : undefined;
    if (loop === undefined) throw new HostError(operation, device, "ENOTBLK");
    return loop;
  }

  #findLoop(operation: string, backingFile: string): SimulatedLoop | undefined {
    const place = this.#find(operation, backingFile, true);
    if (place?.node.kind === "file") return this.disks.find(place.node);
    return this.disks.findByPath(this.name, checkedPath(operation, backingFile));
  }

  #sizeOf({ node }: Place): number {
    if (node.kind === "file") return node.sizeBytes;
    return node.kind === "blockDevice" ? (this.disks.byDevice(node.path)?.sizeBytes ?? 0) : 0;
  }
}

/** The first bytes of the text. */
function cut(text: string, sizeBytes: number): string {
  return Buffer.from(text, "utf8").subarray(0, sizeBytes).toString("utf8");
}

/** Children before their directory, so that an interrupted walk is seen and done again. */
function chownNode(fileSystem: SimulatedFileSystem, node: Place["node"], gid: number, bits: number): void {
  if (node.kind === "directory") {
    for (const name of [...node.entries.keys()].sort()) {
      const child = node.entries.get(name);
      if (child !== undefined) chownNode(fileSystem, child, gid, bits);
    }
    fileSystem.setGroup(node, gid);
    fileSystem.setMode(node, node.mode | bits | directoryBits);
  } else if (node.kind === "file") {
    fileSystem.setMode(node, node.mode | bits);
  }
}

function relabelNode(fileSystem: SimulatedFileSystem, node: Place["node"], label: string): void {
  if (node.kind === "directory") {
    for (const child of node.entries.values()) relabelNode(fileSystem, child, label);
  }
  if (node.kind === "directory" || node.kind === "file") fileSystem.setLabel(node, label);
}

/** Bytes that each node of the tree takes. */
function sizesBelow(node: Place["node"]): number[] {
  if (node.kind === "directory") return [0, ...[...node.entries.values()].flatMap(sizesBelow)];
  return [node.kind === "file" ? Math.max(node.dataBytes, node.allocatedBytes) : 0];
}

/** The outcome of an operation that the power loss interrupted. */
function never<T>(): Promise<T> {
  return new Promise(() => {});
}

/** What is on the backing file's disk, block by block. */
function imageOf({ disk }: FileNode, blockBytes: number): readonly string[] {
  const { fileSystem, raw } = disk;
  if (fileSystem === undefined) {
    const blocks: string[] = [];
    for (let at = 0; at < raw.length; at += blockBytes) blocks.push(raw.slice(at, at + blockBytes));
    return blocks;
  }
  const entries: TreeEntry[] = [];
  const collect = (directory: DirectoryNode, below: string) => {
    for (const [entry, node] of directory.entries) {
      const name = `${below}/${entry}`;
      const blocks: string[] = [];
      if (node.kind === "file") {
        for (let at = 0; at < node.data.length; at += blockBytes) {
          blocks.push(node.data.slice(at, at + blockBytes));
        }
      }
      const detail = node.kind === "file" ? node.sizeBytes : node.kind === "symlink" ? node.target : "";
      entries.push({ facts: `${name} ${node.kind} ${node.mode} ${detail}`, blocks });
      if (node.kind === "directory") collect(node, name);
    }
  };
  collect(fileSystem.root, "");
  return treeImage(fileSystem.type, entries);
}
