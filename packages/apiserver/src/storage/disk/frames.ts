/**
 * The pieces of which the store's files are made: a first line that names the format, then frames.
 * A frame is a head of 32 bytes and its content, both under a checksum, so that a changed bit
 * anywhere is noticed, and the end of what was written is known from what comes behind it.
 *
 * ```text
 * 0 magic  4 kind  8 length of the content  12 number of the file  16 synced (double)  24 checksum of the content  28 checksum of the head
 * ```
 *
 * `synced` is the length up to which the file was surely on the disk when the frame was made.
 */
import { crc32 } from "node:zlib";

/** What a frame holds. */
export const frameKinds = { records: 1, base: 2, end: 3, about: 4, mark: 5 } as const;

/** The version of the format of the files. */
export const formatVersion = 1;

/** Length of a frame without its content, in bytes. */
export const headBytes = 32;

/** No text has these bytes, so no object can hold what looks like a frame. */
const magic = Buffer.from([0xff, 0x4c, 0x53, 0xfe]);

/** One frame. */
export interface Frame {
  readonly kind: number;
  /** Place of its first byte, and of the first byte behind it. */
  readonly start: number;
  readonly end: number;
  readonly synced: number;
  readonly content: Buffer;
}

/** The first line of every file. */
export const firstLine: Buffer = lineOf(formatVersion);

function lineOf(format: number): Buffer {
  return Buffer.from(`${`longshore store, format ${format}`.padEnd(31)}\n`);
}

/** The format that a file's first bytes name; undefined when they name none. */
export function formatOf(bytes: Buffer): number | undefined {
  const text = bytes.subarray(0, firstLine.length).toString("latin1");
  const format = /^longshore store, format (\d{1,6}) *\n$/.exec(text)?.[1];
  return format === undefined ? undefined : Number(format);
}

/** A frame as it is written to the file with the number `file`. */
export function frameOf(kind: number, file: number, content: readonly Uint8Array[] = [], synced = 0): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 0);
  const bytes = Buffer.concat([Buffer.alloc(headBytes), ...content], headBytes + length);
  magic.copy(bytes);
  bytes.writeUInt32LE(kind, 4);
  bytes.writeUInt32LE(length, 8);
  bytes.writeUInt32LE(file, 12);
  bytes.writeDoubleLE(synced, 16);
  bytes.writeUInt32LE(crc32(bytes.subarray(headBytes)), 24);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 28)), 28);
  return bytes;
}

/** The frame at a place; undefined when what is there is not a whole and true frame of this file. */
export function frameAt(bytes: Buffer, start: number, file: number): Frame | undefined {
  if (start + headBytes > bytes.length || bytes.compare(magic, 0, 4, start, start + 4) !== 0)
    return undefined;
  if (bytes.readUInt32LE(start + 28) !== crc32(bytes.subarray(start, start + 28))) return undefined;
  const end = start + headBytes + bytes.readUInt32LE(start + 8);
  if (bytes.readUInt32LE(start + 12) !== file || end > bytes.length) return undefined;
  const content = bytes.subarray(start + headBytes, end);
  if (bytes.readUInt32LE(start + 24) !== crc32(content)) return undefined;
  return {
    kind: bytes.readUInt32LE(start + 4),
    start,
    end,
    synced: bytes.readDoubleLE(start + 16),
    content,
  };
}

/** The length that true frames behind `place` say was on the disk when they were made; 0 when there are none. */
export function syncedBehind(bytes: Buffer, place: number, file: number): number {
  let synced = 0;
  for (let at = bytes.indexOf(magic, place); at >= 0; at = bytes.indexOf(magic, at + 1)) {
    synced = Math.max(synced, frameAt(bytes, at, file)?.synced ?? 0);
  }
  return synced;
}
