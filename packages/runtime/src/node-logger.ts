/** The real form of the {@link Logger} seam: JSON lines for machines, plain lines for people. */
import { writeSync } from "node:fs";
import type { Clock } from "./clock.ts";
import { fieldsText, humanLine } from "./log-lines.ts";
import type { LogFields, Logger } from "./logger.ts";
import { systemClock } from "./system-clock.ts";

/** How severe a line is. */
export type LogLevel = (typeof levels)[number];

const levels = ["debug", "info", "warn", "error"] as const;

/** Options of {@link createLogger}. */
export interface LoggerOptions {
  /** One JSON object a line, or a plain line. */
  readonly format: "json" | "human";
  /** Lines below it are dropped. */
  readonly level: LogLevel;
  /** Where the lines go; default standard error. */
  readonly destination?: { write(line: string): void };
  /** Source of the time stamps; default the machine's clock. */
  readonly clock?: Pick<Clock, "now">;
}

/** A logger that writes each line before the call returns. */
export function createLogger(options: LoggerOptions): Logger {
  const { format, level, clock = systemClock, destination = standardError() } = options;
  const least = levels.indexOf(level);
  const isShown = (at: LogLevel) => levels.indexOf(at) >= least;
  const write = (line: string) => destination.write(format === "json" ? line : `${humanLine(line)}\n`);
  /** @param bound what a child's lines have before their own fields */
  const bound = (before: string): Logger => {
    const at = (severity: LogLevel) => {
      if (!isShown(severity)) return () => {};
      return (message: string, fields?: LogFields) => {
        const time = clock.now().toISOString();
        const said = JSON.stringify(message);
        write(`{"level":"${severity}","time":"${time}"${before}${fieldsText(fields)},"message":${said}}\n`);
      };
    };
    return {
      debugs: isShown("debug"),
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      child: (fields) => bound(before + fieldsText(fields)),
    };
  };
  return bound("");
}

/** How long a reader that is behind is waited for before the rest of a line is offered again. */
const behindMs = 5;

/** Standard error, written at once. What cannot be written is lost: a log must bring nothing down. */
function standardError(): { write(line: string): void } {
  const never = new Int32Array(new SharedArrayBuffer(4));
  return {
    write(line) {
      for (let left = Buffer.from(line); left.length > 0; ) {
        try {
          left = left.subarray(writeSync(2, left));
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException;
          if (code !== "EAGAIN" && code !== "EINTR") return;
          // A pipe that is full: its reader needs a moment, and this thread has none to give but its own.
          Atomics.wait(never, 0, 0, behindMs);
        }
      }
    },
  };
}
