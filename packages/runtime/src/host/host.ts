/**
 * The seam through which a component touches its machine: files, directories, mounts, block
 * devices, file systems and programs. Forms: `KernelHost` (mount, losetup, mkfs through execFile),
 * `UnprivilegedHost` (directories and links instead of mounts and devices) and `SimulatedHost`
 * (tables in memory, can lose power at any write). Not to be mixed up with VolumeHost, the
 * interface that volume plugins are given.
 *
 * All paths are absolute and normalised; a relative path or one with `..` is refused.
 */

/** What a path is. Links are not followed. */
export type FileKind = "file" | "directory" | "symlink" | "socket" | "blockDevice" | "charDevice" | "other";

/** Facts about a path. */
export interface FileStat {
  readonly kind: FileKind;
  /** Permission bits, e.g. 0o700. */
  readonly mode: number;
  /** Number of the group that owns it. */
  readonly gid: number;
  /** Size in bytes (a file's, or a block device's capacity). */
  readonly sizeBytes: number;
  /** Identity of the file within the host; changes when the file is created again. */
  readonly inode: string;
  /** Differs after each change of what a file holds, and of the names in a directory; says nothing by itself. */
  readonly version: string;
}

/** One mounted file system or bind mount. */
export interface Mount {
  /** The device, or for a bind mount the bound path where the host knows it. */
  readonly source: string;
  readonly target: string;
  /** `ext4`, `xfs`, …, or `bind` where the host does not know. */
  readonly fsType: string;
  readonly readOnly: boolean;
}

/** How a write reaches the disk. */
export interface WriteOptions {
  /** Permission bits of a new file; default 0o600. */
  readonly mode?: number;
}

/** Room in a file system. */
export interface FileSystemUsage {
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** Files that it can hold and can still take; both 0 where the file system has no such limit. */
  readonly totalInodes: number;
  readonly availableInodes: number;
}

/** What a tree takes of its file system. */
export interface TreeUsage {
  readonly usedBytes: number;
  /** Files, directories and links. */
  readonly usedInodes: number;
}

/** One copy of a disk. */
export interface DiskCopy {
  /** The backing file to read. */
  readonly source: string;
  /** The backing file to make or to replace. */
  readonly target: string;
}

/** Which blocks of a disk are requested. */
export interface DiskBlocksQuery {
  /** Bytes of a block; the disk's last one may be shorter. */
  readonly blockBytes: number;
  /** Number of the first block that is looked at. */
  readonly from: number;
  /** Blocks that are wanted at most. */
  readonly max: number;
  /** The backing file that it is compared with; default a disk that holds nothing. */
  readonly base?: string;
}

/** Some of the blocks that were requested. */
export interface DiskBlocks {
  /** Their numbers, ascending. */
  readonly blocks: readonly number[];
  /** Where to go on; undefined when that is all. */
  readonly next: number | undefined;
}

/** How a tree is given to a group. */
export interface ChownOptions {
  /** The group may read only. */
  readonly readOnly?: boolean;
  /**
   * Nothing is done where `path` is a directory that has group and bits already. It gets them last, so everything below
   * it had them once.
   */
  readonly onlyOnRootMismatch?: boolean;
}

/** A program to run; never through a shell. */
export interface ProgramOptions {
  readonly args: readonly string[];
  /** The whole environment of the program; default empty but for PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What it reads from its standard input; nothing when left out. */
  readonly input?: string;
  readonly signal: AbortSignal;
}

/** How a program ended. */
export interface ProgramResult {
  /** Exit code, or -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A failed host operation: which, on what, and the errno-like code (ENOENT, EBUSY, ENOSPC, EPERM, …). */
export class HostError extends Error {
  override readonly name = "HostError";
  readonly operation: string;
  readonly path: string;
  readonly code: string;
  constructor(operation: string, path: string, code: string, cause?: unknown) {
    super(`${operation} ${path}: ${code}`, { cause });
    this.operation = operation;
    this.path = path;
    this.code = code;
  }
}

/** What a component may do to its machine. Every failure is a {@link HostError}. */
export interface Host {
  /** Whether this host makes real mounts and devices, stands in with links, or simulates. */
  readonly form: "kernel" | "unprivileged" | "simulated";

