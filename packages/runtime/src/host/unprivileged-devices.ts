/**
 * Block devices without loop devices: the device of a backing file `FILE` is the directory `FILE.d`,
 * which holds the file system's type (`type`), its files (`fs`) and who has it mounted (`users`).
 * Detached, the directory is called `FILE.detached`, so that the device path is gone and the data is not.
 */
import { createHash } from "node:crypto";
import * as fs from "node:fs/promises";
import { HostError } from "./host.ts";
import { childOf, isAtOrBelow, parentOf } from "./host-paths.ts";
import { syncDirectory, syncTree, writeAtomic } from "./node-files.ts";
import { isMissing } from "./to-host-error.ts";
import { type TreeEntry, treeImage } from "./tree-image.ts";
import { mountsOn } from "./unprivileged-mounts.ts";

const attachedSuffix = ".d";
const detachedSuffix = ".detached";

/** The path of the backing file's device, whether or not it is attached. */
export function deviceOf(backingFile: string): string {
  return `${backingFile}${attachedSuffix}`;
}

/** The backing file of a device path; undefined when the path cannot be one. */
export function backingFileOf(device: string): string | undefined {
  return device.endsWith(attachedSuffix) ? device.slice(0, -attachedSuffix.length) : undefined;
}

/** Whether a directory is a device, attached or not: its backing file is in the same directory. */
export async function isDeviceDirectory(path: string): Promise<boolean> {
  for (const suffix of [attachedSuffix, detachedSuffix]) {
    if (path.endsWith(suffix) && (await isFile(path.slice(0, -suffix.length)))) return true;
  }
  return false;
}

/** Where the files of the device's file system are. */
export function filesOf(device: string): string {
  return childOf(device, "fs");
}

/** The device whose file system holds `path` (a real path), if any. */
export async function deviceHolding(path: string): Promise<string | undefined> {
  for (let at = path; at !== "/"; at = parentOf(at)) {
    const device = parentOf(at);
    if (at === filesOf(device) && (await isDeviceDirectory(device))) return device;
  }
  return undefined;
}

/** Makes the device appear. @throws HostError with ENOENT, or EINVAL when the backing file is no file */
export async function attachDevice(backingFile: string): Promise<string> {
  const stat = await fs.stat(backingFile);
  if (!stat.isFile()) throw new HostError("attachLoop", backingFile, "EINVAL");
  const device = deviceOf(backingFile);
  if (await isDirectory(device)) return device;
  try {
    // Attached again: the files are those that were there when it was detached.
    await fs.rename(`${backingFile}${detachedSuffix}`, device);
  } catch (error) {
    if (!isMissing(error)) throw error;
    await fs.mkdir(device, { mode: 0o700 });
  }
  return device;
}

/** Makes the device vanish. @throws HostError with EBUSY while it is mounted */
export async function detachDevice(backingFile: string): Promise<void> {
  const device = deviceOf(backingFile);
  if (!(await isDirectory(device))) return;
  if ((await usersOf(device)).length > 0) throw new HostError("detachLoop", backingFile, "EBUSY");
  if (await isFile(backingFile)) await fs.rename(device, `${backingFile}${detachedSuffix}`);
  else await fs.rm(device, { recursive: true, force: true });
}

/** The backing file was removed: what was on its detached device goes with it. */
export async function forgetDetached(backingFile: string): Promise<void> {
  await fs.rm(`${backingFile}${detachedSuffix}`, { recursive: true, force: true });
}

/** Copies what is on the device of `source` to `target`, a backing file without a device. */
export async function copyContents(source: string, target: string): Promise<void> {
  const contents = (await isAttached(source)) ? deviceOf(source) : `${source}${detachedSuffix}`;
  const made = `${target}${detachedSuffix}`;
  const temporary = `${target}.copying`;
  await fs.rm(temporary, { recursive: true, force: true });
  await fs.mkdir(temporary, { mode: 0o700 });
  for (const name of ["type", "fs"]) {
    const from = childOf(contents, name);
    const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true };
    await fs.cp(from, childOf(temporary, name), options).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }
  await syncTree(temporary);
  await fs.rm(made, { recursive: true, force: true });
  await fs.rename(temporary, made);
  await syncDirectory(parentOf(made));
}

