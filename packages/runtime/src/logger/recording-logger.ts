/** The virtual form of the {@link Logger} seam: lines are kept for a test or a simulation to look at. */
import type { LogFields, Logger } from "./logger.ts";

/** One line as it was logged. */
export interface RecordedLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  /** The fields of the logger and of the line. */
  readonly fields: LogFields;
}

/** A logger whose lines can be read. */
export interface RecordingLogger extends Logger {
  /** All lines so far, of this logger and its children, in order. */
  readonly lines: readonly RecordedLine[];
}

/** Keeps every line. @param tap called with each line */
export function recordingLogger(tap: (line: RecordedLine) => void = () => {}): RecordingLogger {
  const lines: RecordedLine[] = [];
  return Object.assign(recorder(lines, tap, {}), { lines });
}

function recorder(lines: RecordedLine[], tap: (line: RecordedLine) => void, base: LogFields): Logger {
  const record = (level: RecordedLine["level"]) => (message: string, fields?: LogFields) => {
    const line = { level, message, fields: { ...base, ...fields } };
    lines.push(line);
    tap(line);
  };
  return {
    debug: record("debug"),
    info: record("info"),
    warn: record("warn"),
    error: record("error"),
    child: (fields) => recorder(lines, tap, { ...base, ...fields }),
  };
}
