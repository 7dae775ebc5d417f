/** Looking at mount points, and clearing them. */
import { type Host, HostError, type Mount } from "@longshore/runtime";

/** What is mounted topmost on exactly this path. */
export async function topMount(host: Host, path: string): Promise<Mount | undefined> {
  if (!(await host.isMountPoint(path))) return undefined;
  const mounts = await host.listMounts(path);
  // Targets are real paths, all at or below the one requested: the shortest is it.
  const length = Math.min(...mounts.map(({ target }) => target.length));
  return mounts.findLast(({ target }) => target.length === length);
}

/** Unmounts everything on the path. */
export async function unmountAll(host: Host, path: string): Promise<void> {
  while (await host.isMountPoint(path)) {
    try {
      await host.unmount(path);
    } catch (error) {
      // Someone else took it away in between.
      if (!(error instanceof HostError && (error.code === "EINVAL" || error.code === "ENOENT"))) throw error;
    }
  }
}
