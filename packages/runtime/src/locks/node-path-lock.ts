/**
 * A lock on a directory or a file that the kernel holds for this process. It ends with the process, however that ends,
 * and holds across containers, since it is on the inode: neither process ids nor network namespaces matter.
 *
 * A lock of flock(2) belongs to the open file description. The program flock(1) gets ours as its descriptor 3, locks it and
 * ends; the lock stays with us until our descriptor is closed. Node opens files with O_CLOEXEC, so no other child has it.
 * See docs/decisions/0017.
 */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";

/** A lock that this process holds. */
export interface PathLock {
  /** Nothing may be written under the lock after this. @throws PathLockLostError when the path is not what was locked */
  check(): void;
  release(): void;
}

/** Another process holds the lock. */
export class PathLockedError extends Error {
  override readonly name = "PathLockedError";
  readonly path: string;
  /** Who holds it, e.g. `process 12`; undefined when that is not known. */
  readonly holder: string | undefined;
  constructor(path: string, holder?: string) {
    super(`${path} is locked by ${holder ?? "another process"}`);
    this.path = path;
    this.holder = holder;
  }
}

/** What was locked has been removed or replaced. */
export class PathLockLostError extends Error {
  override readonly name = "PathLockLostError";
}

/** flock(1) only asks the kernel; where that takes so long, the file system hangs. */
const flockTimeoutMs = 10_000;

/** How often the kernel is asked for a lock that is another's; each time takes some milliseconds. */
const asksMax = 10;

/** A lock file may be removed by its holder just when it is opened. */
const attemptsMax = 100;

/** BSD and macOS lock on opening (fcntl.h: O_EXLOCK, O_NONBLOCK), without a program. */
const lockingOpen = process.platform === "linux" ? 0 : 0x20 | 0x4;

/** Locks a directory that is there. @throws PathLockedError; Error when the system cannot lock it */
export function lockDirectory(path: string): PathLock {
  const descriptor = openLocked(path, constants.O_RDONLY | constants.O_DIRECTORY);
  return { check: () => requireSame(descriptor, path, statSync), release: () => closeSync(descriptor) };
}

/**
 * Locks a file, which is made for that (mode 0600), names its holder, and is removed at the release.
 * @throws PathLockedError; Error when it cannot be made, or the system cannot lock it
 */
export function lockFile(path: string): PathLock {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    // Never through a link, which would have another file locked and written to.
    const descriptor = openLocked(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW);
    if (!isSame(descriptor, path, lstatSync)) {
      closeSync(descriptor); // Its last holder has just removed it.
      continue;
    }
    ftruncateSync(descriptor);
    writeSync(descriptor, JSON.stringify(ownIdentity()), 0);
    return {
      check: () => requireSame(descriptor, path, lstatSync),
      release: () => {
        // Removed under the lock: who has opened it by then finds that it is not there, and begins again.
        if (isSame(descriptor, path, lstatSync)) rmSync(path, { force: true });
        closeSync(descriptor);
      },
    };
  }
  throw new Error(`cannot lock ${path}: it is removed all the time`);
}

/**
 * Locks a directory, and a file in it: a network file system shows other machines only locks on files.
 * @throws as {@link lockDirectory} and {@link lockFile}
 */
export function lockDirectoryWithFile(directory: string, file: string): PathLock {
  const path = `${directory}/${file}`;
  let outer: PathLock;
  try {
    outer = lockDirectory(directory);
  } catch (error) {
    if (error instanceof PathLockedError) throw new PathLockedError(directory, holderOf(path));
    throw error;
  }
  try {
    const inner = lockFile(path);
    return {
      check: () => {
        outer.check();
        inner.check();
      },
      release: () => {
        inner.release();
        outer.release();
      },
    };
  } catch (error) {
    outer.release();
    throw error;
  }
}

function openLocked(path: string, flags: number): number {
  let descriptor: number;
  try {
    descriptor = openSync(path, flags | lockingOpen, 0o600);
  } catch (error) {
    if (lockingOpen !== 0 && (error as NodeJS.ErrnoException | undefined)?.code === "EAGAIN")
      throw new PathLockedError(path, holderOf(path));
    throw error;
  }
  try {
    if (lockingOpen === 0 && !flock(descriptor, path)) throw new PathLockedError(path, holderOf(path));
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/**
 * Locks the open file description; false when another one has the lock. A holder that has just released the lock, or
 * was killed, may have a child between fork and exec with a copy of its descriptor. So this retries for a moment before
 * it reports the lock as held.
 */
function flock(descriptor: number, path: string): boolean {
  for (let attempt = 1; attempt <= asksMax; attempt++) {
    if (askForLock(descriptor, path)) return true;
  }
  return false;
}

function askForLock(descriptor: number, path: string): boolean {
  const { status, stderr, error } = spawnSync("flock", ["-n", "-x", "3"], {
    stdio: ["ignore", "ignore", "pipe", descriptor],
    env: { PATH: `${process.env.PATH ?? ""}:/usr/sbin:/usr/bin:/sbin:/bin`, LC_ALL: "C" },
    timeout: flockTimeoutMs,
    killSignal: "SIGKILL",
    encoding: "utf8",
  });
  if ((error as NodeJS.ErrnoException | undefined)?.code === "ENOENT") {
    throw new Error(`cannot lock ${path}: the program flock is not installed (it is part of util-linux)`);
  }
  if (error !== undefined) throw new Error(`cannot lock ${path}`, { cause: error });
  if (status === 0) return true;
  // Both flock of util-linux and that of busybox say nothing when the lock is another's.
  if (status === 1 && stderr === "") return false;
  throw new Error(`cannot lock ${path}: ${stderr.trim() || "flock was ended"}`);
}

/** `stat` says whether a link counts as what it leads to: a directory may be given by one, a lock file is none. */
function isSame(descriptor: number, path: string, stat: typeof lstatSync): boolean {
  const found = stat(path, { bigint: true, throwIfNoEntry: false });
  const locked = fstatSync(descriptor, { bigint: true });
  return found?.ino === locked.ino && found.dev === locked.dev;
}

function requireSame(descriptor: number, path: string, stat: typeof lstatSync): void {
  if (!isSame(descriptor, path, stat)) throw new PathLockLostError(`${path} was removed or replaced`);
}

/** Who holds a lock, in its file. */
interface Identity {
  readonly pid: number;
  readonly host: string;
  /** In which this pid counts. */
  readonly pidNamespace: string;
}

function ownIdentity(): Identity {
  return { pid: process.pid, host: hostname(), pidNamespace: ownPidNamespace() };
}

function ownPidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return ""; // Not Linux, or no /proc.
  }
}

function holderOf(path: string): string | undefined {
  try {
    const { pid, host, pidNamespace } = JSON.parse(readFileSync(path, "utf8")) as Identity;
    if (host === hostname() && pidNamespace === ownPidNamespace()) return `process ${pid}`;
    return `process ${pid} of ${host}, which is another machine or container`;
  } catch {
    return undefined; // A directory, or the holder has not written it yet.
  }
}
