/** The messages of a log that a client asks for. Source: kubernetes pkg/kubelet/kuberuntime/logs, core/v1 PodLogOptions. */
import { parseLogLine } from "./log-line.ts";

/** Which messages, and how. */
export interface LogSelection {
  /** Each message with its time before it. One without a time has none. */
  readonly timestamps?: boolean;
  /** Leaves out what was said before, in milliseconds since 1970. What has no time stays. */
  readonly sinceMs?: number;
  /** Only so many bytes of the answer. */
  readonly limitBytes?: number;
}

/** More than a line with a stamp has: what is longer without a newline has none, and is passed on as it comes. */
const lineBytesMax = 32 * 1024;
const newline = 0x0a;
const endOfLine = Buffer.from("\n");

/** The asked messages of a log file. Ends, and with it the reading of the file, at the limit. */
export async function* selectLog(
  file: AsyncIterable<Uint8Array>,
  {
    timestamps = false,
    sinceMs = Number.NEGATIVE_INFINITY,
    limitBytes = Number.POSITIVE_INFINITY,
  }: LogSelection,
): AsyncGenerator<Uint8Array> {
  let goesOn = false;
  const select = (bytes: Buffer, end: Buffer): Buffer[] => {
    const { time, isWhole, message } = parseLogLine(bytes);
    if (time !== undefined && Date.parse(time) < sinceMs) return [];
    const stamp = timestamps && time !== undefined && !goesOn ? [Buffer.from(`${time} `)] : [];
    goesOn = !isWhole;
    return [...stamp, Buffer.from(message), ...(isWhole ? [end] : [])];
  };
  let leftBytes = limitBytes;
  for await (const parts of lines(file)) {
    const selected = Buffer.concat(select(parts.bytes, parts.isEnded ? endOfLine : Buffer.alloc(0)));
    if (selected.length > 0) yield selected.subarray(0, Math.max(0, Math.min(selected.length, leftBytes)));
    leftBytes -= selected.length;
    if (leftBytes <= 0) return;
  }
}

/** The lines of the file; one that is too long to be stamped comes in pieces, the last of them ended. */
async function* lines(
  file: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly bytes: Buffer; readonly isEnded: boolean }> {
  let held: Buffer = Buffer.alloc(0);
  for await (const bytes of file) {
    held = Buffer.concat([held, bytes]);
    for (let at = held.indexOf(newline); at >= 0; at = held.indexOf(newline)) {
      yield { bytes: held.subarray(0, at), isEnded: true };
      held = held.subarray(at + 1);
    }
    if (held.length > lineBytesMax) {
      yield { bytes: held, isEnded: false };
      held = Buffer.alloc(0);
    }
  }
  if (held.length > 0) yield { bytes: held, isEnded: false };
}
