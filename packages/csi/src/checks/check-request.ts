/**
 * The checks of every request before a driver handles it: required fields, sizes of fields, no negative numbers.
 * Source: docs/behaviour/csi-spec-notes.md 2; spec.md, "Size Limits".
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { CsiStatusError } from "../errors.ts";

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

/** Limits that a driver has of its own. */
export interface RequestLimits {
  /** Bytes that a volume id may have; default 128. */
  readonly volumeIdBytesMax?: number;
}

/**
 * Checks a request.
 * @param required names of the protocol of the fields that must not be empty
 * @throws CsiStatusError INVALID_ARGUMENT when one of them is, or any field is too large or negative
 */
export function checkRequest<I extends DescMessage>(
  schema: I,
  request: MessageShape<I>,
  required: readonly string[],
  { volumeIdBytesMax = textBytesMax }: RequestLimits = {},
): void {
  const own = { ...limits, volume_id: volumeIdBytesMax, source_volume_id: volumeIdBytesMax };
  for (const name of required) checkPresent(schema, request, name);
  checkFields(schema, request as Fields, "", own);
}

/**
 * The path without slashes at its end.
 * @param name the field's, for the message
 * @throws CsiStatusError INVALID_ARGUMENT unless the path is absolute and has no `..`
 */
export function checkAbsolutePath(name: string, path: string): string {
  if (!path.startsWith("/") || path.includes("\0") || path.split("/").includes("..")) {
    throw new CsiStatusError("INVALID_ARGUMENT", `${name} is not an absolute path without ".."`);
  }
  return path.replace(/\/+$/, "") || "/";
}

/** @throws CsiStatusError INVALID_ARGUMENT when the name of a volume, snapshot or group holds control characters */
export function checkName(name: string): void {
  for (const char of name) {
    const code = char.codePointAt(0) ?? 0;
    // spec.md, CreateVolumeRequest.name: all control characters but the common white space are banned.
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
        // The limit is for all flags together (docs/behaviour/csi-spec-notes.md 2).
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
