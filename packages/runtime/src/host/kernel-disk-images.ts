/**
 * Backing files that keep their disk space, and checks of file systems before they are mounted.
 *
 * A loop device passes on that blocks are not needed any more (discard), or must be zeros, by punching holes into its
 * backing file. A later write there needs new disk space, which a full disk does not have: an acknowledged write would
 * be lost. So such devices discard nothing, and write zeros instead of punching holes.
 * Source: kernel, drivers/block/loop.c, lo_fallocate; Documentation/ABI/stable/sysfs-block.
 */
import * as fs from "node:fs/promises";
import { HostError } from "./host.ts";
import { baseOf, parentOf } from "./host-paths.ts";
import { syncDirectory } from "./node-files.ts";
import { runTool, ToolError } from "./node-programs.ts";
import { hostStep } from "./to-host-error.ts";

/** Where the file system cannot allocate, each block is written. */
const allocateTimeoutMs = 600_000;
/** The unit of st_blocks. Source: stat(2). */
const blockBytes = 512;

/** What is left to others on the disk, in bytes: who has filled it could not even say so. */
const spareBytes = 16 * 1024 * 1024;

/** See `Host.allocateFile`. What fails leaves the file with the size that it had. */
export function allocate(path: string, sizeBytes: number): Promise<void> {
  return hostStep("allocateFile", path, async () => {
    await requireRoom(path, sizeBytes);
    const file = await fs.open(path, "a", 0o600);
    try {
      const before = (await file.stat()).size;
      try {
        const length = String(Math.max(before, sizeBytes));
        // With --posix it writes where the file system cannot allocate, and never over what is there.
        await runTool("allocateFile", path, "fallocate", ["--posix", "--length", length, path], {
          timeoutMs: allocateTimeoutMs,
        });
      } catch (error) {
        await file.truncate(before);
        throw error;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await syncDirectory(parentOf(path));
  });
}

/** Asked first: a file system may take all the room there is before it says that it is not enough. */
async function requireRoom(path: string, sizeBytes: number): Promise<void> {
  const present = await fs.stat(path).catch(() => undefined);
  const missingBytes = sizeBytes - (present?.blocks ?? 0) * blockBytes;
  if (missingBytes <= 0) return;
  const { bavail, bsize } = await fs.statfs(parentOf(path));
  if (missingBytes + spareBytes > bavail * bsize) throw new HostError("allocateFile", path, "ENOSPC");
}

/** Keeps the loop device from giving back room of its backing file. What the kernel does not offer is left out. */
export async function keepRoom(device: string): Promise<void> {
  const queue = `/sys/block/${baseOf(device)}/queue`;
  for (const limit of ["discard_max_bytes", "write_zeroes_unmap_max_bytes"]) {
    await fs.writeFile(`${queue}/${limit}`, "0").catch(() => {});
  }
}

/** The same for a mounted ext4 on older kernels. Source: kernel, Documentation/ABI/testing/sysfs-fs-ext4. */
export async function keepRoomMounted(device: string): Promise<void> {
  const real = await fs.realpath(device).catch(() => device);
  await fs.writeFile(`/sys/fs/ext4/${baseOf(real)}/extent_max_zeroout_kb`, "0").catch(() => {});
}

/** Bits of the exit code of e2fsck(8): errors were corrected; some were left. */
const corrected = 1;
const correctedRestart = 2;
const uncorrected = 4;

const everyCode = Array.from({ length: 256 }, (_, code) => code);

/** How e2fsck(8) ended; 0 where it is not installed, and mounting has to do without it, as upstream does. */
async function exitCodeOf(device: string): Promise<number> {
  let code = 0;
  const onCode = (ended: number) => {
    code = ended;
  };
  const options = { okCodes: everyCode, onCode };
  await runTool("checkFileSystem", device, "e2fsck", ["-p", device], options).catch((error: unknown) => {
    if (!(error instanceof HostError && error.code === "ENOSYS")) throw error;
  });
  return code;
}

/** See `Host.checkFileSystem`. */
export async function check(device: string, fsType: string | undefined): Promise<boolean> {
  // xfs and btrfs find errors, and repeat their log, when they are mounted. Source: fsck.xfs(8), fsck.btrfs(8).
  if (fsType === undefined || !fsType.startsWith("ext")) return false;
  const code = await exitCodeOf(device);
  if ((code & uncorrected) !== 0) {
    const cause = new ToolError(
      `the ${fsType} on ${device} has errors that need a decision: run "e2fsck ${device}" while it is mounted nowhere`,
    );
    throw new HostError("checkFileSystem", device, "EUCLEAN", cause);
  }
  // Any other failure (e.g. it is mounted) says nothing about the file system; the mount shows whether it is sound.
  // Source: upstream SafeFormatAndMount, checkAndRepairFilesystem.
  return (code & ~(corrected | correctedRestart)) === 0 && code !== 0;
}
