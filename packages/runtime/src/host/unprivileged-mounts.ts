/**
 * Mounts without the right to mount: the mount point makes room for a symbolic link to what would be mounted. Next to
 * it is a hidden record directory `.NAME.longshore-mount` with what the link covers (`under`) and the stack of mounts
 * (`mounts.json`), so that every process sees the same.
 *
 * Life of a mount point, and what a crash between two steps leaves
 *
 *     directory ──record──> record, directory ──rename──> record, nothing ──symlink──> mounted
 *                           (counts as not mounted)       (healed: renamed back)
 *
 * Unmounting goes the same way backwards. Every change begins with healing.
 */
import * as fs from "node:fs/promises";
import { resolve } from "node:path";
import { HostError, type Mount } from "./host.ts";
import { baseOf, childOf, parentOf } from "./host-paths.ts";
import { writeAtomic } from "./node-files.ts";
import { isMissing } from "./to-host-error.ts";

const linksMax = 40;
const recordSuffix = ".longshore-mount";

/** One mount of a mount point. */
export interface StandInMount {
  readonly source: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  /** The real path that the link leads to. */
  readonly link: string;
  /** Determines the order among all mounts of the machine. */
  readonly order: string;
}

/** Whether a directory entry is the record of a mount. */
export function isMountRecord(name: string): boolean {
  return name.startsWith(".") && name.endsWith(recordSuffix);
}

/** The mount point that a record belongs to. */
function mountPointOf(directory: string, record: string): string {
  return childOf(directory, record.slice(1, -recordSuffix.length));
}

function recordOf(target: string): string {
  return childOf(parentOf(target), `.${baseOf(target)}${recordSuffix}`);
}

/** The real path of a mount point: links are followed, but not those that stand in for mounts. */
export async function canonicalMountPoint(path: string, links = 0): Promise<string> {
  if (path === "/") return path;
  const target = childOf(await fs.realpath(parentOf(path)), baseOf(path));
  if (!(await isLink(target)) || (await exists(recordOf(target)))) return target;
  if (links >= linksMax) throw new HostError("resolve", path, "ELOOP");
  return canonicalMountPoint(resolve(parentOf(target), await fs.readlink(target)), links + 1);
}

/** Whether `path` is itself the link that stands in for a mount; false for a link that leads to one. */
export async function isStandIn(path: string): Promise<boolean> {
  if (path === "/") return false;
  try {
    return (await mountsOn(childOf(await fs.realpath(parentOf(path)), baseOf(path)))).length > 0;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** The mounts on a canonical mount point, topmost last; empty when it is none. */
export async function mountsOn(target: string): Promise<readonly StandInMount[]> {
  if (!(await isLink(target))) return [];
  try {
    return JSON.parse(await fs.readFile(childOf(recordOf(target), "mounts.json"), "utf8")) as StandInMount[];
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Mounts on a canonical mount point. */
export async function addMount(target: string, mount: StandInMount): Promise<void> {
  await healMountPoint(target);
  const record = recordOf(target);
  const present = await mountsOn(target);
  if (present.length === 0) await fs.mkdir(record, { recursive: true });
  await writeAtomic(childOf(record, "mounts.json"), JSON.stringify([...present, mount]), 0o600);
  if (present.length === 0) {
    await fs.rename(target, childOf(record, "under"));
    await fs.symlink(mount.link, target);
  } else {
    await replaceLink(target, record, mount.link);
  }
}

/** Takes the topmost mount away. @throws HostError with EINVAL when there is none */
export async function removeTopMount(target: string): Promise<StandInMount> {
  await healMountPoint(target);
  const record = recordOf(target);
  const present = await mountsOn(target);
  const top = present.at(-1);
  if (top === undefined) {
    throw new HostError("unmount", target, (await exists(target)) ? "EINVAL" : "ENOENT");
  }
  const below = present.at(-2);
  if (below === undefined) {
    await fs.unlink(target);
    await healMountPoint(target);
  } else {
    await writeAtomic(childOf(record, "mounts.json"), JSON.stringify(present.slice(0, -1)), 0o600);
    await replaceLink(target, record, below.link);
  }
  return top;
}

async function replaceLink(target: string, record: string, link: string): Promise<void> {
  const next = childOf(record, "next");
  await fs.rm(next, { force: true });
  await fs.symlink(link, next);
  await fs.rename(next, target);
}

/** Brings a mount point that a crash left between two steps back to "not mounted". */
export async function healMountPoint(target: string): Promise<void> {
  const record = recordOf(target);
  if (!(await exists(record)) || (await isLink(target))) return;
  const under = childOf(record, "under");
  if (!(await exists(target)) && (await exists(under))) await fs.rename(under, target);
  await fs.rm(record, { recursive: true, force: true });
}

/** Heals every mount point in the directory, so that no stale record keeps it from being removed. */
export async function healDirectory(directory: string): Promise<void> {
  const names = await fs.readdir(directory).catch(() => []);
  for (const name of names) if (isMountRecord(name)) await healMountPoint(mountPointOf(directory, name));
}

/** All mounts at or below a real path, in mount order. Mounted file systems are not searched. */
export async function mountsBelow(
  prefix: string,
  skip: (path: string) => Promise<boolean>,
): Promise<readonly Mount[]> {
  const found: (StandInMount & { readonly target: string })[] = [];
  const note = async (target: string) => {
    for (const mount of await mountsOn(target)) found.push({ ...mount, target });
  };
  const walk = async (directory: string): Promise<void> => {
    const entries = await fs.readdir(directory, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = childOf(directory, entry.name);
      if (isMountRecord(entry.name)) await note(mountPointOf(directory, entry.name));
      else if (entry.isDirectory() && !(await skip(path))) await walk(path);
    }
  };
  if (prefix !== "/") await note(prefix);
  await walk(prefix);
  return found
    .sort((a, b) => (BigInt(a.order) < BigInt(b.order) ? -1 : 1))
    .map(({ source, target, fsType, readOnly }) => ({ source, target, fsType, readOnly }));
}

/** The innermost mount that `path` (not canonical) leads through, itself included. */
export async function mountAbove(path: string): Promise<StandInMount | undefined> {
  let innermost: StandInMount | undefined;
  let at = "/";
  for (const name of path.split("/").filter((part) => part !== "")) {
    at = childOf(at, name);
    innermost = (await mountsOn(at)).at(-1) ?? innermost;
  }
  return innermost;
}

async function exists(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    () => true,
    () => false,
  );
}

async function isLink(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  );
}
