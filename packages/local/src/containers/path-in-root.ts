/** Paths inside a directory that becomes the root of a process. Real form. */
import { lstatSync, readlinkSync } from "node:fs";
import { join } from "node:path";

const linksMax = 40;

/**
 * Where `path` lies below `root` for a process whose root that is: links are followed as that process
 * would follow them, never out of `root`. The path need not exist. @throws Error for a loop of links
 */
export function pathInRoot(root: string, path: string): string {
  const done: string[] = [];
  const ahead = partsOf(path);
  let links = 0;
  for (let part = ahead.shift(); part !== undefined; part = ahead.shift()) {
    if (part === "..") {
      done.pop();
      continue;
    }
    const target = linkTarget(join(root, ...done, part));
    if (target === undefined) {
      done.push(part);
      continue;
    }
    if (++links > linksMax) throw new Error(`${path}: too many links`);
    if (target.startsWith("/")) done.length = 0;
    ahead.unshift(...partsOf(target));
  }
  return join(root, ...done);
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
