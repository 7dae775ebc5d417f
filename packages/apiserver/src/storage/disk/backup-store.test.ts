import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changesOf } from "../../testing/power-loss/recorded-writer.ts";
import { memoryStore } from "../object-store.ts";
import type { Store } from "../store.ts";
import { backupStore, restoreStore } from "./backup-store.ts";
import { openDurableStore } from "./open-durable-store.ts";

const stateOf = (store: Store) =>
  ["configmaps", "secrets"].map((resource) => JSON.stringify(store.table(resource).list())).join("\n");

async function write(store: Store, until: number): Promise<void> {
  while (store.revision < until) {
    store.commit(changesOf(store.revision + 1, store));
    await store.durable();
  }
}

let directory: string;
let data: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "backup-"));
  data = join(directory, "data");
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("a backup", () => {
  it("is made while the store is written to, and has all that was acknowledged before", async () => {
    const store = await openDurableStore(data, { logBytesMin: 5000, historyLimit: 30 });
    const model = memoryStore();
    let isDone = false;
    const writing = (async () => {
      while (!isDone) await write(store, store.revision + 1);
    })();
    for (let i = 0; i < 15; i++) {
      const before = store.readableRevision;
      const file = join(directory, `backup-${i}`);
      const { revision, objects } = await backupStore(data, file);
      expect(revision).toBeGreaterThanOrEqual(before);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const target = join(directory, `restored-${i}`);
      expect(await restoreStore(file, target)).toEqual({ revision, objects });
      const restored = await openDurableStore(target);
      expect(restored.revision).toBe(revision);
      while (model.revision < revision) model.commit(changesOf(model.revision + 1, model));
      expect(stateOf(restored)).toBe(stateOf(model));
      expect(restored.table("configmaps").size + restored.table("secrets").size).toBe(objects);
      await restored.close();
    }
    isDone = true;
    await writing;
    expect(store.revision).toBeGreaterThan(50);
    await store.close();
  });

  it("brings back the objects and what is remembered of their past, and the store goes on from there", async () => {
    const store = await openDurableStore(data);
    await write(store, 40);
    const state = stateOf(store);
    await store.close();
    const file = join(directory, "out", "backup");
    expect((await backupStore(data, file)).revision).toBe(40);
    await restoreStore(file, join(directory, "restored"));
    const restored = await openDurableStore(join(directory, "restored"));
    expect(stateOf(restored)).toBe(state);
    const original = await openDurableStore(data);
    expect(restored.table("configmaps").snapshot(20)).toEqual(original.table("configmaps").snapshot(20));
    await original.close();
    await write(restored, 50);
    await restored.close();
    const again = await openDurableStore(join(directory, "restored"));
    expect(again.revision).toBe(50);
    await again.close();
  });

  it.each([
    [
      "where there is a store",
      (it: { data: string; file: string }) => restoreStore(it.file, it.data),
      /has a store: restore to another directory/,
    ],
    [
      "of nothing",
      (it: { data: string }) => backupStore(join(it.data, "nowhere"), join(it.data, "b")),
      /there is no store in/,
    ],
    [
      "from a file that is not there",
      (it: { data: string }) => restoreStore(join(it.data, "x"), `${it.data}-2`),
      /cannot be read/,
    ],
    [
      "from some other file",
      (it: { data: string; other: string }) => restoreStore(it.other, `${it.data}-3`),
      /is damaged or not a backup/,
    ],
    [
      "from a newer version",
      (it: { data: string; newer: string }) => restoreStore(it.newer, `${it.data}-4`),
      /newer version of this program \(format 7/,
    ],
  ] as const)("%s is refused in one sentence", async (_name, attempt, message) => {
    const store = await openDurableStore(data);
    await write(store, 3);
    await store.close();
    const file = join(directory, "backup");
    await backupStore(data, file);
    const other = join(directory, "other");
    writeFileSync(other, "hello");
    const newer = join(directory, "newer");
    writeFileSync(
      newer,
      Buffer.concat([
        Buffer.from(`${"longshore store, format 7".padEnd(31)}\n`),
        readFileSync(file).subarray(32),
      ]),
    );
    await expect(attempt({ data, file, other, newer })).rejects.toThrow(message);
  });

  it("does not restore below a server that runs", async () => {
    const store = await openDurableStore(data);
    await backupStore(data, join(directory, "backup"));
    rmSync(join(data, "objects"), { recursive: true });
    await expect(restoreStore(join(directory, "backup"), data)).rejects.toThrow(/in use by process/);
    await store.close().catch(() => {});
  });
});

describe("the files of a store", () => {
  it("do not grow with the number of writes, and nothing is lost of it", async () => {
    const store = await openDurableStore(data, { logBytesMin: 20_000, historyLimit: 50 });
    let largest = 0;
    for (let i = 0; i < 40; i++) {
      await write(store, store.revision + 50);
      const sizes = readdirSync(join(data, "objects")).map((name) => {
        const path = join(data, "objects", name);
        return existsSync(path) ? statSync(path).size : 0;
      });
      largest = Math.max(
        largest,
        sizes.reduce((sum, size) => sum + size, 0),
      );
    }
    // About 1.5 MB was written; the objects and what is remembered are about 100 KB.
    expect(largest).toBeLessThan(600_000);
    const state = stateOf(store);
    await store.close();
    const again = await openDurableStore(data);
    expect(again.revision).toBe(2000);
    expect(stateOf(again)).toBe(state);
    await again.close();
  });
});
