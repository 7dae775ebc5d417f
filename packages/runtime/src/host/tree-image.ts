/**
 * The blocks of a disk whose files are kept as files, not in an image: what would lie in them if the files lay one
 * after the other, behind a first block with the tree itself.
 */
import type { DiskBlocks, DiskBlocksQuery } from "./host.ts";

/** One entry of the tree. */
export interface TreeEntry {
  /** Name below the root, kind, mode, size, target: whatever makes it another entry. */
  readonly facts: string;
  /** What is in each of its blocks, or stands for it; `""`: nothing. */
  readonly blocks: readonly string[];
}

/** The content of each block, in order. @param fsType undefined: the disk is blank */
export function treeImage(fsType: string | undefined, entries: readonly TreeEntry[]): readonly string[] {
  if (fsType === undefined) return [];
  const sorted = [...entries].sort((a, b) => (a.facts < b.facts ? -1 : 1));
  const tree = JSON.stringify([fsType, sorted.map(({ facts }) => facts)]);
  return [tree, ...sorted.flatMap(({ blocks }) => blocks)];
}

/** See `Host.diskBlocks`. @param sizeBytes of the disk: what does not fit is not there */
export function blocksOfImage(
  image: readonly string[],
  base: readonly string[] | undefined,
  sizeBytes: number,
  { blockBytes, from, max }: DiskBlocksQuery,
): DiskBlocks {
  const count = Math.min(Math.ceil(sizeBytes / blockBytes), Math.max(image.length, base?.length ?? 0));
  const blocks: number[] = [];
  for (let block = from; block < count; block++) {
    if ((image[block] ?? "") === (base?.[block] ?? "")) continue;
    if (blocks.length === max) return { blocks, next: block };
    blocks.push(block);
  }
  return { blocks, next: undefined };
}
