/** The seam for structured logs. Secrets never enter a log: callers redact before they log. */

/** The fields of a log line. An `error` field is written with its chain of causes. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured log lines. */
export interface Logger {
  /** False when debug lines are discarded, so that callers need not build them. */
  readonly debugs?: boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to each of its lines. */
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
