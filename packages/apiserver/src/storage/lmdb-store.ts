/**
 * The durable form of the store: LMDB behind the tables in memory. Commits that come while one is
 * being written go to the disk together, and none is acknowledged before the disk has it.
 */
import { mkdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Stored } from "@longshore/kube";
import type { RootDatabase } from "lmdb";
import { takeDirectoryLock } from "./directory-lock.ts";
import { checkLmdbFile, damaged } from "./lmdb-file.ts";
import {
  type DurableCommit,
  ObjectStore,
  type Persistence,
  type StoredState,
  type StoreOptions,
} from "./object-store.ts";
import { type Store, StoreError } from "./store.ts";

/** Key of the revision of the last commit; no object has such a key. */
const revisionKey = "revision";

/** Key of the version of the keys and values here; a store without it is of version 1. */
const formatKey = "format";
const formatVersion = 1;

/** What must be free on the disk beside the data to be written: LMDB copies the pages that it changes. */
const roomBytesMin = 1024 * 1024;

/** Separates the parts of a key; it cannot be part of a name. */
const separator = "/";

/**
 * Opens the store in `directory`, which is made when it is not there.
 * @throws StoreError when another process has it open, or it cannot be used
 */
export async function openLmdbStore(directory: string, options: StoreOptions = {}): Promise<Store> {
  let release: (() => void) | undefined;
  let root: Root | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    release = takeDirectoryLock(directory);
    const path = join(directory, "objects.mdb");
    requireRoom(directory, 0);
    checkLmdbFile(path);
    const { open } = await import("lmdb");
    root = open<string, string>({ path, encoding: "string", overlappingSync: false });
    checkFormat(root, path);
    return new ObjectStore(options, new LmdbPersistence(root, directory, release), load(root, path));
  } catch (cause) {
    await root?.close();
    release?.();
    if (cause instanceof StoreError) throw cause;
    throw new StoreError(`the data directory ${directory} cannot be opened: check that it can be written`, {
      cause,
    });
  }
}

type Root = RootDatabase<string, string>;

class LmdbPersistence implements Persistence {
  readonly #root: Root;
  readonly #directory: string;
  readonly #release: () => void;
  #failure: Error | undefined;

  constructor(root: Root, directory: string, release: () => void) {
    this.#root = root;
    this.#directory = directory;
    this.#release = release;
  }

  async persist(commits: readonly DurableCommit[]): Promise<void> {
    // Commits of requests that came in together are still to join the next group.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#failure !== undefined) throw this.#failure;
    const texts = commits.flatMap(({ changes }) => changes.map(recordOf));
    requireRoom(
      this.#directory,
      texts.reduce((sum, { text = "" }) => sum + text.length, 0),
    );
    try {
      // Synchronous, because the asynchronous form leaves promises behind that nobody can handle when it fails.
      this.#root.transactionSync(() => this.#write(texts, commits.at(-1)?.revision ?? 0));
    } catch (cause) {
      const why = "check that the disk is healthy, then start the server again";
      this.#failure = new Error(`cannot write to ${this.#directory}: ${why}`, { cause });
      throw this.#failure;
    }
  }

  #write(records: readonly StoredRecord[], revision: number): void {
    for (const { key, text } of records) {
      if (text === undefined) this.#root.removeSync(key);
      else this.#root.putSync(key, text);
    }
    this.#root.putSync(revisionKey, String(revision));
    this.#root.putSync(formatKey, String(formatVersion));
  }

  async close(): Promise<void> {
    // After a failure LMDB is not touched again; the process is about to end.
    if (this.#failure === undefined) await this.#root.close();
    this.#release();
  }
}

/** Asks before LMDB does: a write of its that fails for want of room can take the process with it. */
function requireRoom(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= roomBytesMin + 2 * bytes) return;
  throw new StoreError(`cannot write to ${directory}: its disk is full, make room there`);
}

interface StoredRecord {
  readonly key: string;
  readonly text?: string;
}

function recordOf({ resource, namespace, name, object }: DurableCommit["changes"][number]): StoredRecord {
  const key = `o${separator}${resource}${separator}${namespace}${separator}${name}`;
  return object === undefined ? { key } : { key, text: JSON.stringify(object) };
}

/** @throws StoreError when a later version of this program has written the store */
function checkFormat(root: Root, path: string): void {
  const format = root.get(formatKey);
  if (format === undefined || Number(format) <= formatVersion) return;
  throw new StoreError(
    `the store ${path} was written by a newer version of this program (format ${format}, this one reads up to ${formatVersion}): use that version, or another data directory`,
  );
}

function load(root: Root, path: string): StoredState {
  try {
    return read(root);
  } catch (cause) {
    throw damaged(path, cause);
  }
}

function read(root: Root): StoredState {
  const objects: StoredState["objects"][number][] = [];
  for (const { key, value } of root.getRange({
    start: `o${separator}`,
    end: `o${String.fromCharCode(separator.charCodeAt(0) + 1)}`,
  })) {
    const [, resource = "", namespace = "", ...name] = String(key).split(separator);
    objects.push({ resource, namespace, name: name.join(separator), object: JSON.parse(value) as Stored });
  }
  return { revision: Number(root.get(revisionKey) ?? "0"), objects };
}
