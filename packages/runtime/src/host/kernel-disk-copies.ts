/**
 * Holding still what writes to loop devices while their backing files are copied: a mounted file system is
 * frozen, which also writes back what it has in memory; a device that programs write to directly cannot be
 * frozen, so that the copy is made again until nothing was written during it.
 */
import * as fs from "node:fs/promises";
import { HostError } from "./host.ts";
import { baseOf } from "./host-paths.ts";
import type { LoopDevice } from "./kernel-loop-devices.ts";
import type { MountInfo } from "./mount-info.ts";
import { runTool } from "./node-programs.ts";
import { hostStep } from "./to-host-error.ts";

const attemptsMax = 5;

/** Runs `copy` once or more; its last run saw no write. @throws HostError with EAGAIN when each run saw one */
export async function whileUnwritten(
  devices: readonly LoopDevice[],
  mounts: readonly MountInfo[],
  copy: () => Promise<void>,
): Promise<void> {
  const frozen: string[] = [];
  const open: LoopDevice[] = [];
  try {
    for (const device of devices) {
      const own = mounts.filter((info) => info.deviceNumber === device.deviceNumber && !info.readOnly);
      // A part of a file system may be bound to a file, and only a directory can be named to be frozen.
      const mount = own.find((info) => info.root === "/") ?? own[0];
      if (mount === undefined) open.push(device);
      else {
        frozen.push(mount.target);
        await freeze(mount.target);
      }
    }
    for (let attempt = 1; ; attempt++) {
      const before = await writesTo(open);
      await copy();
      if (before === (await writesTo(open))) return;
      if (attempt === attemptsMax) throw new HostError("copyDisks", open[0]?.path ?? "", "EAGAIN");
    }
  } finally {
    for (const target of frozen) await thaw(target);
  }
}

/** One that is frozen was left so by a copy that was killed: it is as good. */
async function freeze(target: string): Promise<void> {
  await runTool("copyDisks", target, "fsfreeze", ["--freeze", target]).catch((error: unknown) => {
    if (!(error instanceof HostError && error.code === "EBUSY")) throw error;
  });
}

async function thaw(target: string): Promise<void> {
  await runTool("copyDisks", target, "fsfreeze", ["--unfreeze", target]).catch((error: unknown) => {
    if (!(error instanceof HostError && error.code === "EINVAL")) throw error;
  });
}

/** How many writes the devices have seen, with those that were still in memory. */
async function writesTo(devices: readonly LoopDevice[]): Promise<string> {
  const counts: string[] = [];
  for (const { path } of devices) {
    await runTool("copyDisks", path, "blockdev", ["--flushbufs", path]);
    // Field 5: writes completed. Source: kernel, Documentation/block/stat.rst.
    const stat = await hostStep("copyDisks", path, () =>
      fs.readFile(`/sys/block/${baseOf(path)}/stat`, "utf8"),
    );
    counts.push(stat.trim().split(/\s+/)[4] ?? "");
  }
  return counts.join(" ");
}
