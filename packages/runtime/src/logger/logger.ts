/** The seam for structured logs. Secrets never enter a log: callers redact before they log. */

/** The fields of a log line. An `error` field is written with its chain of causes. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Writes structured log lines, in the order of the calls. No call throws or waits, whatever the fields hold: a line that
 * cannot be written is lost. Fields of a line win over those of its logger.
 */
export interface Logger {
  /** False when debug lines are discarded, so that callers need not build them. */
  readonly debugs?: boolean;
  /** What normal work does, for those who look into it. */
  debug(message: string, fields?: LogFields): void;
  /** What has changed for good: something started, was lost or was found. */
  info(message: string, fields?: LogFields): void;
  /** What failed and is tried again, or may need a look. */
  warn(message: string, fields?: LogFields): void;
  /** What failed and is not tried again by itself. */
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to each of its lines; this one stays as it is. */
  child(fields: LogFields): Logger;
}

/** Drops every line. */
export const silentLogger: Logger = {
  debugs: false,
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

/** The messages of an error and of its causes, outermost first, on one line. */
export function errorChain(error: unknown): string {
  const parts: string[] = [];
  for (let e: unknown = error, depth = 0; e !== undefined && e !== null && depth < 10; depth++) {
    parts.push(e instanceof Error ? e.message : String(e));
    e = e instanceof Error ? e.cause : undefined;
  }
  return parts.join(": ");
}
