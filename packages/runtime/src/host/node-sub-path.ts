/**
 * Opens a part of a volume. A workload that writes to the volume may create links in it, and replace a directory by a link
 * while this runs. So each name is opened without following links, in the directory that was opened before it.
 * Source: upstream pkg/volume/util/subpath, doSafeOpen and doSafeMakeDir.
 */
import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { HostError } from "./host.ts";
import { childOf, isAtOrBelow } from "./host-paths.ts";
import { errnoOf, isMissing } from "./to-host-error.ts";

const operation = "bindSubPath";
const isLinux = process.platform === "linux";
/** O_PATH (linux/fcntl.h): names an inode without opening it, so that no device or pipe is woken. */
const byName = (isLinux ? 0o10000000 : constants.O_RDONLY | constants.O_NONBLOCK) | constants.O_NOFOLLOW;

/** What was opened. */
export interface OpenedBelow {
  readonly handle: fs.FileHandle;
  /** Its path when it was opened; what is there by now may be something else. */
  readonly path: string;
}

/**
 * Opens what is at these names below `root`, and makes what is missing as directories with the mode of `root`. The caller closes
 * the handle. @throws HostError: EXDEV when a link leads out of `root`, ELOOP when there is a link that was none before
 */
export async function openBelow(root: string, names: readonly string[]): Promise<OpenedBelow> {
  const real = await fs.realpath(root);
  const resolved = await namesWithoutLinks(real, names);
  let opened: OpenedBelow = { handle: await fs.open(real, byName | constants.O_DIRECTORY), path: real };
  try {
    const mode = Number((await opened.handle.stat()).mode) & 0o7777;
    for (const name of resolved) {
      const next = await openOrMake(opened, name, mode);
      await opened.handle.close();
      opened = next;
    }
    return opened;
  } catch (error) {
    await opened.handle.close();
    throw error;
  }
}

/** The way from `root` with links replaced by what they lead to; what is missing stays as it is. */
async function namesWithoutLinks(root: string, names: readonly string[]): Promise<readonly string[]> {
  let at = root;
  for (const [index, name] of names.entries()) {
    const next = childOf(at, name);
    const real = await fs.realpath(next).catch(async (error: unknown) => {
      // Also where a link leads nowhere: what would be made there is not in this directory.
      if (!isMissing(error) || (await isThere(next))) throw error;
      return undefined;
    });
    if (real === undefined) return [...namesFrom(root, at), ...names.slice(index)];
    if (!isAtOrBelow(real, root)) throw new HostError(operation, next, "EXDEV");
    at = real;
  }
  return namesFrom(root, at);
}

function namesFrom(root: string, path: string): readonly string[] {
  return path
    .slice(root.length)
    .split("/")
    .filter((name) => name !== "");
}

async function isThere(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    () => true,
    () => false,
  );
}

async function openOrMake(parent: OpenedBelow, name: string, mode: number): Promise<OpenedBelow> {
  const path = childOf(parent.path, name);
  // The directory that was opened, whatever stands at its path by now.
  const place = childOf(isLinux ? `/proc/self/fd/${parent.handle.fd}` : parent.path, name);
  const handle = await fs.open(place, byName).catch(async (error: unknown) => {
    if (errnoOf(error) !== "ENOENT") throw error;
    return makeAndOpen(place, mode);
  });
  if (!(await handle.stat()).isSymbolicLink()) return { handle, path };
  await handle.close();
  throw new HostError(operation, path, "ELOOP");
}

async function makeAndOpen(place: string, mode: number): Promise<fs.FileHandle> {
  await fs.mkdir(place, { mode }).catch((error: unknown) => {
    if (errnoOf(error) !== "EEXIST") throw error;
  });
  const handle = await fs.open(place, byName);
  // The umask has taken bits from the mode; a link that has come meanwhile is seen by the caller.
  if (isLinux && (await handle.stat()).isDirectory()) await fs.chmod(`/proc/self/fd/${handle.fd}`, mode);
  return handle;
}
