/** What a tree that belongs to a group is like. Source: docs/behaviour/volume-plugins.md 6. */
import type { ChownOptions } from "./host.ts";

/** What a directory has besides the bits of its files: others of the group enter it, and what they make is the group's. */
export const directoryBits = 0o2110;

/** The permission bits that the group's files get. */
export const groupBits = ({ readOnly }: ChownOptions): number => (readOnly === true ? 0o440 : 0o660);

/** Whether a root is right already. Source: docs/behaviour/volume-plugins.md 6, policy `OnRootMismatch`. */
export function isGivenToGroup(
  root: { readonly isDirectory: boolean; readonly mode: number; readonly gid: number },
  gid: number,
  bits: number,
): boolean {
  const wanted = bits | directoryBits;
  return root.isDirectory && root.gid === gid && (root.mode & wanted) === wanted;
}
