/**
 * Looks at a store's file before LMDB does: LMDB maps what it is given into memory, and a file that is
 * none of its own ends the process.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { StoreError } from "./store.ts";

/** Each of the two first pages is a copy of the file's description. */
const pageBytes = 4096;
/** Offset of the description's magic number in its page, and behind it the version of the format. */
const magicAt = 24;
const magic = 0xbeefc0de;
const version = 2;

/** @throws StoreError for a file that LMDB has not written, or that is cut off */
export function checkLmdbFile(path: string): void {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return; // A new store.
    throw error;
  }
  try {
    const bytes = Buffer.alloc(2 * pageBytes);
    const read = readSync(file, bytes, 0, bytes.length, 0);
    if (read === 0) return; // Made, and then its process was killed: as good as new.
    const isWhole = read === bytes.length && [0, pageBytes].every((page) => isDescription(bytes, page));
    if (!isWhole) throw damaged(path);
  } finally {
    closeSync(file);
  }
}

function isDescription(bytes: Buffer, page: number): boolean {
  return bytes.readUInt32LE(page + magicAt) === magic && bytes.readUInt32LE(page + magicAt + 4) === version;
}

/** The failure for a store that cannot be read. */
export function damaged(path: string, cause?: unknown): StoreError {
  return new StoreError(
    `the store ${path} is damaged: restore it from a backup, or remove it to begin with an empty cluster`,
    { cause },
  );
}
