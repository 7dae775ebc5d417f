/** The place that a part of a volume is bound to; shared by the three forms of the Host seam. */
import { type FileStat, type Host, HostError } from "./host.ts";
import { checkedPath, parentOf } from "./host-paths.ts";

/** The names of a sub-path. @throws HostError with EINVAL when it is absolute or empty, or has `..` or a NUL */
export function namesOfSubPath(subPath: string): readonly string[] {
  const names = subPath.split("/").filter((name) => name !== "" && name !== ".");
  if (subPath.startsWith("/") || names.length === 0) throw new HostError("bindSubPath", subPath, "EINVAL");
  checkedPath("bindSubPath", `/${subPath}`);
  return names;
}

/**
 * Makes the target fit for what is to be bound to it, and takes away what else is mounted there.
 *
 * @returns whether it is bound there already
 */
export async function makeSubPathTarget(
  host: Pick<
    Host,
    | "stat"
    | "isMountPoint"
    | "unmount"
    | "removeFile"
    | "removeDirectory"
    | "makeDirectory"
    | "appendFileDurable"
  >,
  target: string,
  source: Pick<FileStat, "inode" | "kind">,
): Promise<boolean> {
  while (await host.isMountPoint(target)) {
    // Unprivileged, what was bound may be gone by now.
    const bound = await host.stat(target).catch(() => undefined);
    if (bound?.inode === source.inode) return true;
    await host.unmount(target);
  }
  const isDirectory = source.kind === "directory";
  const there = await host.stat(target);
  if (there?.kind === "directory" && !isDirectory) await host.removeDirectory(target);
  else if (there !== undefined && there.kind !== "directory" && isDirectory) await host.removeFile(target);
  await host.makeDirectory(isDirectory ? target : parentOf(target));
  if (!isDirectory) await host.appendFileDurable(target, "");
  return false;
}