  // Files
  /** Facts about `path`, or undefined when there is nothing. Links are not followed. */
  stat(path: string): Promise<FileStat | undefined>;
  /** The whole file as UTF-8 text, or undefined when it does not exist. */
  readFile(path: string): Promise<string | undefined>;
  /**
   * Replaces the file: writes a temporary file in the same directory, syncs and renames it, syncs the directory. Atomic
   * and durable. (Simulated: bytes are kept as UTF-8 text.)
   */
  writeFileAtomic(path: string, data: string | Uint8Array, options?: WriteOptions): Promise<void>;
  /** Appends and syncs before it resolves; what a full disk refuses leaves the file as it was. */
  appendFileDurable(path: string, data: string): Promise<void>;
  /** Creates the file if it does not exist, and sets its size (sparse). */
  truncateFile(path: string, sizeBytes: number): Promise<void>;
  /**
   * Creates the file if it does not exist, grows it to at least this size, and allocates disk space for all of it, so
   * that no later write into it fails with ENOSPC; durable. ENOSPC when the disk has too little space; the file is then
   * unchanged. (Unprivileged: allocates no space; a later write may fail with ENOSPC.)
   */
  allocateFile(path: string, sizeBytes: number): Promise<void>;
  /** Makes the directory and its missing parents (mode of each new one, whatever the umask; default 0o700: ours alone). */
  makeDirectory(path: string, mode?: number): Promise<void>;
  /** Names in the directory, sorted; undefined when it does not exist. */
  readDirectory(path: string): Promise<readonly string[] | undefined>;
  /** Removes a file, link or socket; a missing one is fine. */
  removeFile(path: string): Promise<void>;
  /** Removes an empty directory; a missing one is fine; ENOTEMPTY when it holds anything. */
  removeDirectory(path: string): Promise<void>;
  /** Removes a tree but never crosses into a mount: EBUSY when one is below it. */
  removeTree(path: string): Promise<void>;
  /** Renames, over a file or an empty directory at `to`; ENOTEMPTY over another, EBUSY for a mount point. */
  rename(from: string, to: string): Promise<void>;
  /** Makes a link; its target may be relative and need not exist. EEXIST when anything is at `path`. */
  symlink(target: string, path: string): Promise<void>;
  /** The target of a link as it was given; undefined when no link is at `path`. */
  readLink(path: string): Promise<string | undefined>;
  /**
   * Changes the group of everything below `path`, then of `path` itself: owner group `gid`, permission bits or-ed with
   * 0o660 (0o440 when `readOnly`), directories also with set-gid and 0o110. Links are skipped, ELOOP when `path` is
   * one; an entry that refuses is skipped too. A host without the right to do so does nothing.
   * Source: docs/behaviour/volume-plugins.md 6.
   */
  chownTree(path: string, gid: number, options?: ChownOptions): Promise<void>;
  /**
   * Gives `path` and everything below it this SELinux label, `user:role:type:level`. Links are labelled, not followed. A
   * machine without SELinux, and a file system that takes no labels or no writes, does nothing; an entry that refuses is
   * skipped. (Unprivileged: does nothing.)
   */
  relabelTree(path: string, label: string): Promise<void>;
  /** Resolves when something in the directory may have changed (a hint), or rejects when `signal` aborts. */
  watchDirectory(path: string, signal: AbortSignal): Promise<void>;
  /** Room in the file system that holds `path`. */
  usage(path: string): Promise<FileSystemUsage>;
  /**
   * What the tree at `path` takes: each inode once, other file systems below it not. Takes time in proportion to the number of
   * its files; rejects when `signal` aborts. What changes meanwhile may be counted or not. Source: du(1), `-x`.
   */
  treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage>;

  // Mounts
  /** Mounts a device (or, unprivileged, its stand-in directory) on an existing directory. */
  mountDevice(
    device: string,
    target: string,
    options: { readonly fsType: string; readonly flags?: readonly string[]; readonly readOnly?: boolean },
  ): Promise<void>;
  /**
   * Mounts an empty file system in memory on an existing directory; it is gone with its unmount, and when the machine stops.
   * `sizeBytes`: most that it can hold; default what the machine permits. @returns false: this host has none, and nothing
   * was mounted (unprivileged)
   */
  mountMemory(
    target: string,
    options: { readonly mode: number; readonly sizeBytes?: number },
  ): Promise<boolean>;
  /** Binds an existing path to an existing path of the same kind (directory, or file for a device). */
  bindMount(source: string, target: string, options?: { readonly readOnly?: boolean }): Promise<void>;
  /**
   * Binds what is at `subPath` below the directory `root` to `target`, which is made, with its parents, as a directory or file of the same kind.
   * What is missing at `subPath` is made as directories with the mode of `root`. Links are followed as long as they stay below `root`:
   * EXDEV for one that leads out of it. What a workload does meanwhile changes nothing: ELOOP for a link that was none before.
   * Fine when it is bound there already; another mount on `target` is replaced. EINVAL for an absolute `subPath` or one with `..`.
   * Source: docs/behaviour/pod-volumes.md 9. (Unprivileged: what it is bound to is a link to it.)
   */
  bindSubPath(root: string, subPath: string, target: string): Promise<void>;
  /** Unmounts the topmost mount on `target`; EINVAL when nothing is mounted there. */
  unmount(target: string): Promise<void>;
  /** Whether something is mounted at `path`, or where a link at `path` leads; false when nothing is there. */
  isMountPoint(path: string): Promise<boolean>;
  /** Mounts at or below `prefix`, in mount order. */
  listMounts(prefix: string): Promise<readonly Mount[]>;

