/**
 * Puts a driver's program where kubelets find it: under a name with a dot, which no prober sees, then renamed, so that it is never
 * run half written. Source: docs/behaviour/flexvolume.md 6.
 */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { UsageError } from "../../exit.ts";

/** What is installed where. */
export interface DriverInstallation {
  /** The program. */
  readonly file: string;
  /** The driver directory; made when it is missing. */
  readonly directory: string;
  /** Empty: the driver has none. */
  readonly vendor: string;
  readonly driver: string;
}

/** Installs the driver, or replaces it. @returns the path of its program */
export function installDriver({ file, directory, vendor, driver }: DriverInstallation): string {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  const own = join(realpathSync(directory), vendor === "" ? driver : `${vendor}~${driver}`);
  makeOwnDirectory(own);
  const hidden = join(own, `.${driver}`);
  const path = join(own, driver);
  // What an interrupted installation has left; a link that stands here is removed and not followed.
  rmSync(hidden, { force: true });
  try {
    copyFileSync(file, hidden);
    chmodSync(hidden, 0o755);
    sync(hidden);
    renameSync(hidden, path);
  } catch (error) {
    rmSync(hidden, { force: true });
    throw error;
  }
  sync(own);
  return path;
}

function makeOwnDirectory(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) {
    mkdirSync(path);
    chmodSync(path, 0o755);
  } else if (!stat.isDirectory()) {
    throw new UsageError(`${path} is not a directory: remove it, or choose another --dir`);
  }
}

function sync(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
