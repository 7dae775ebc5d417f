/** Checksums of the blocks of every file below a directory: the images of disks, and the files of shares. */
import { createHash } from "node:crypto";
import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";

/** Bytes that one checksum covers. */
const blockBytes = 1 << 20;
const zeros = Buffer.alloc(blockBytes);

/** By file, the sum of each block and its number; a block of zeros, as most of a new disk are, is named in no other way than by its absence. */
export type BlockSums = Readonly<Record<string, Readonly<Record<number, string>>>>;

/** Reads every block of every file below the directory. */
export function blockSums(directory: string): BlockSums {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
  return Object.fromEntries(files.map((file) => [file, sumsOf(file)]));
}

function sumsOf(file: string): Readonly<Record<number, string>> {
  const sums: Record<number, string> = {};
  const block = Buffer.alloc(blockBytes);
  const fd = openSync(file, "r");
  try {
    for (let at = 0; ; at++) {
      const bytes = readSync(fd, block, 0, blockBytes, at * blockBytes);
      // The length of the file counts, too.
      if (bytes < blockBytes) {
        sums[at] = `${bytes} bytes ${createHash("sha256").update(block.subarray(0, bytes)).digest("hex")}`;
        return sums;
      }
      if (block.equals(zeros)) continue;
      sums[at] = createHash("sha256").update(block).digest("hex");
    }
  } finally {
    closeSync(fd);
  }
}
