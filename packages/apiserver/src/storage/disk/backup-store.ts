/** Backup of a durable store to one file, whether a server has it open or not, and the way back. */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { takeDirectoryLock } from "../directory-lock.ts";
import type { BaseContents, BaseRecord, StoredRecord, StoredState } from "../persistence.ts";
import { type RestoredObjects, restoredState } from "../restored-state.ts";
import { StoreError } from "../store.ts";
import { beginLog } from "./journal.ts";
import { storeDirectory } from "./open-durable-store.ts";
import { fileName, filesOf, readBase, readStoreFiles, type StoreContents } from "./read-store-files.ts";
import { writeBase } from "./write-base.ts";
import { syncDirectory } from "./write-whole-file.ts";

/** A backup is a base with this number, so it becomes the first base of a new store. */
const backupNumber = 1;

/** What a backup holds. */
export interface BackupSummary {
  readonly revision: number;
  readonly objects: number;
}

/** How often to restart reading when a server replaces the files meanwhile. */
const attemptsMax = 5;

/**
 * Writes everything that was acknowledged when this was called to one file (mode 0600), which is there as a whole or
 * not at all. The server that has the store open goes on.
 * @throws StoreError when there is no store, or it is damaged
 */
export async function backupStore(dataDir: string, file: string): Promise<BackupSummary> {
  const contents = readWhileOpen(storeDirectory(dataDir));
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  await writeBase(file, backupNumber, contentsOf(contents));
  return summaryOf(contents);
}

/**
 * Makes the store of a data directory from a backup. Its versions go on from ones that were never given, and those before are
 * forgotten: watches of clients that knew the cluster at a later time get 410, and they list again.
 * @param now the time, from which the versions go on: in milliseconds since 1970
 * @param restoredObjects what does not hold any more is taken out of them
 * @returns what the store holds, and the version from which it goes on
 * @throws StoreError when a store is there already, a server has the directory, or the backup is damaged or newer
 */
export async function restoreStore(
  file: string,
  dataDir: string,
  now: Date,
  restoredObjects?: RestoredObjects,
): Promise<BackupSummary> {
  const contents = restoredState(readBackup(file), now, restoredObjects);
  const directory = storeDirectory(dataDir);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = takeDirectoryLock(dataDir);
  try {
    if (filesOf(directory, "base").length > 0 || filesOf(directory, "log").length > 0) {
      throw new StoreError(
        `the data directory ${dataDir} has a store: restore to another directory, or remove ${directory} first`,
      );
    }
    // In this order: a base without its log is refused, where a log alone would be an empty store.
    await writeBase(join(directory, fileName(backupNumber, "base")), backupNumber, contentsOf(contents));
    await beginLog(join(directory, fileName(backupNumber, "log")));
    await syncDirectory(dataDir);
    return summaryOf(contents);
  } finally {
    lock.release();
  }
}

function readBackup(file: string): Omit<StoreContents, "log"> {
  try {
    return readBase(file, backupNumber);
  } catch (cause) {
    if (cause instanceof StoreError && cause.message.includes("is damaged")) {
      throw new StoreError(`the backup ${file} is damaged or not a backup: choose another one`, { cause });
    }
    if (cause instanceof StoreError) throw cause;
    throw new StoreError(`the backup ${file} cannot be read`, { cause });
  }
}

/** The files of a store that a server may be writing to: read again when they were replaced meanwhile. */
function readWhileOpen(directory: string): StoreContents {
  for (let attempt = 1; ; attempt++) {
    try {
      const contents = readStoreFiles(directory);
      if (contents.log !== undefined) return contents;
      throw new StoreError(`there is no store in ${directory}`);
    } catch (error) {
      if (isMissing(error) && filesAreGone(directory)) {
        throw new StoreError(`there is no store in ${directory}`, { cause: error });
      }
      if (attempt === attemptsMax) throw error;
    }
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

function filesAreGone(directory: string): boolean {
  try {
    return filesOf(directory, "log").length === 0;
  } catch {
    return true;
  }
}

function contentsOf({ revision, forgotten, base, changes }: StoredState): BaseContents {
  return { revision, forgotten, base: base.map(lazy), changes: changes.map(lazy) };
}

function lazy({ json, ...record }: StoredRecord): BaseRecord {
  return { ...record, json: json === undefined ? undefined : () => json };
}

function summaryOf({ revision, base, changes }: StoredState): BackupSummary {
  const keys = new Set<string>();
  for (const { resource, namespace, name, json } of [...base, ...changes]) {
    const key = `${resource}/${namespace}/${name}`;
    if (json === undefined) keys.delete(key);
    else keys.add(key);
  }
  return { revision, objects: keys.size };
}
