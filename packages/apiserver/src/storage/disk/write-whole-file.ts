/** Files that are on the disk, name and all, when a function here is done. */
import { writeSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Syncs a directory, so that the names in it are on the disk. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * Creates a file (mode 0600) atomically: writes a temporary file in the same directory, syncs it and renames it.
 * @param write gets a function that appends
 */
export async function writeWholeFile(
  path: string,
  write: (append: (bytes: Uint8Array) => Promise<void>) => Promise<void>,
): Promise<void> {
  const temporary = `${path}.tmp`;
  // What a killed process has left goes; a link that stands here is removed and not followed.
  await rm(temporary, { force: true });
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.chmod(0o600);
    await write((bytes) => writeAll(file, bytes));
    await file.sync();
  } catch (error) {
    await file.close();
    await rm(temporary, { force: true });
    throw error;
  }
  await file.close();
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Writes all the bytes, at `position` or behind what was written last. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position?: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const place = position === undefined ? null : position + at;
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, place);
    at += bytesWritten;
  }
}

/**
 * Like {@link writeAll}, before it returns: what is short and goes to the memory of the system costs less than
 * to have it done by another thread. It is not on the disk before it is synced.
 */
export function writeAllAtOnce(file: FileHandle, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length; ) {
    at += writeSync(file.fd, bytes, at, bytes.length - at, position + at);
  }
}
