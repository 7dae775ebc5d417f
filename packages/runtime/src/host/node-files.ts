/**
 * The file half of the real hosts, on node:fs.
 *
 * Invariants
 *  - A file is replaced by renaming a synced one over it; a crash leaves the old or the new one and at
 *    most a temporary file, which is never listed and does not keep its directory from being removed.
 */
import { constants, watch } from "node:fs";
import * as fs from "node:fs/promises";
import { systemClock } from "../clock/system-clock.ts";
import type { FileKind, FileStat, FileSystemUsage } from "./host.ts";
import { HostError } from "./host.ts";
import { baseOf, childOf, parentOf } from "./host-paths.ts";
import { runTool } from "./node-programs.ts";
import { errnoOf, hostStep, isMissing } from "./to-host-error.ts";

/** Data that is not shared with the original has to be written. */
const copyTimeoutMs = 600_000;

const temporarySuffix = ".longshore-tmp";

/** A change in the directory's content may go unseen by the watch; then this wakes the watcher. */
const rescanMs = 10_000;

let temporaries = 0;

/** Whether a directory entry is one of ours that crashed writers leave behind. */
export function isTemporary(name: string): boolean {
  return name.startsWith(".") && name.endsWith(temporarySuffix);
}

/** Facts about what is at `path`, links not followed. */
export async function statFile(operation: string, path: string): Promise<FileStat | undefined> {
  return hostStep(operation, path, async () => {
    try {
      const stat = await fs.lstat(path, { bigint: true });
      return {
        kind: kindOf(stat),
        mode: Number(stat.mode & 0o7777n),
        gid: Number(stat.gid),
        sizeBytes: Number(stat.size),
        inode: `${stat.dev}:${stat.ino}`,
        // A tool may set a file's time back after it has written; a directory that is only moved keeps its version.
        version: `${stat.isFile() ? stat.ctimeNs : stat.mtimeNs}`,
      };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  });
}

function kindOf(stat: {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
  isSocket(): boolean;
  isBlockDevice(): boolean;
  isCharacterDevice(): boolean;
}): FileKind {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  if (stat.isSocket()) return "socket";
  if (stat.isBlockDevice()) return "blockDevice";
  return stat.isCharacterDevice() ? "charDevice" : "other";
}

/** The file as text; undefined when there is none. */
export function readText(path: string): Promise<string | undefined> {
  return hostStep("readFile", path, async () => {
    try {
      return await fs.readFile(path, "utf8");
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  });
}

/** Writes a new file and renames it over `path`; both are on the disk when it resolves. */
export function writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  return hostStep("writeFileAtomic", path, async () => {
    const directory = parentOf(path);
    const temporary = childOf(
      directory,
      `.${baseOf(path)}.${process.pid}-${++temporaries}${temporarySuffix}`,
    );
    try {
      // What a killed process of the same id has left goes; a link that stands here is removed and not followed.
      await fs.rm(temporary, { force: true });
      const file = await fs.open(temporary, "wx", mode);
      try {
        await file.writeFile(data);
        // The umask has taken bits from the mode of `open`.
        await file.chmod(mode);
        await file.sync();
      } finally {
        await file.close();
      }
      await fs.rename(temporary, path);
    } catch (error) {
      await fs.rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    await syncDirectory(directory);
  });
}

/** Appends to the file, made with mode 0600 when there is none; on the disk when it resolves. */
export function appendDurable(path: string, data: string): Promise<void> {
  return hostStep("appendFileDurable", path, async () => {
    const isNew = (await statFile("appendFileDurable", path)) === undefined;
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
    const file = await fs.open(path, flags, 0o600);
    const before = (await file.stat()).size;
    try {
      await file.writeFile(data).catch(async (error: unknown) => {
        await file.truncate(before); // A full disk takes a part: the next line would be a part of that.
        throw error;
      });
      await file.sync();
    } finally {
      await file.close();
    }
    if (isNew) await syncDirectory(parentOf(path));
  });
}

/** Sets the file's size, making it with mode 0600 when there is none. */
export function setFileSize(path: string, sizeBytes: number): Promise<void> {
  return hostStep("truncateFile", path, async () => {
    const file = await fs.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    try {
      await file.truncate(sizeBytes);
    } finally {
      await file.close();
    }
  });
}

/** Makes the directory and its missing parents with exactly this mode, whatever the umask. */
export async function makeDirectories(path: string, mode: number): Promise<void> {
  try {
    await fs.mkdir(path, { mode });
    await fs.chmod(path, mode);
  } catch (error) {
    if (errnoOf(error) === "ENOENT" && path !== "/") {
      await makeDirectories(parentOf(path), mode);
      return makeDirectories(path, mode);
    }
    if (errnoOf(error) === "EEXIST" && (await isDirectory(path))) return;
    throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return fs.stat(path).then(
    (stat) => stat.isDirectory(),
    () => false,
  );
}

/** The names in a directory without leftovers of crashed writers, sorted; undefined when it is not there. */
export async function listNames(path: string): Promise<string[] | undefined> {
  try {
    const names = await fs.readdir(path);
    return names.filter((name) => !isTemporary(name)).sort();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Removes a file, link or socket; a missing one is fine. */
export function unlinkFile(path: string): Promise<void> {
  return hostStep("removeFile", path, async () => {
    try {
      // unlink(2) of a directory is EISDIR on Linux and EPERM on macOS.
      if ((await statFile("removeFile", path))?.kind === "directory") {
        throw new HostError("removeFile", path, "EISDIR");
      }
      await fs.unlink(path);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  });
}

/** Removes an empty directory; one that holds only leftovers of crashed writers counts as empty. */
export function removeEmptyDirectory(path: string): Promise<void> {
  return hostStep("removeDirectory", path, async () => {
    try {
      await fs.rmdir(path);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return;
      const names = errnoOf(error) === "ENOTEMPTY" ? await fs.readdir(path) : [];
      if (names.length === 0 || !names.every(isTemporary)) throw error;
      for (const name of names) await fs.rm(childOf(path, name), { force: true });
      await fs.rmdir(path);
    }
  });
}

/** The target of a link; undefined when there is no link. */
export function linkTarget(path: string): Promise<string | undefined> {
  return hostStep("readLink", path, async () => {
    try {
      return await fs.readlink(path);
    } catch (error) {
      if (isMissing(error) || errnoOf(error) === "EINVAL") return undefined;
      throw error;
    }
  });
}

/** Renames; a directory goes only over an empty one, a file over a file. */
export function renamePath(from: string, to: string): Promise<void> {
  return hostStep("rename", from, () => fs.rename(from, to));
}

/** Makes a link. @throws HostError with EEXIST */
export function makeLink(target: string, path: string): Promise<void> {
  return hostStep("symlink", path, () => fs.symlink(target, path));
}

/** Room in the file system that holds `path`. */
export function fileSystemUsage(path: string): Promise<FileSystemUsage> {
  return hostStep("usage", path, async () => {
    const { blocks, bavail, bsize, files, ffree } = await fs.statfs(path);
    return {
      totalBytes: blocks * bsize,
      availableBytes: bavail * bsize,
      totalInodes: files,
      availableInodes: ffree,
    };
  });
}

/**
 * Copies a file; what is zeros becomes holes. No blocks are shared, since a later write to either would need room. The target is whole or
 * not there, and on the disk when it resolves. Two copies to one target at the same time are the caller's to prevent.
 */
export function copySparse(operation: string, source: string, target: string): Promise<void> {
  return hostStep(operation, source, async () => {
    if (!(await fs.stat(source)).isFile()) throw new HostError(operation, source, "EINVAL");
    const temporary = childOf(parentOf(target), `.${baseOf(target)}.copy${temporarySuffix}`);
    // Not the earlier file: a copier whose caller was killed may still be writing to that one.
    await fs.rm(temporary, { force: true });
    try {
      if (process.platform === "linux") {
        // Always: a disk that has been given all of its room has no holes to find, only blocks of zeros.
        const args = ["--reflink=never", "--sparse=always", "--", source, temporary];
        await runTool(operation, target, "cp", args, { timeoutMs: copyTimeoutMs });
      } else await fs.copyFile(source, temporary);
      const file = await fs.open(temporary, "r+");
      try {
        await file.chmod(0o600);
        await file.sync();
      } finally {
        await file.close();
      }
      await fs.rename(temporary, target);
    } catch (error) {
      await fs.rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    await syncDirectory(parentOf(target));
  });
}

/** Syncs a directory, so that the names in it are on the disk. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await fs.open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * Watches directories so that no change falls between reading and watching: a directory whose time
 * stamp is not that of its last reading counts as changed.
 */
export class DirectoryWatcher {
  readonly #seen = new Map<string, bigint>();

  /** To be called before the directory is read. */
  async willRead(path: string): Promise<void> {
    const stamp = await stampOf(path);
    if (stamp === undefined) this.#seen.delete(path);
    else this.#seen.set(path, stamp);
  }

  /** See `Host.watchDirectory`. */
  async wait(path: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const stop = new AbortController();
    const changed = await hostStep("watchDirectory", path, async () => {
      if (!(await fs.stat(path)).isDirectory()) throw new HostError("watchDirectory", path, "ENOTDIR");
      return this.#firstChange(path, AbortSignal.any([signal, stop.signal]));
    });
    // Read after the watch is armed: a change in between shows in one of the two.
    const before = this.#seen.get(path);
    const now = await stampOf(path);
    if (now !== undefined) this.#seen.set(path, now);
    if (before !== undefined && before !== now) stop.abort();
    await changed.done;
    signal.throwIfAborted();
  }

  /** Armed when it returns; `done` resolves at the first event, after {@link rescanMs} or at the abort. */
  #firstChange(path: string, signal: AbortSignal): { readonly done: Promise<void> } {
    const watcher = watch(path);
    const done = new Promise<void>((resolve) => {
      const end = () => {
        timer.cancel();
        signal.removeEventListener("abort", end);
        watcher.close();
        resolve();
      };
      const timer = systemClock.timer(rescanMs, end);
      watcher.on("change", end);
      watcher.on("error", end);
      signal.addEventListener("abort", end, { once: true });
      if (signal.aborted) end();
    });
    return { done };
  }
}

async function stampOf(path: string): Promise<bigint | undefined> {
  return fs.stat(path, { bigint: true }).then(
    // With the inode: a directory that was replaced may have the same time.
    (stat) => stat.mtimeNs + stat.ino * 1_000_000_007n,
    () => undefined,
  );
}

/** Puts a tree on the disk: every file in it, and every name. */
export async function syncTree(path: string): Promise<void> {
  const stat = await fs.lstat(path);
  if (!stat.isFile() && !stat.isDirectory()) return;
  if (stat.isDirectory()) {
    for (const name of await fs.readdir(path)) await syncTree(childOf(path, name));
  }
  const entry = await fs.open(path, constants.O_RDONLY);
  try {
    await entry.sync();
  } finally {
    await entry.close();
  }
}
