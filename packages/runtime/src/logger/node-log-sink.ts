/**
 * Where log lines go on the machine: standard error, or a file. Real form.
 *
 * A pipe or terminal without a reader would block the writer. So it is opened a second time, non-blocking; the file
 * description that other programs share stays unchanged. A socket cannot be opened this way, and may block.
 */
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import type { WriteSome } from "./lossy-lines.ts";

const standardError = 2;

/** Writes to standard error. */
export function writeToStandardError(): WriteSome {
  let file: number | undefined;
  return (bytes) => {
    file ??= withoutWaiting(standardError);
    return writeSync(file, bytes);
  };
}

/** Appends to a file, made with mode 0600 when there is none; opened with the first line, and again where that failed. */
export function appendToFile(path: string): WriteSome {
  let file: number | undefined;
  return (bytes) => {
    file ??= openSync(path, "a", 0o600);
    return writeSync(file, bytes);
  };
}

/** Runs `work`, which may not wait, as the last thing that this process does. */
export function atExit(work: () => void): void {
  process.once("exit", work);
}

function withoutWaiting(fd: number): number {
  let own: number | undefined;
  try {
    const stat = fstatSync(fd);
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return fd;
    own = openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    if (fstatSync(own).rdev === stat.rdev) return own;
  } catch {
    // Not on this system: then as it is.
  }
  if (own !== undefined) closeSync(own);
  return fd;
}
