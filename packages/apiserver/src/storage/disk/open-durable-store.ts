/**
 * The durable form of the store: files behind the tables in memory. Commits that come while one is
 * being written go to the disk together, and none is acknowledged before the disk has it.
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type DirectoryLock, takeDirectoryLock } from "../directory-lock.ts";
import { ObjectStore, type StoreOptions } from "../object-store.ts";
import { type Store, StoreError } from "../store.ts";
import { diskFull, hasRoom, Journal, type JournalOptions } from "./journal.ts";
import { readStoreFiles } from "./read-store-files.ts";
import { syncDirectory } from "./write-whole-file.ts";

/** How a durable store is kept. */
export interface DurableStoreOptions extends StoreOptions, Omit<JournalOptions, "lock"> {}

/** Where in a data directory the files of the store are. */
export function storeDirectory(dataDir: string): string {
  return join(dataDir, "objects");
}

/**
 * Opens the store in the data directory, which is made when it is not there.
 * @throws StoreError when another process has it open, or it is damaged, newer or cannot be used
 */
export async function openDurableStore(dataDir: string, options: DurableStoreOptions = {}): Promise<Store> {
  let lock: DirectoryLock | undefined;
  try {
    const directory = storeDirectory(dataDir);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    lock = takeDirectoryLock(dataDir);
    if (!hasRoom(dataDir, 0)) throw diskFull(dataDir);
    const contents = readStoreFiles(directory);
    if (contents.log === undefined) await beginHere(dataDir);
    const journal = await Journal.open(directory, contents, { ...options, lock });
    return new ObjectStore(options, journal, contents);
  } catch (cause) {
    lock?.release();
    if (cause instanceof StoreError) throw cause;
    throw new StoreError(`the data directory ${dataDir} cannot be opened: check that it can be written`, {
      cause,
    });
  }
}

/** @throws StoreError for what an earlier version has left here, which this one cannot read */
async function beginHere(dataDir: string): Promise<void> {
  const old = join(dataDir, "objects.mdb");
  if (existsSync(old)) {
    throw new StoreError(
      `the store ${old} was written by an earlier version of this program, which this one cannot read: use that version, or remove the file to begin with an empty cluster`,
    );
  }
  // The names of new directories must be on the disk before anything in them is relied on.
  await syncDirectory(dataDir);
  await syncDirectory(dirname(dataDir));
}
