/**
 * Holding still what writes to loop devices while their backing files are copied: a mounted file system is
 * frozen, which also writes back what it has in memory; a device that programs write to directly cannot be
 * frozen, so that the copy is made again until nothing was written during it.
 *
 * Invariant: a file system that is frozen is held open until it is thawed. One that was unmounted while it is frozen would stay so
 * for good, with its device busy, and nothing could name it any more.
 */
import * as fs from "node:fs/promises";
import { deviceNumberOf } from "./device-number.ts";
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
  const held: fs.FileHandle[] = [];
  const open: LoopDevice[] = [];
  try {
    for (const device of devices) {
      const own = mounts.filter((info) => info.deviceNumber === device.deviceNumber && !info.readOnly);
      // A part of a file system may be bound to a file, and only a directory can be named to be frozen.
      const mount = own.find((info) => info.root === "/") ?? own[0];
      const file = mount === undefined ? undefined : await heldOpen(mount);
      if (mount === undefined || file === undefined) open.push(device);
      else {
        held.push(file);
        await freeze(mount.target, file);
      }
    }
    for (let attempt = 1; ; attempt++) {
      const before = await writesTo(open);
      await copy();
      if (before === (await writesTo(open))) return;
      if (attempt === attemptsMax) throw new HostError("copyDisks", open[0]?.path ?? "", "EAGAIN");
    }
  } finally {
    for (const file of held) await thaw(file).finally(() => file.close());
  }
}

/** Opens the root of the mount, so that it stays mounted; undefined: it has been unmounted meanwhile. */
async function heldOpen({ target, deviceNumber }: MountInfo): Promise<fs.FileHandle | undefined> {
  const file = await fs.open(target, "r").catch(() => undefined);
  if (file === undefined) return undefined;
  const { dev } = await file.stat({ bigint: true });
  if (deviceNumberOf(dev) === deviceNumber) return file;
  await file.close();
  return undefined;
}

/** By this name a program that is run opens what is open here, whatever is mounted by now. */
const pathOf = (file: fs.FileHandle) => `/proc/${process.pid}/fd/${file.fd}`;

/** One that is frozen was left so by a copy that was killed: it is as good. */
async function freeze(target: string, file: fs.FileHandle): Promise<void> {
  await runTool("copyDisks", target, "fsfreeze", ["--freeze", pathOf(file)]).catch((error: unknown) => {
    if (!(error instanceof HostError && error.code === "EBUSY")) throw error;
  });
}

async function thaw(file: fs.FileHandle): Promise<void> {
  await runTool("copyDisks", pathOf(file), "fsfreeze", ["--unfreeze", pathOf(file)]).catch(
    (error: unknown) => {
      if (!(error instanceof HostError && error.code === "EINVAL")) throw error;
    },
  );
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
