/** `longshore cluster logs`: what the processes of a local cluster have logged, also of one that is stopped. */
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { foreignLines, systemClock } from "@longshore/runtime/basics";
import { makeOutputOptional, UsageError } from "../exit.ts";

/** What is shown of a log. */
export interface LogChoice {
  /** Lines from the end; all when left out. */
  readonly tail?: number;
  /** Goes on with what is written, until `signal` aborts. */
  readonly follow: boolean;
}

const pollMs = 250;
const pieceBytes = 64 * 1024;

/** The processes that have a log in the directory. */
export function loggedProcesses(logDir: string): readonly string[] {
  const files = readdirSync(logDir).filter((file) => file.endsWith(".log"));
  return files.map((file) => file.slice(0, -".log".length)).sort();
}

/** Writes a process's log to `write`. @throws UsageError when no process of this name has one */
export async function showLog(
  logDir: string,
  processName: string,
  { tail, follow }: LogChoice,
  write: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const known = loggedProcesses(logDir);
  if (!known.includes(processName)) {
    throw new UsageError(`no process "${processName}" has a log: choose one of ${known.join(", ")}`);
  }
  const file = openSync(`${logDir}/${processName}.log`, "r");
  try {
    const shown = new Lines(write);
    const whole = readFrom(file, 0);
    const at = tail === undefined ? 0 : lastLines(whole, tail);
    shown.add(whole.subarray(at));
    if (!follow) return shown.end();
    makeOutputOptional();
    for (let position = whole.length; !signal.aborted; ) {
      await systemClock.sleep(pollMs, signal).catch(() => {});
      // A file that has become shorter was begun again.
      if (fstatSync(file).size < position) position = 0;
      const more = readFrom(file, position);
      position += more.length;
      shown.add(more);
    }
  } finally {
    closeSync(file);
  }
}

/** Passes whole lines on, without what would steer a terminal. */
class Lines {
  readonly #write: (text: string) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  add(bytes: Buffer): void {
    const all = Buffer.concat([this.#rest, bytes]);
    const end = all.lastIndexOf("\n") + 1;
    this.#rest = all.subarray(end);
    if (end > 0) this.#write(shownText(all.subarray(0, end - 1)));
  }

  end(): void {
    if (this.#rest.length > 0) this.#write(shownText(this.#rest));
  }
}

const shownText = (bytes: Buffer) => `${foreignLines(bytes.toString("utf8"), Number.POSITIVE_INFINITY)}\n`;

function readFrom(file: number, position: number): Buffer {
  const pieces: Buffer[] = [];
  for (let at = position; ; ) {
    const piece = Buffer.alloc(pieceBytes);
    const count = readSync(file, piece, 0, pieceBytes, at);
    if (count === 0) return Buffer.concat(pieces);
    pieces.push(piece.subarray(0, count));
    at += count;
  }
}

/** Where the last lines begin. */
function lastLines(text: Buffer, count: number): number {
  let at = text.length;
  for (let lines = 0; lines < count && at > 0; lines++) {
    // A place before the first byte would be counted from the end.
    at = at < 2 ? 0 : text.lastIndexOf("\n", at - 2) + 1;
  }
  return count === 0 ? text.length : at;
}
