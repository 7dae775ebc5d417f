/** The loop devices of a Linux machine, read from sysfs: faster than a program, and sees deleted files. */
import * as fs from "node:fs/promises";

/** A loop device that has a backing file. */
export interface LoopDevice {
  readonly path: string;
  /** Path of the file at the time it was attached. */
  readonly backingFile: string;
  /** `major:minor` */
  readonly deviceNumber: string;
}

/** All loop devices in use. */
export async function loopDevices(): Promise<readonly LoopDevice[]> {
  const names = (await fs.readdir("/sys/block").catch(() => [])).filter((name) => /^loop\d+$/.test(name));
  const devices = await Promise.all(names.map(readLoop));
  return devices.filter((device) => device !== undefined);
}

async function readLoop(name: string): Promise<LoopDevice | undefined> {
  try {
    const backing = await fs.readFile(`/sys/block/${name}/loop/backing_file`, "utf8");
    const deviceNumber = (await fs.readFile(`/sys/block/${name}/dev`, "utf8")).trim();
    const backingFile = backing.replace(/\n$/, "").replace(/ \(deleted\)$/, "");
    return { path: `/dev/${name}`, backingFile, deviceNumber };
  } catch {
    return undefined; // Not in use, or gone while it was read.
  }
}
