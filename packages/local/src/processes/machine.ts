/** What only the supervising process does to its machine. Real form. */
import { execFile, execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { lstat, open, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { DriverCommandError, driverArgv, driverPlaceholders } from "../layout/driver-command.ts";
import { childEnvironment } from "../programs/child-environment.ts";

const run = promisify(execFile);

/** The programs that a node with real volumes runs. */
const mountingPrograms = ["mount", "umount", "losetup", "fallocate", "mkfs.ext4", "blkid", "chroot"];

/**
 * True when this process may mount: root on Linux, with the right to a mount namespace (a container's
 * root often lacks it), loop devices and the programs. Elsewhere clusters use directories and links.
 */
export function mayMount(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const path = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  const isThere = (program: string) => path.some((dir) => existsSync(join(dir, program)));
  if (!existsSync("/dev/loop-control") || !mountingPrograms.every(isThere)) return false;
  try {
    execFileSync("unshare", ["--mount", "true"], {
      env: childEnvironment(),
      stdio: "ignore",
      timeout: 10_000,
    });
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether this process may grow a mounted ext4: that takes CAP_SYS_RESOURCE, which a container's root often lacks.
 * True also where there is no mkfs.xfs, whose file systems grow without it: then nothing would be gained by the other.
 */
export function mayGrowMounted(): boolean {
  if (process.platform !== "linux") return true;
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  const hasXfs = ["/usr/sbin", "/sbin"].some((dir) => existsSync(join(dir, "mkfs.xfs")));
  return !hasXfs || (BigInt(`0x${effective}`) & capSysResource) !== 0n;
}

/** Source: capabilities(7), linux/capability.h. */
const capSysResource = 1n << 24n;

/**
 * Makes the directory a shared mount of its own. Pods' mount namespaces are slaves of it, so that
 * they let go of what the node unmounts; without it, they would keep loop devices busy.
 */
export async function makeSharedMount(dir: string): Promise<void> {
  const options = { env: childEnvironment() };
  await run("mount", ["--bind", dir, dir], options);
  await run("mount", ["--make-shared", dir], options);
}

/** The port of the loopback interface that was requested, or any for 0, if it is free now; else undefined. */
export function freePort(asked = 0): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE" || error.code === "EACCES") resolve(undefined);
      else reject(error);
    });
    server.listen(asked, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/** Bytes that a file below the path may still take; the path itself need not exist yet. */
export async function freeBytesAt(path: string): Promise<number> {
  for (let existing = path; ; existing = dirname(existing)) {
    try {
      const { bavail, bsize } = await statfs(existing);
      return bavail * bsize;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || existing === dirname(existing)) throw error;
    }
  }
}

/** Why others could change what is in the directory ("belongs to …"), or undefined: it is ours alone, or not there yet. */
export async function unsafeOwner(dir: string): Promise<string | undefined> {
  const stat = await lstat(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (stat === undefined) return undefined;
  const uid = process.getuid?.();
  if (uid !== undefined && stat.uid !== uid) return `belongs to another user (uid ${stat.uid})`;
  return (stat.mode & 0o022) === 0 ? undefined : "may be written by other users";
}

/** Sets mode 0700 on a directory of ours, also on an existing one. Does not follow a link (ELOOP or ENOTDIR). */
export async function keepFromOthers(dir: string): Promise<void> {
  const directory = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await directory.chmod(0o700);
  } finally {
    await directory.close();
  }
}

/**
 * Looks at the command of the user's own driver before anything is started: its placeholders, and whether its program can be
 * started here.
 * @returns the command, its program by its whole path where it was given as a path: it runs in another directory
 * @throws DriverCommandError
 */
export function requireDriverCommand(command: readonly string[]): readonly string[] {
  const [program = ""] = driverArgv(command, driverPlaceholders);
  const isPath = program.includes("/");
  const places = (childEnvironment().PATH ?? "").split(delimiter).filter((dir) => dir !== "");
  const candidates = isPath ? [resolve(program)] : places.map((dir) => join(dir, program));
  const found = candidates.filter((path) => existsSync(path));
  if (found.length === 0) {
    const where = isPath ? `there is no file ${resolve(program)}` : `no directory of PATH has ${program}`;
    throw new DriverCommandError(`the driver's command cannot be started: ${where}: name its program`);
  }
  if (!found.some(isProgram)) {
    throw new DriverCommandError(
      `the driver's command cannot be started: ${found[0]} is not a program that this user may run`,
    );
  }
  return isPath ? [resolve(program), ...command.slice(1)] : command;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
