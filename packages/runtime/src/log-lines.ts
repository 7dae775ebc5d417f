/** How a log line is written: as one JSON object, or plainly for people. Pure functions; no field can make them fail. */
import type { LogFields } from "./logger.ts";

/** The fields as the members of a JSON object, `,"node":"a","attempt":2`; empty for none. */
export function fieldsText(fields: LogFields | undefined): string {
  if (fields === undefined) return "";
  const text = objectText(fields);
  return text === "{}" ? "" : `,${text.slice(1, -1)}`;
}

function objectText(fields: LogFields): string {
  const plain = plainFields(fields);
  try {
    return JSON.stringify(plain);
  } catch {
    // It holds what JSON refuses; seldom enough to be looked for only then.
  }
  try {
    return JSON.stringify(plain, tamed());
  } catch (error) {
    return JSON.stringify({ unwritable: Object.keys(plain).join(), because: String(error) });
  }
}

/** Replaces what JSON refuses deep in a value: big integers become text, and so does an object within itself. */
function tamed() {
  const around: unknown[] = [];
  return function (this: unknown, _name: string, value: unknown): unknown {
    if (typeof value === "bigint") return value.toString();
    if (typeof value !== "object" || value === null) return value;
    while (around.length > 0 && around.at(-1) !== this) around.pop();
    if (around.includes(value)) return "[circular]";
    around.push(value);
    return value;
  };
}

/** What JSON cannot hold becomes what it can: errors with their causes, big integers as text. */
function plainFields(fields: LogFields | undefined): Record<string, unknown> {
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
export function humanLine(json: string): string {
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
