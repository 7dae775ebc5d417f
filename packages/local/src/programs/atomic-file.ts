/** Small files of programs that cannot wait for promises: all or nothing, also when power is lost. Real form. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Replaces the file (mode 0600): writes a temporary file in its directory, syncs, renames, syncs the directory. A
 * failure leaves the old file unchanged.
 */
export function writeFileAtomicSync(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    const file = openSync(temporary, "w", 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  const directory = openSync(dirname(path), "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
