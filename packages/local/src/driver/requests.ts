/**
 * What every request is held to before a handler sees it: required fields, sizes of fields, no negative
 * numbers. Source: csi-spec-notes.md §2; spec.md, "Size Limits".
 */
import { CsiStatusError, type DescMessage, type MessageShape } from "@longshore/csi";
import { answering } from "./statuses.ts";

const textBytesMax = 128;
const mapBytesMax = 4096;
/** What Linux takes; the spec wants at least 128. */
const pathBytesMax = 4096;

/** Limits of single fields, by their name in the protocol. A token that is none has an answer of its own. */
const limits: Readonly<Record<string, number>> = {
  staging_target_path: pathBytesMax,
  target_path: pathBytesMax,
  volume_path: pathBytesMax,
  node_id: 256,
  starting_token: Number.POSITIVE_INFINITY,
};

type Handler<I extends DescMessage, O> = (request: MessageShape<I>, signal: AbortSignal) => Promise<O>;

/**
 * Makes a handler out of what it does with a valid request: it answers INVALID_ARGUMENT when one of the `required`
 * fields (names of the protocol) is empty or any field is too large or negative, and turns failures of cloud and
 * machine into statuses.
 */
export type RequestChecks = <I extends DescMessage, O>(
  schema: I,
  required: readonly string[],
  handler: Handler<I, O>,
) => Handler<I, O>;

/** Options of {@link requestChecks}. */
export interface RequestLimits {
  /** Bytes that a volume id may have; default 128. */
  readonly volumeIdBytesMax?: number;
}

/** Checks for one service. */
export function requestChecks({ volumeIdBytesMax = textBytesMax }: RequestLimits = {}): RequestChecks {
  const own = { ...limits, volume_id: volumeIdBytesMax, source_volume_id: volumeIdBytesMax };
  return (schema, required, handler) => (request, signal) =>
    answering(async () => {
      for (const name of required) checkPresent(schema, request, name);
      checkFields(schema, request as Fields, "", own);
      return handler(request, signal);
    });
}

/** @throws CsiStatusError INVALID_ARGUMENT unless the path is absolute and has no `..` */
export function checkPath(name: string, path: string): string {
  if (!path.startsWith("/") || path.includes("\0") || path.split("/").includes("..")) {
    throw new CsiStatusError("INVALID_ARGUMENT", `${name} is not an absolute path without ".."`);
  }
  return path.length > 1 ? path.replace(/\/+$/, "") || "/" : path;
}

/** @throws CsiStatusError INVALID_ARGUMENT when the name holds characters that names may not have */
export function checkName(name: string): void {
  for (const char of name) {
    const code = char.codePointAt(0) ?? 0;
    const isSpace = code === 0x09 || code === 0x0a || code === 0x0d;
    if ((code < 0x20 && !isSpace) || (code >= 0x7f && code <= 0x9f)) {
      throw new CsiStatusError("INVALID_ARGUMENT", "name holds control characters");
    }
  }
}

type Fields = Readonly<Record<string, unknown>>;
type Field = DescMessage["fields"][number];

function checkPresent(schema: DescMessage, request: object, name: string): void {
  const field = schema.fields.find((candidate) => candidate.name === name);
  const value = field === undefined ? undefined : (request as Fields)[field.localName];
  const isEmpty =
    value === undefined ||
    value === "" ||
    (Array.isArray(value) && value.length === 0) ||
    (field?.fieldKind === "map" && Object.keys(value as object).length === 0);
  if (isEmpty) throw new CsiStatusError("INVALID_ARGUMENT", `${name} is required`);
}

function checkFields(
  schema: DescMessage,
  message: Fields,
  path: string,
  own: Readonly<Record<string, number>>,
): void {
  for (const field of schema.fields)
    checkField(field, chosenValue(field, message), `${path}${field.name}`, own);
}

function chosenValue(field: Field, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const chosen = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === field.localName ? chosen.value : undefined;
}

function checkField(field: Field, value: unknown, name: string, own: Readonly<Record<string, number>>): void {
  if (value === undefined) return;
  if (field.fieldKind === "message") checkFields(field.message, value as Fields, `${name}.`, own);
  else if (field.fieldKind === "map") checkMap(value as Readonly<Record<string, unknown>>, name);
  else if (field.fieldKind === "list") {
    const list = value as readonly unknown[];
    if (field.listKind === "message") {
      list.forEach((entry, index) => {
        checkFields(field.message, entry as Fields, `${name}[${index}].`, own);
      });
    } else if (field.name === "mount_flags") {
      checkBytes(
        list.reduce<number>((sum, flag) => sum + bytesOf(String(flag)), 0),
        mapBytesMax,
        name,
      );
    } else for (const entry of list) checkScalar(entry, textBytesMax, name);
  } else checkScalar(value, own[field.name] ?? textBytesMax, name);
}

function checkScalar(value: unknown, bytesMax: number, name: string): void {
  if (typeof value === "string") checkBytes(bytesOf(value), bytesMax, name);
  else if ((typeof value === "bigint" || typeof value === "number") && value < 0) {
    throw new CsiStatusError("INVALID_ARGUMENT", `${name} is negative`);
  }
}

function checkMap(map: Readonly<Record<string, unknown>>, name: string): void {
  const bytes = Object.entries(map).reduce((sum, [key, v]) => sum + bytesOf(key) + bytesOf(String(v)), 0);
  checkBytes(bytes, mapBytesMax, name);
}

/** The text says nothing of the value: it may be a secret. */
function checkBytes(bytes: number, bytesMax: number, name: string): void {
  if (bytes <= bytesMax) return;
  throw new CsiStatusError("INVALID_ARGUMENT", `${name} has ${bytes} bytes, at most ${bytesMax} are allowed`);
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
