/** The real form of the {@link Logger} seam, on pino: JSON lines for machines, plain lines for people. */
import {
  type DestinationStream,
  type Logger as PinoLogger,
  pino,
  destination as pinoDestination,
} from "pino";
import type { Clock } from "./clock.ts";
import type { LogFields, Logger } from "./logger.ts";
import { systemClock } from "./system-clock.ts";

/** How severe a line is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

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
  const clock = options.clock ?? systemClock;
  const sink: DestinationStream = options.destination ?? pinoDestination({ fd: 2, sync: true });
  const stream =
    options.format === "json" ? sink : { write: (line: string) => sink.write(`${humanLine(line)}\n`) };
  const settings = {
    level: options.level,
    base: null,
    messageKey: "message",
    timestamp: () => `,"time":"${clock.now().toISOString()}"`,
    formatters: { level: (level: string) => ({ level }) },
  };
  return wrap(pino(settings, stream));
}

function wrap(logger: PinoLogger): Logger {
  const debugs = logger.isLevelEnabled("debug");
  return {
    debugs,
    debug(message, fields) {
      if (debugs) logger.debug(plainFields(fields), message);
    },
    info: (message, fields) => logger.info(plainFields(fields), message),
    warn: (message, fields) => logger.warn(plainFields(fields), message),
    error: (message, fields) => logger.error(plainFields(fields), message),
    child: (fields) => wrap(logger.child(plainFields(fields))),
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

/** `12:00:00.123 WARN  component: message field=value error="outer: inner"` */
function humanLine(json: string): string {
  const { level, time, message, component, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clock = String(time).slice(11, 23);
  const prefix = component === undefined ? "" : `${component}: `;
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${humanValue(value)}`);
  return `${clock} ${String(level).toUpperCase().padEnd(5)} ${prefix}${message}${rest.join("")}`;
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
