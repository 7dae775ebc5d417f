/** The bytes of an input as text of manifests: decompressed where they are gzip, refused where they are no text. */

import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";

/** Where manifests come from. */
export interface ManifestInput {
  /** Names the input in messages. */
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** An input that cannot be read as manifests. */
export class ManifestInputError extends Error {
  override readonly name = "ManifestInputError";
}

/** How files begin that hold no UTF-8 text. */
const otherForms: readonly (readonly [form: string, remedy: string, ...bytes: number[]])[] = [
  ["zstd-compressed", "decompress it first", 0x28, 0xb5, 0x2f, 0xfd],
  ["xz-compressed", "decompress it first", 0xfd, 0x37, 0x7a, 0x58, 0x5a],
  ["bzip2-compressed", "decompress it first", 0x42, 0x5a, 0x68],
  ["a zip archive", "unpack it first", 0x50, 0x4b, 0x03, 0x04],
  ["UTF-16 text", "convert it to UTF-8 first", 0xff, 0xfe],
  ["UTF-16 text", "convert it to UTF-8 first", 0xfe, 0xff],
];
/** As many bytes as the longest of them. */
const HEAD_LENGTH = 5;

/**
 * The text of `input`, as bytes.
 * @throws ManifestInputError for another compression, UTF-16 and binary files; and what reading it throws
 */
export async function* textBytes(input: ManifestInput): AsyncGenerator<Uint8Array> {
  const chunks = input.bytes[Symbol.asyncIterator]();
  let head: Uint8Array = new Uint8Array();
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    // A pipe may deliver fewer bytes at a time than the longest signature has.
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
    if (head.length >= HEAD_LENGTH) break;
  }
  const whole = rejoined(head, chunks);
  if (head[0] === 0x1f && head[1] === 0x8b) {
    yield* checked(input.name, decompressed(input.name, whole));
    return;
  }
  for (const [form, remedy, ...bytes] of otherForms) {
    if (bytes.every((byte, i) => head[i] === byte)) {
      throw new ManifestInputError(`${input.name} is ${form}: ${remedy}`);
    }
  }
  yield* checked(input.name, whole);
}

async function* rejoined(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* decompressed(name: string, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(bytes);
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  try {
    for await (const chunk of source.pipe(gunzip)) yield chunk;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith("Z_")) throw error;
    throw new ManifestInputError(`${name} is not sound gzip (${message}): fetch it again`, { cause: error });
  }
}

/** Text holds no NUL; a tar archive or a program does. */
async function* checked(name: string, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    if (chunk.includes(0)) throw new ManifestInputError(`${name} is not text: give YAML or JSON`);
    yield chunk;
  }
}