  // Block devices (unprivileged: the "device" of a backing file is a directory next to it)
  /**
   * Attaches a loop device to the backing file, or finds the one it has (and updates its size to that of the file).
   * Returns the device's path.
   */
  attachLoop(backingFile: string): Promise<string>;
  /** Detaches the backing file's loop device; fine when there is none; EBUSY while it is in use. */
  detachLoop(backingFile: string): Promise<void>;
  /**
   * Copies backing files with all that is on their disks, as of one instant: what programs write meanwhile waits.
   * Sparse parts stay sparse, and no blocks are shared. Each target is whole or not there, and durable. EAGAIN when a disk that is not mounted was written to all the time; ENOENT when a source is missing.
   * A crash may leave a mounted file system waiting: the same call, made again, ends that.
   * (Unprivileged: not of one instant while programs write.)
   */
  copyDisks(copies: readonly DiskCopy[]): Promise<void>;
  /**
   * The blocks of a backing file's disk that differ from those of another, or hold anything but zeros; a few may be
   * among them that do not. The disks must not be written to meanwhile. ENOENT when a file is missing. (Unprivileged
   * and simulated: the blocks in which the disk's files would lie one after the other.)
   */
  diskBlocks(backingFile: string, query: DiskBlocksQuery): Promise<DiskBlocks>;
  /**
   * Writes text at the beginning of a block device, or of what a device is bound to, and syncs: what the user of a raw block volume does.
   * ENOTBLK for what is no device. (Unprivileged: into the backing file. Simulated: in place of all that was there.)
   */
  writeDevice(device: string, text: string): Promise<void>;
  /** Makes the device refuse writes, or take them again. (Unprivileged: does nothing.) */
  setDeviceReadOnly(device: string, readOnly: boolean): Promise<void>;
  /**
   * Whether something has the block device for itself that the mount table does not show, such as a file system that is still
   * mounted in another mount namespace. False for what is no device. (Unprivileged: false.) Source: upstream
   * pkg/volume/util/hostutil, DeviceOpened; open(2), O_EXCL.
   */
  isDeviceHeld(device: string): Promise<boolean>;
  /** Device of the backing file, if any. */
  findLoop(backingFile: string): Promise<string | undefined>;
  /** The file system on the device: `ext4`, `xfs`, …; undefined when it has none. */
  fileSystemOf(device: string): Promise<string | undefined>;
  /**
   * Checks the file system on a device before it is mounted read-write, and corrects what is safe to correct. Returns
   * true when it corrected something. EUCLEAN when errors are left. One that is mounted, or has none, is left as it is.
   * Source: upstream SafeFormatAndMount (`fsck -a`), e2fsck(8).
   */
  checkFileSystem(device: string): Promise<boolean>;
  /** Makes a file system. Refuses (EEXIST) when the device already has one. */
  format(device: string, fsType: string): Promise<void>;
  /**
   * Grows the file system on the device, mounted at `mountPath`, to the device's size. EPERM where the kernel grows
   * ext4 only unmounted: without CAP_SYS_RESOURCE.
   */
  growFileSystem(device: string, mountPath: string): Promise<void>;
  /** Checks and grows the file system on a device that is mounted nowhere; does nothing for one that grows only mounted (xfs, btrfs). */
  growUnmounted(device: string): Promise<void>;

  // Programs
  /** Runs a program to its end; rejects when `signal` aborts (after killing it) or it cannot be started. */
  runProgram(program: string, options: ProgramOptions): Promise<ProgramResult>;
}
