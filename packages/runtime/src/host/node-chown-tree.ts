/**
 * Changes the group of a tree. A workload that writes to a volume may create links in it, and replace a directory by a
 * link while this runs. So each entry is opened without following links, and only what was opened is inspected, changed
 * and entered.
 */
import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { directoryBits, groupBits, isGivenToGroup } from "./group-ownership.ts";
import { type ChownOptions, HostError } from "./host.ts";
import { childOf } from "./host-paths.ts";
import { errnoOf, hostStep } from "./to-host-error.ts";

/** O_PATH (linux/fcntl.h): names an inode without opening it, so that no device or pipe is woken. */
const byName = process.platform === "linux" ? 0o10000000 : constants.O_RDONLY | constants.O_NONBLOCK;

/** No entry of the volume is at fault when these come: the process has no descriptors or no memory left. */
const ownFailures: readonly (string | undefined)[] = ["EMFILE", "ENFILE", "ENOMEM"];

/** See `Host.chownTree`. @throws HostError: ELOOP when `path` itself is a link */
export async function chownTree(path: string, gid: number, options: ChownOptions): Promise<void> {
  const bits = groupBits(options);
  await hostStep("chownTree", path, async () => {
    if (options.onlyOnRootMismatch === true) {
      const root = await fs.lstat(path);
      const { mode, gid: group } = root;
      if (isGivenToGroup({ isDirectory: root.isDirectory(), mode, gid: group }, gid, bits)) return;
    }
    const isLink = !(await chownEntry(path, gid, bits));
    if (isLink) throw new HostError("chownTree", path, "ELOOP");
  });
}

/** Changes an entry, and before it all that is in it; false when it is a link. */
async function chownEntry(path: string, gid: number, bits: number): Promise<boolean> {
  let entry: fs.FileHandle;
  try {
    entry = await fs.open(path, byName | constants.O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) === "ELOOP") return false;
    throw error;
  }
  try {
    const stat = await entry.stat();
    if (stat.isSymbolicLink()) return false;
    // The entry that was opened, whatever stands at its path by now.
    const opened = process.platform === "linux" ? `/proc/self/fd/${entry.fd}` : path;
    if (stat.isDirectory()) await chownMembers(opened, gid, bits);
    await unlessRefused(async () => {
      await fs.chown(opened, stat.uid, gid);
      await fs.chmod(opened, (stat.mode & 0o7777) | bits | (stat.isDirectory() ? directoryBits : 0));
    });
    return true;
  } finally {
    await entry.close();
  }
}

async function chownMembers(directory: string, gid: number, bits: number): Promise<void> {
  let names: readonly string[] = [];
  await unlessRefused(async () => {
    names = await fs.readdir(directory);
  });
  for (const name of names) {
    await unlessRefused(() => chownEntry(childOf(directory, name), gid, bits));
  }
}

/** What the system refuses for one entry is left as it is. */
async function unlessRefused(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const code = errnoOf(error);
    if (code === undefined || ownFailures.includes(code)) throw error;
  }
}
