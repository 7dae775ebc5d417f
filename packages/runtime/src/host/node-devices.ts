/** What is written straight to a block device, or to the file that stands for one. */
import * as fs from "node:fs/promises";
import { HostError } from "./host.ts";

/** Writes at the beginning, in place, and syncs. @throws HostError ENOTBLK when it is neither a block device nor, with `filesToo`, a file */
export async function writeInPlace(path: string, data: string, filesToo: boolean): Promise<void> {
  const file = await fs.open(path, "r+");
  try {
    const stat = await file.stat();
    if (!stat.isBlockDevice() && !(filesToo && stat.isFile()))
      throw new HostError("writeDevice", path, "ENOTBLK");
    const bytes = Buffer.from(data, "utf8");
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, at, bytes.length - at, at);
      at += bytesWritten;
    }
    await file.sync();
  } finally {
    await file.close();
  }
}
