/**
 * How much a tree takes, as `du -x` counts: each inode once, in the blocks that it has, within one file system. A workload that
 * writes to the tree may replace a directory by a link while this runs: each one is opened without following links, and
 * read by what was opened.
 */
import { constants, type Stats } from "node:fs";
import * as fs from "node:fs/promises";
import type { TreeUsage } from "./host.ts";
import { childOf } from "./host-paths.ts";
import { errnoOf, hostStep } from "./to-host-error.ts";

/** Of `st_blocks`, whatever the file system's own blocks are. Source: stat(2). */
const blockBytes = 512;

/** What goes, or turns into something else, while it is counted is not counted. */
const passing: readonly (string | undefined)[] = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"];

interface Count {
  bytes: number;
  inodes: number;
  readonly device: number;
  /** Inodes of several names. */
  readonly seen: Set<number>;
  readonly signal: AbortSignal;
}

/** See `Host.treeUsage`. */
export function treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage> {
  signal.throwIfAborted();
  return hostStep("treeUsage", path, async () => {
    const root = await fs.lstat(path);
    const count: Count = { bytes: 0, inodes: 0, device: root.dev, seen: new Set(), signal };
    add(count, root);
    if (root.isDirectory()) await addMembers(count, path);
    return { usedBytes: count.bytes, usedInodes: count.inodes };
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
}

/** Counts an inode, unless it has been counted under another name. */
function add(count: Count, stat: Stats): void {
  if (stat.nlink > 1 && !stat.isDirectory()) {
    if (count.seen.has(stat.ino)) return;
    count.seen.add(stat.ino);
  }
  count.bytes += stat.blocks * blockBytes;
  count.inodes++;
}

async function addMembers(count: Count, path: string): Promise<void> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY;
  const directory = await unlessPassing(() => fs.open(path, flags));
  if (directory === undefined) return;
  try {
    const opened = process.platform === "linux" ? `/proc/self/fd/${directory.fd}` : path;
    for (const name of (await unlessPassing(() => fs.readdir(opened))) ?? []) {
      count.signal.throwIfAborted();
      const member = childOf(opened, name);
      const stat = await unlessPassing(() => fs.lstat(member));
      if (stat === undefined || stat.dev !== count.device) continue;
      add(count, stat);
      if (stat.isDirectory()) await addMembers(count, member);
    }
  } finally {
    await directory.close();
  }
}

async function unlessPassing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!passing.includes(errnoOf(error))) throw error;
    return undefined;
  }
}
