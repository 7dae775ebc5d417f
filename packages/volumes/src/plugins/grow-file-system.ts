/**
 * Growing the file system of an in-tree volume or Flexvolume on the node. Source: docs/behaviour/node-agent.md 7.6.
 *
 * Where this process may grow an ext4 only unmounted, one that pods use stays as it is; one that has just been mounted
 * for the node, and for no pod yet, is unmounted for it.
 */
import { type Host, HostError } from "@longshore/runtime";
import { FailedPreconditionError } from "../framework/node-error-kind.ts";
import type { NodeExpandOptions } from "../framework/volume-plugin.ts";

/** What takes a volume off the node's directory, and mounts it there again. */
export interface NodeMounts {
  unmount(): Promise<void>;
  mount(): Promise<void>;
}

/** @throws FailedPreconditionError when it can be grown here only unmounted, and is in use */
export async function growFileSystemOf(
  host: Host,
  { devicePath, path, phase }: NodeExpandOptions,
  mounts: NodeMounts,
): Promise<void> {
  try {
    await host.growFileSystem(devicePath, path);
    return;
  } catch (cause) {
    if (!(cause instanceof HostError && cause.code === "EPERM")) throw cause;
    if (phase === "published" || (await isUsedElsewhere(host, path))) {
      throw new FailedPreconditionError(
        "the kernel lets this process grow the file system only unmounted (it lacks CAP_SYS_RESOURCE): " +
          "it grows when the volume is next mounted on a node",
        { cause },
      );
    }
  }
  await mounts.unmount();
  await host.growUnmounted(devicePath);
  await mounts.mount();
}

/** Whether what is mounted at the path is mounted at another, too: a pod's directory. */
async function isUsedElsewhere(host: Host, path: string): Promise<boolean> {
  const mounts = await host.listMounts("/");
  const own = mounts.findLast(({ target }) => target === path);
  return mounts.some(({ source, target }) => target !== path && (source === path || source === own?.source));
}
