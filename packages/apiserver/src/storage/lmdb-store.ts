/**
 * The durable form of the store: LMDB behind the tables in memory. Commits that come while one is
 * being written go to the disk together, and none is acknowledged before the disk has it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Stored } from "@longshore/kube";
import { type Database, open, type RootDatabase } from "lmdb";
import { takeDirectoryLock } from "./directory-lock.ts";
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

/** Separates the parts of a key; it cannot be part of a name. */
const separator = "/";

/**
 * Opens the store in `directory`, which is made when it is not there.
 * @throws StoreError when another process has it open, or it cannot be used
 */
export async function openLmdbStore(directory: string, options: StoreOptions = {}): Promise<Store> {
  let release: (() => void) | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    release = takeDirectoryLock(directory);
    const root = open<string, string>({ path: join(directory, "objects.mdb"), encoding: "string" });
    return new ObjectStore(options, new LmdbPersistence(root, release), load(root));
  } catch (cause) {
    release?.();
    if (cause instanceof StoreError) throw cause;
    throw new StoreError(`the data directory ${directory} cannot be opened: check that it can be written`, {
      cause,
    });
  }
}

class LmdbPersistence implements Persistence {
  readonly #root: RootDatabase<string, string>;
  readonly #release: () => void;

  constructor(root: RootDatabase<string, string>, release: () => void) {
    this.#root = root;
    this.#release = release;
  }

  async persist(commits: readonly DurableCommit[]): Promise<void> {
    const written = this.#root.transaction(() => {
      for (const { changes } of commits) {
        for (const { resource, namespace, name, object } of changes) {
          const key = `o${separator}${resource}${separator}${namespace}${separator}${name}`;
          if (object === undefined) void this.#root.remove(key);
          else void this.#root.put(key, JSON.stringify(object));
        }
      }
      void this.#root.put(revisionKey, String(commits.at(-1)?.revision ?? 0));
    });
    await written;
    // Committed means visible; only what is flushed survives a loss of power.
    await this.#root.flushed;
  }

  async close(): Promise<void> {
    await this.#root.close();
    this.#release();
  }
}

function load(root: Database<string, string>): StoredState {
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
