/**
 * The files of a durable store, and how they are read.
 *
 * ```text
 * 000002.base   every object as of a moment, the changes that are remembered before it, and an end
 * 000002.log    the changes since, one frame a group of commits
 * 000003.log    while 000003.base is being written: the changes since that was begun
 * acknowledged  how far the newest log was surely on the disk, twice
 * ```
 *
 * Invariants
 *  - A frame of a log is acknowledged once it is on the disk, and never changed afterwards.
 *  - What is behind the last true frame of the newest log was never acknowledged: a frame behind it, or the file
 *    `acknowledged`, would say so. Everything else that is not as it was written is damage, and refused.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AboutBase, StoredRecord } from "../persistence.ts";
import { StoreError } from "../store.ts";
import {
  type Frame,
  firstLine,
  formatOf,
  formatVersion,
  frameAt,
  frameKinds,
  headBytes,
  syncedBehind,
} from "./frames.ts";
import { decodeRecords } from "./records.ts";

/** What the files of a store hold. */
export interface StoreContents extends AboutBase {
  /** The objects before the changes. */
  readonly base: readonly StoredRecord[];
  /** The changes that are remembered, oldest first. */
  readonly changes: readonly StoredRecord[];
  /** Number of the newest log, and its length up to the last true frame; undefined when there is none. */
  readonly log: { readonly file: number; readonly length: number } | undefined;
  /** Length of the base. */
  readonly baseBytes: number;
}

/** Name of a file of the store. */
export function fileName(file: number, type: "base" | "log"): string {
  return `${String(file).padStart(6, "0")}.${type}`;
}

/** Name of the file that says how far the newest log was on the disk. */
export const acknowledgedName = "acknowledged";

/** The numbers of the files of a type in the directory, in order. */
export function filesOf(directory: string, type: "base" | "log"): number[] {
  const pattern = new RegExp(`^(\\d{6,})\\.${type}$`);
  const numbers = readdirSync(directory).map((name) => Number(pattern.exec(name)?.[1] ?? 0));
  return numbers.filter((n) => n > 0).sort((a, b) => a - b);
}

/** Everything in the directory's files. @throws StoreError for what is damaged or of a newer format */
export function readStoreFiles(directory: string): StoreContents {
  const bases = filesOf(directory, "base");
  const logs = filesOf(directory, "log");
  const newest = bases.at(-1) ?? 1;
  const base =
    bases.length === 0
      ? { revision: 0, forgotten: {}, base: [], changes: [], baseBytes: 0 }
      : readBase(join(directory, fileName(newest, "base")), newest);
  const current = logs.filter((file) => file >= newest);
  const acknowledged = readAcknowledged(directory);
  const last = current.at(-1);
  const isEmpty = bases.length === 0 && logs.length === 0;
  // Without a gap: the changes of every log since the base are needed.
  const isWhole = current.every((file, i) => file === newest + i) && current.length > 0;
  if ((!isWhole && !isEmpty) || (acknowledged?.file ?? 0) > (last ?? 0)) throw damaged(directory);
  const changes = [...base.changes];
  let log: StoreContents["log"];
  for (const file of current) {
    const known = acknowledged?.file === file ? acknowledged.length : 0;
    const path = join(directory, fileName(file, "log"));
    const read = readLog(path, file, known, file !== last);
    for (const record of read.changes) changes.push(record);
    log = { file, length: read.length };
  }
  const revision = Math.max(base.revision, changes.at(-1)?.revision ?? 0);
  return { ...base, revision, changes, log };
}

/** What a base, or a backup, holds. @throws StoreError unless it is whole */
export function readBase(path: string, file: number): Omit<StoreContents, "log"> {
  const bytes = readChecked(path);
  const base: StoredRecord[] = [];
  const changes: StoredRecord[] = [];
  let about: AboutBase | undefined;
  let at = firstLine.length;
  for (let isEnded = false; !isEnded; ) {
    const frame = frameAt(bytes, at, file);
    if (frame === undefined) throw damaged(path);
    at = frame.end;
    if (frame.kind === frameKinds.about) about = parsed(path, () => JSON.parse(frame.content.toString()));
    else if (frame.kind === frameKinds.base) append(base, recordsOf(path, frame));
    else if (frame.kind === frameKinds.records) append(changes, recordsOf(path, frame));
    else isEnded = frame.kind === frameKinds.end;
  }
  if (at !== bytes.length || about === undefined) throw damaged(path);
  return { ...about, base, changes, baseBytes: bytes.length };
}

/**
 * The changes in a log, up to where its frames are true.
 * @param acknowledged length that was surely on the disk
 * @param mustEnd whether a later log was begun, so that this one was ended
 */
function readLog(
  path: string,
  file: number,
  acknowledged: number,
  mustEnd: boolean,
): { readonly changes: readonly StoredRecord[]; readonly length: number } {
  const bytes = readChecked(path);
  const changes: StoredRecord[] = [];
  let length = firstLine.length;
  let last: Frame | undefined;
  for (let frame = frameAt(bytes, length, file); frame !== undefined; frame = frameAt(bytes, length, file)) {
    if (frame.kind === frameKinds.records) append(changes, recordsOf(path, frame));
    length = frame.end;
    last = frame;
  }
  const lost = length < acknowledged || syncedBehind(bytes, length, file) > length;
  if (lost || (mustEnd && (last?.kind !== frameKinds.end || length !== bytes.length))) throw damaged(path);
  return { changes, length };
}

function append<T>(all: T[], more: readonly T[]): void {
  for (const item of more) all.push(item);
}

function recordsOf(path: string, frame: Frame): StoredRecord[] {
  return parsed(path, () => decodeRecords(frame.content));
}

function parsed<T>(path: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw damaged(path, cause);
  }
}

/** The bytes of a file whose first line is right. */
function readChecked(path: string): Buffer {
  const bytes = readFileSync(path);
  const format = formatOf(bytes);
  if (format === undefined) throw damaged(path);
  if (format > formatVersion) {
    throw new StoreError(
      `the store ${path} was written by a newer version of this program (format ${format}, this one reads up to ${formatVersion}): use that version, or another data directory`,
    );
  }
  if (!bytes.subarray(0, firstLine.length).equals(firstLine)) throw damaged(path);
  return bytes;
}

/** How far which log was surely on the disk; undefined when that is not known. */
function readAcknowledged(directory: string): { readonly file: number; readonly length: number } | undefined {
  const path = join(directory, acknowledgedName);
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  // Never synced: after a loss of power it may be old, or not there. It is within one sector, so it is never half there.
  if (bytes.every((byte) => byte === 0)) return undefined;
  const marks = [0, headBytes].flatMap((at) => {
    if (bytes.length < at + headBytes) return [];
    const file = bytes.readUInt32LE(at + 12);
    const mark = frameAt(bytes, at, file);
    return mark?.kind === frameKinds.mark ? [{ file, length: mark.synced }] : [];
  });
  if (marks.length === 0) throw damaged(path);
  return marks.reduce((a, b) => (a.file > b.file || (a.file === b.file && a.length > b.length) ? a : b));
}

/** The failure for a store that cannot be read. */
export function damaged(path: string, cause?: unknown): StoreError {
  return new StoreError(
    `the store ${path} is damaged: restore it from a backup, or remove it to begin with an empty cluster`,
    { cause },
  );
}