/** What is on the backing file's disk, block by block. */
export async function imageOf(backingFile: string, blockBytes: number): Promise<readonly string[]> {
  const contents = (await isAttached(backingFile))
    ? deviceOf(backingFile)
    : `${backingFile}${detachedSuffix}`;
  const fsType = await fs.readFile(childOf(contents, "type"), "utf8").catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (fsType === undefined) return [];
  const entries: TreeEntry[] = [];
  await collect(childOf(contents, "fs"), "", blockBytes, entries);
  return treeImage(fsType, entries);
}

async function collect(root: string, below: string, blockBytes: number, entries: TreeEntry[]): Promise<void> {
  const found = await fs.readdir(childOf(root, below), { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  for (const entry of found) {
    const name = `${below}/${entry.name}`;
    const path = childOf(root, name);
    const { mode, size } = await fs.lstat(path);
    const target = entry.isSymbolicLink() ? await fs.readlink(path) : "";
    const blocks = entry.isFile() ? await digests(path, blockBytes) : [];
    entries.push({ facts: `${name} ${mode} ${entry.isFile() ? size : ""} ${target}`, blocks });
    if (entry.isDirectory()) await collect(root, name, blockBytes, entries);
  }
}

async function digests(path: string, blockBytes: number): Promise<readonly string[]> {
  const file = await fs.open(path, "r");
  try {
    const found: string[] = [];
    const buffer = Buffer.alloc(blockBytes);
    const zeros = Buffer.alloc(blockBytes);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, blockBytes, found.length * blockBytes);
      if (bytesRead === 0) return found;
      const data = buffer.subarray(0, bytesRead);
      const isEmpty = data.equals(zeros.subarray(0, bytesRead));
      found.push(isEmpty ? "" : createHash("sha256").update(data).digest("base64"));
    }
  } finally {
    await file.close();
  }
}

/** Whether the device is there. */
export function isAttached(backingFile: string): Promise<boolean> {
  return isDirectory(deviceOf(backingFile));
}

/** The type of the file system on the device. @throws HostError with ENOENT or ENOTBLK */
export async function fileSystemType(operation: string, device: string): Promise<string | undefined> {
  await fs.stat(device);
  if (!(await isDeviceDirectory(device))) throw new HostError(operation, device, "ENOTBLK");
  try {
    return await fs.readFile(childOf(device, "type"), "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Makes a file system; the type is written last, so that a crash leaves none. */
export async function makeFileSystem(device: string, fsType: string): Promise<void> {
  await fs.mkdir(filesOf(device), { recursive: true, mode: 0o755 });
  await fs.chmod(filesOf(device), 0o755);
  await writeAtomic(childOf(device, "type"), fsType, 0o600);
}

/** Notes that the device is mounted on `target`; before the mount is made. */
export async function addUser(device: string, target: string): Promise<void> {
  const users = childOf(device, "users");
  await fs.mkdir(users, { recursive: true, mode: 0o700 });
  await writeAtomic(childOf(users, keyOf(target)), target, 0o600);
}

/** The mount points that lead to the device's files. Records of mounts that were never completed are dropped. */
export async function usersOf(device: string): Promise<readonly string[]> {
  const users = childOf(device, "users");
  const live: string[] = [];
  for (const name of await fs.readdir(users).catch(() => [])) {
    const note = childOf(users, name);
    const target = await fs.readFile(note, "utf8").catch(() => "");
    const mounts = target === "" ? [] : await mountsOn(target);
    if (mounts.some((mount) => isAtOrBelow(mount.link, filesOf(device)))) live.push(target);
    else await fs.rm(note, { force: true });
  }
  return live;
}

function keyOf(target: string): string {
  return createHash("sha256").update(target).digest("hex").slice(0, 32);
}

async function isFile(path: string): Promise<boolean> {
  return fs.stat(path).then(
    (stat) => stat.isFile(),
    () => false,
  );
}

async function isDirectory(path: string): Promise<boolean> {
  return fs.stat(path).then(
    (stat) => stat.isDirectory(),
    () => false,
  );
}
