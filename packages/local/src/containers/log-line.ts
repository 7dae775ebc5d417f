/**
 * Lines of a container's log file: `TIME STREAM TAG MESSAGE`, stamped where the output is read. The tag is F for a whole line and
 * P for a part that the next one goes on. Source: kubernetes cri-api, pkg/kubelet/kuberuntime/logs.
 */
import type { Clock } from "@longshore/runtime";

/** Where the output has come from. */
export type LogStream = "stdout" | "stderr";

/** Longest message of a line, in bytes; a longer one is kept in parts, as container runtimes do. */
const messageBytesMax = 16 * 1024;
/** Every stamp is as long: nine digits of the second, and UTC. */
const header = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (?:stdout|stderr) ([FP]) $/;
const headerBytes = "2026-01-01T00:00:00.000000000Z stdout F ".length;
const newline = 0x0a;

/** A line of a log file, without its newline. */
export interface LogLine {
  /** When it was read from the container; undefined: the line has no stamp, as those of earlier releases. */
  readonly time?: string;
  /** Whether the message ends here. */
  readonly isWhole: boolean;
  readonly message: Uint8Array;
}

/** The line as the file has it, with its newline. */
export function stampedLine(time: Date, stream: LogStream, message: string | Uint8Array, tag = "F"): Buffer {
  const stamp = `${time.toISOString().slice(0, -1)}000000Z`;
  return Buffer.concat([Buffer.from(`${stamp} ${stream} ${tag} `), Buffer.from(message), Buffer.from("\n")]);
}

/** Reads a line of the file. One without a stamp is all message. */
export function parseLogLine(line: Buffer): LogLine {
  const [, time, tag] = header.exec(line.toString("latin1", 0, headerBytes)) ?? [];
  if (time === undefined) return { isWhole: true, message: line };
  return { time, isWhole: tag === "F", message: line.subarray(headerBytes) };
}

/** The messages of a whole log file. */
export function messagesOf(text: string): string {
  return text
    .split(/(?<=\n)/)
    .map((line) => {
      const [all = "", , tag] = header.exec(line.slice(0, headerBytes)) ?? [];
      const message = line.slice(all.length);
      return tag === "P" ? message.replace(/\n$/, "") : message;
    })
    .join("");
}

/** What a stream of a container says, as lines of the log file. */
export interface OutputStamper {
  take(bytes: Buffer): void;
  /** The stream has ended: writes what is left without a newline. */
  end(): void;
}

/** Makes lines of a stream's bytes. Holds no more than the longest message. */
export function createOutputStamper(
  clock: Pick<Clock, "now">,
  stream: LogStream,
  write: (line: Buffer) => void,
): OutputStamper {
  let held = Buffer.alloc(0);
  return {
    take(bytes) {
      let rest = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
      for (;;) {
        const at = rest.subarray(0, messageBytesMax + 1).indexOf(newline);
        if (at >= 0) write(stampedLine(clock.now(), stream, rest.subarray(0, at)));
        else if (rest.length > messageBytesMax)
          write(stampedLine(clock.now(), stream, rest.subarray(0, messageBytesMax), "P"));
        else break;
        rest = rest.subarray(at >= 0 ? at + 1 : messageBytesMax);
      }
      held = Buffer.from(rest);
    },
    end() {
      if (held.length > 0) write(stampedLine(clock.now(), stream, held, "P"));
      held = Buffer.alloc(0);
    },
  };
}
