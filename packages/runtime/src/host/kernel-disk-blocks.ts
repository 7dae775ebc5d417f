/**
 * Which blocks of a backing file hold data, or differ from those of another. Holes are not read where the file system
 * reports them. Allocated ranges are read, since they may hold only zeros.
 */
import * as fs from "node:fs/promises";
import type { DiskBlocks, DiskBlocksQuery } from "./host.ts";
import { runTool } from "./node-programs.ts";
import { hostStep } from "./to-host-error.ts";

/** Data that one call reads at most, in bytes, so that none takes long. */
const readBytesMax = 512 * 1024 * 1024;

/** See `Host.diskBlocks`. */
export function blocksOfFile(path: string, query: DiskBlocksQuery): Promise<DiskBlocks> {
  return hostStep("diskBlocks", path, async () => {
    const file = await fs.open(path, "r");
    try {
      if (query.base === undefined) return await look(path, file, undefined, query);
      const base = await fs.open(query.base, "r");
      try {
        return await look(path, file, base, query);
      } finally {
        await base.close();
      }
    } finally {
      await file.close();
    }
  });
}

async function look(
  path: string,
  file: fs.FileHandle,
  base: fs.FileHandle | undefined,
  { blockBytes, from, max, base: basePath }: DiskBlocksQuery,
): Promise<DiskBlocks> {
  const count = Math.ceil((await file.stat()).size / blockBytes);
  const firsts = [await firstWithData(path, blockBytes)];
  if (basePath !== undefined) firsts.push(await firstWithData(basePath, blockBytes));
  const own = Buffer.alloc(blockBytes);
  const other = Buffer.alloc(blockBytes);
  const blocks: number[] = [];
  let readBytes = 0;
  for (let block = from; ; block++) {
    block = Math.min(...firsts.map((first) => first(block)));
    if (block >= count) return { blocks, next: undefined };
    if (blocks.length === max || readBytes >= readBytesMax) return { blocks, next: block };
    await readBlock(file, own, block);
    if (base !== undefined) await readBlock(base, other, block);
    readBytes += base === undefined ? blockBytes : 2 * blockBytes;
    if (!own.equals(other)) blocks.push(block);
  }
}

/** Fills the buffer with the block; beyond the file's end there are zeros. */
async function readBlock(file: fs.FileHandle, into: Buffer, block: number): Promise<void> {
  let filled = 0;
  while (filled < into.length) {
    const { bytesRead } = await file.read(into, filled, into.length - filled, block * into.length + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  into.fill(0, filled);
}

/** From the first to before the second byte; ascending. Undefined: not known. */
type Ranges = readonly (readonly [begin: number, end: number])[] | undefined;

/**
 * Returns a function that finds the first block, at or after the given one, that may hold data; call it with ascending
 * numbers.
 */
async function firstWithData(path: string, blockBytes: number): Promise<(block: number) => number> {
  const ranges = await dataRanges(path);
  if (ranges === undefined) return (block) => block;
  let at = 0;
  return (block) => {
    while ((ranges[at]?.[1] ?? Number.POSITIVE_INFINITY) <= block * blockBytes) at++;
    const begin = ranges[at]?.[0] ?? Number.POSITIVE_INFINITY;
    return Math.max(block, Math.floor(begin / blockBytes));
  };
}

const sectorBytes = 512;

/** What the file system has allocated for the file (filefrag(8), FIEMAP); undefined where it does not report this. */
async function dataRanges(path: string): Promise<Ranges> {
  let text: string;
  try {
    text = await runTool("diskBlocks", path, "filefrag", ["-e", "-s", `-b${sectorBytes}`, path]);
  } catch {
    return undefined; // Not installed, or a file system without: then all is read.
  }
  const ranges: [number, number][] = [];
  for (const [, first, last] of text.matchAll(/^ *\d+: +(\d+)\.\. *(\d+):/gm)) {
    ranges.push([Number(first) * sectorBytes, (Number(last) + 1) * sectorBytes]);
  }
  // A table that says how many extents it has is one that was understood.
  const counted = /: (\d+) extents? found/.exec(text)?.[1];
  return counted !== undefined && isComplete(ranges.length, Number(counted)) ? ranges : undefined;
}

/** Neighbours on the disk are counted as one. */
const isComplete = (rows: number, extents: number): boolean => (extents === 0 ? rows === 0 : rows >= extents);
