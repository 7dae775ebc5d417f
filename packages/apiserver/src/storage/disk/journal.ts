/**
 * Makes commits durable: each group is one frame at the end of the newest log, synced before it is
 * acknowledged. A log that has grown is replaced by a new log and a base.
 *
 * Invariants
 *  - Nothing is acknowledged before fdatasync has come back for it; a sync that failed is never tried again.
 *  - Nothing is written, acknowledged or removed once the lock of the data directory is lost.
 *  - A file is removed only when the base that replaces it is on the disk.
 *  - No memory is mapped: what a disk does wrong is an error here, and no signal.
 */

import { closeSync, constants, openSync, statfsSync, writeSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { KubeObject } from "@longshore/kube";
import { toJson } from "../../api/json.ts";
import { objectParts } from "../../api/object-parts.ts";
import type { DirectoryLock } from "../directory-lock.ts";
import type { BaseContents, DurableCommit, Persistence } from "../persistence.ts";
import { StoreError } from "../store.ts";
import { firstLine, frameKinds, frameOf } from "./frames.ts";
import { acknowledgedName, fileName, filesOf } from "./read-store-files.ts";
import { encodeRecord } from "./records.ts";
import { writeBase } from "./write-base.ts";
import { syncDirectory, writeAllAtOnce, writeWholeFile } from "./write-whole-file.ts";

/** Where the journal goes on; see StoreContents. */
export interface JournalState {
  readonly log: { readonly file: number; readonly length: number } | undefined;
  readonly baseBytes: number;
}

/** How the journal is kept. */
export interface JournalOptions {
  /** Length from which on a log may be replaced by a base, in bytes; it is replaced once it is longer than the base, too. */
  readonly logBytesMin?: number;
  /** Released on close; without it nothing is written. */
  readonly lock: DirectoryLock;
  /** Called when a base could not be written; the store goes on with its logs. */
  readonly onBaseFailed?: (error: unknown) => void;
  /** Called when the disk has failed: nothing is written any more, and the process that uses the store should exit. */
  readonly onFailed?: (error: StoreError) => void;
}

const defaultLogBytesMin = 16 * 1024 * 1024;

/** Writes groups of commits to the log and syncs it before it acknowledges them. */
export class Journal implements Persistence {
  readonly #directory: string;
  readonly #options: JournalOptions;
  #log: FileHandle;
  readonly #marks: number;
  #file: number;
  /** Length of the newest log up to its last acknowledged frame. */
  #length: number;
  #baseBytes: number;
  /** Length that the log must have before a base is tried. */
  #rotateAt: number;
  #base: Promise<void> | undefined;
  #failure: StoreError | undefined;

  private constructor(
    directory: string,
    options: JournalOptions,
    log: FileHandle,
    at: { readonly file: number; readonly length: number; readonly baseBytes: number },
  ) {
    this.#directory = directory;
    this.#options = options;
    this.#log = log;
    this.#file = at.file;
    this.#length = at.length;
    this.#baseBytes = at.baseBytes;
    this.#rotateAt = Math.max(options.logBytesMin ?? defaultLogBytesMin, at.baseBytes);
    this.#marks = openSync(join(directory, acknowledgedName), constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  /** Goes on where the files end. What was read of them is on the disk when this resolves. */
  static async open(directory: string, state: JournalState, options: JournalOptions): Promise<Journal> {
    const file = state.log?.file ?? 1;
    const path = join(directory, fileName(file, "log"));
    if (state.log === undefined) await beginLog(path);
    await removeLeftovers(directory);
    const log = await open(path, "r+");
    const length = state.log?.length ?? firstLine.length;
    try {
      // What a killed process wrote is read from now on, whether it was acknowledged or not.
      await log.truncate(length);
      await log.sync();
      const journal = new Journal(directory, options, log, { file, length, baseBytes: state.baseBytes });
      journal.#acknowledge();
      return journal;
    } catch (error) {
      await log.close();
      throw error;
    }
  }

  async persist(commits: readonly DurableCommit[], checkpoint: () => BaseContents): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#length > this.#rotateAt && this.#base === undefined) await this.#rotate(checkpoint);
    const parts = commits.flatMap(({ changes, revision }) =>
      changes.flatMap(({ resource, namespace, name, object }) =>
        encodeRecord({ revision, resource, namespace, name }, object && partsOf(object)),
      ),
    );
    await this.#append(frameKinds.records, parts);
  }

  async close(): Promise<void> {
    await this.#base;
    // Marks the end for the next reader: the log was closed, not cut by a loss of power.
    if (this.#failure === undefined) await this.#append(frameKinds.end, []).catch(() => {});
    await this.#log.close();
    closeSync(this.#marks);
    this.#options.lock.release();
  }

  /** Puts one frame on the disk. @throws StoreError; then nothing of it is there, or the journal has failed for good */
  async #append(kind: number, parts: readonly Uint8Array[]): Promise<void> {
    const frame = frameOf(kind, this.#file, parts, this.#length);
    this.#requireLock();
    try {
      writeAllAtOnce(this.#log, frame, this.#length);
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code;
      const isCut = await this.#log.truncate(this.#length).then(
        () => true,
        () => false,
      );
      if (isCut && (code === "ENOSPC" || code === "EDQUOT")) throw diskFull(this.#directory, cause);
      throw this.#fail(cause);
    }
    try {
      await this.#log.datasync();
    } catch (cause) {
      // The state of the disk is unknown now; another sync would succeed without writing the lost data.
      throw this.#fail(cause);
    }
    // A server that has taken the directory meanwhile may have read it without this.
    this.#requireLock();
    this.#length += frame.length;
    this.#acknowledge();
  }

  /** Notes how far the log is on the disk. Not synced: it proves that a frame was there, its absence proves nothing. */
  #acknowledge(): void {
    const mark = frameOf(frameKinds.mark, this.#file, [], this.#length);
    // Twice, so that a changed bit in one of them and one in the last frame do not go together unnoticed.
    const marks = Buffer.concat([mark, mark]);
    try {
      writeSync(this.#marks, marks, 0, marks.length, 0);
    } catch {
      // A full disk: the log is what counts.
    }
  }

  /** Begins a new log, and writes the base that replaces the old logs. */
  async #rotate(checkpoint: () => BaseContents): Promise<void> {
    const next = this.#file + 1;
    const path = join(this.#directory, fileName(next, "log"));
    // A base that fills the disk would take the room of the commits meanwhile.
    if (!hasRoom(this.#directory, this.#baseBytes + this.#length)) {
      this.#postpone(diskFull(this.#directory));
      return;
    }
    let log: FileHandle;
    try {
      await this.#append(frameKinds.end, []);
      await beginLog(path);
      log = await open(path, "r+");
    } catch (error) {
      if (this.#failure !== undefined) throw this.#failure;
      await this.#withoutLog(path);
      this.#postpone(error);
      return;
    }
    await this.#log.close().catch(() => {});
    this.#log = log;
    this.#file = next;
    this.#length = firstLine.length;
    this.#acknowledge();
    this.#base = this.#writeBase(next, checkpoint()).catch((error: unknown) => this.#postpone(error));
  }

  /** Takes a new log away again: with it there, the old one would have to have ended. */
  async #withoutLog(path: string): Promise<void> {
    try {
      await rm(path, { force: true });
      await syncDirectory(this.#directory);
    } catch (cause) {
      throw this.#fail(cause);
    }
  }

  async #writeBase(file: number, contents: BaseContents): Promise<void> {
    this.#baseBytes = await writeBase(join(this.#directory, fileName(file, "base")), file, contents);
    this.#rotateAt = Math.max(this.#options.logBytesMin ?? defaultLogBytesMin, this.#baseBytes);
    this.#requireLock();
    await removeLeftovers(this.#directory).catch(() => {});
    this.#base = undefined;
  }

  #postpone(error: unknown): void {
    this.#base = undefined;
    this.#rotateAt = this.#length + (this.#options.logBytesMin ?? defaultLogBytesMin);
    this.#options.onBaseFailed?.(error);
  }

  /** @throws StoreError; then the journal has failed for good */
  #requireLock(): void {
    try {
      this.#options.lock.check();
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #fail(cause: unknown): StoreError {
    const why = "check that the disk is healthy, then start the server again";
    const failure =
      cause instanceof StoreError
        ? cause
        : new StoreError(`cannot write to ${this.#directory}: ${why}`, { cause });
    this.#failure = failure;
    this.#options.onFailed?.(failure);
    return failure;
  }
}

/** What must stay free on the disk after a write, in bytes. */
const roomBytesMin = 1024 * 1024;

/** Whether the disk has room for so many bytes, and for what else comes. */
export function hasRoom(directory: string, bytes: number): boolean {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize >= bytes + roomBytesMin;
}

/** Makes a log without frames. */
export async function beginLog(path: string): Promise<void> {
  await writeWholeFile(path, (append) => append(firstLine));
}

/** The object's JSON, which is shared with the answers that show it. */
function partsOf(object: KubeObject): string | readonly Buffer[] {
  const { kind, apiVersion } = object;
  if (kind === undefined || apiVersion === undefined) return toJson(object);
  return objectParts(object, apiVersion);
}

/** Removes the files that the newest base replaces, and unfinished files. */
async function removeLeftovers(directory: string): Promise<void> {
  const newest = filesOf(directory, "base").at(-1) ?? 1;
  const names = (["log", "base"] as const).flatMap((type) => [
    ...filesOf(directory, type)
      .filter((file) => file < newest)
      .map((file) => fileName(file, type)),
    `${fileName(newest, type)}.tmp`,
    `${fileName(newest + 1, type)}.tmp`,
  ]);
  // A process that was killed may have left the newest base under its name in memory only: what it replaces must outlast that.
  await syncDirectory(directory);
  for (const name of names) await rm(join(directory, name), { force: true });
  await syncDirectory(directory);
}

/** The failure for a disk without room. */
export function diskFull(directory: string, cause?: unknown): StoreError {
  return new StoreError(`cannot write to ${directory}: its disk is full, make room there`, { cause });
}
