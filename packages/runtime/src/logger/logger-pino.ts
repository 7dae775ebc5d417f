/**
 * The real form of the {@link Logger} seam, on pino: JSON lines for machines, plain lines for people.
 *
 * Invariant: a line that cannot be written (e.g. full disk) neither ends nor blocks the process; see `lossy-lines.ts`.
 */
import { createRequire } from "node:module";
import type { Logger as PinoLogger } from "pino";
import type { Clock } from "../clock/clock.ts";
import { passingTimer, systemClock } from "../clock/system-clock.ts";
import { foreignText } from "../foreign-text.ts";
import type { LogFields, Logger } from "./logger.ts";
import { LossyLines, type WriteSome } from "./lossy-lines.ts";
import { appendToFile, atExit, writeToStandardError } from "./node-log-sink.ts";

const require = createRequire(import.meta.url);

/** How severe a line is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

const severities: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Options of {@link createLogger}. */
export interface LoggerOptions {
  /** One JSON object a line, or a plain line. */
  readonly format: "json" | "human";
  /** Lines below it are dropped. */
  readonly level: LogLevel;
  /** Where the lines go: what takes them, or the path of a file; default standard error. */
  readonly destination?: { write(line: string): void } | string;
  /** Source of the time stamps; default the machine's clock. */
  readonly clock?: Pick<Clock, "now">;
}

/**
 * A logger that writes each line before the call returns, or drops it where that is not possible. Its library is loaded
 * with the first line that is written.
 */
export function createLogger(options: LoggerOptions): Logger {
  let logger: PinoLogger | undefined;
  return wrap(severities[options.level], () => {
    logger ??= pinoLogger(options);
    return logger;
  });
}

function pinoLogger(options: LoggerOptions): PinoLogger {
  // Loaded by `require`, since the call that needs it cannot wait.
  const { pino } = require("pino") as typeof import("pino");
  const clock = options.clock ?? systemClock;
  const inFormat = (line: string) => (options.format === "json" ? line : `${humanLine(line)}\n`);
  const lines = new LossyLines({
    write: writerOf(options.destination),
    timer: passingTimer,
    lostLine: (lost) => {
      const time = clock.now().toISOString();
      return inFormat(`${JSON.stringify({ level: "warn", time, message: lostMessage, lost })}\n`);
    },
  });
  if (options.destination === undefined) atExit(() => lines.flush());
  const stream = { write: (line: string) => lines.write(inFormat(line)) };
  const settings = {
    level: options.level,
    base: null,
    messageKey: "message",
    timestamp: () => `,"time":"${clock.now().toISOString()}"`,
    formatters: { level: (level: string) => ({ level }) },
  };
  return pino(settings, stream);
}

const lostMessage = "log lines before this one could not be written and are lost";

function writerOf(destination: LoggerOptions["destination"]): WriteSome {
  if (destination === undefined) return writeToStandardError();
  if (typeof destination === "string") return appendToFile(destination);
  return (bytes) => {
    destination.write(Buffer.from(bytes).toString("utf8"));
    return bytes.length;
  };
}

function wrap(least: number, loggerOf: () => PinoLogger): Logger {
  const at = (level: LogLevel) => {
    if (severities[level] < least) return () => {};
    return (message: string, fields?: LogFields) => loggerOf()[level](plainFields(fields), message);
  };
  return {
    debugs: severities.debug >= least,
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child(fields) {
      const plain = plainFields(fields);
      let child: PinoLogger | undefined;
      return wrap(least, () => {
        child ??= loggerOf().child(plain);
        return child;
      });
    },
  };
}

/** What JSON cannot hold becomes what it can: errors with their causes, big integers as text. */
export function plainFields(fields: LogFields | undefined): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields ?? {})) plain[name] = plainValue(value);
  return plain;
}

function plainValue(value: unknown): unknown {
  if (value instanceof Error) return plainError(value, 0);
  return typeof value === "bigint" ? value.toString() : value;
}

interface PlainError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: PlainError | string;
}

const causesMax = 10;

/** The error with its chain of causes; the stack is that of the outermost. */
function plainError(error: Error, depth: number): PlainError {
  const code = (error as { readonly code?: unknown }).code;
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === "string" || typeof code === "number" ? { code: String(code) } : {}),
    ...(depth === 0 && error.stack !== undefined ? { stack: error.stack } : {}),
    ...(error.cause === undefined || error.cause === null || depth >= causesMax
      ? {}
      : { cause: error.cause instanceof Error ? plainError(error.cause, depth + 1) : String(error.cause) }),
  };
}

/** `12:00:00.123 WARN  component: message field=value error="outer: inner"`, whatever is in it. */
function humanLine(json: string): string {
  const { level, time, message, component, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clock = String(time).slice(11, 23);
  const prefix = component === undefined ? "" : `${component}: `;
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${humanValue(value)}`);
  const line = `${clock} ${String(level).toUpperCase().padEnd(5)} ${prefix}${message}${rest.join("")}`;
  return foreignText(line, Number.POSITIVE_INFINITY);
}

function humanValue(value: unknown): string {
  if (isPlainError(value)) return JSON.stringify(chainOf(value));
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return value;
  return JSON.stringify(value);
}

function isPlainError(value: unknown): value is PlainError {
  return typeof value === "object" && value !== null && "name" in value && "message" in value;
}

function chainOf(error: PlainError): string {
  if (error.cause === undefined) return error.message;
  return `${error.message}: ${typeof error.cause === "string" ? error.cause : chainOf(error.cause)}`;
}
