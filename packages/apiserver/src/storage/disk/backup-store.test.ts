import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stored } from "@longshore/kube";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changesOf } from "../../testing/power-loss/recorded-writer.ts";
import { memoryStore } from "../object-store.ts";
import type { Store } from "../store.ts";
import { backupStore, restoreStore } from "./backup-store.ts";
import { openDurableStore } from "./open-durable-store.ts";

/** When all backups here are restored. */
const now = new Date("2026-01-01T00:00:00Z");

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
      expect(await restoreStore(file, target, now)).toEqual({ revision: now.getTime(), objects });
      const restored = await openDurableStore(target);
      expect(restored.revision).toBe(now.getTime());
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

  it("brings back the objects, at versions that were never given, and the store goes on from there", async () => {
    const store = await openDurableStore(data);
    await write(store, 40);
    const file = join(directory, "out", "backup");
    expect((await backupStore(data, file)).revision).toBe(40);
    const state = stateOf(store);
    // What clients have seen since is not in the backup.
    await write(store, 45);
    await store.close();
    const target = join(directory, "restored");
    await restoreStore(file, target, now);
    const restored = await openDurableStore(target);
    expect(stateOf(restored)).toBe(state);
    const configMaps = restored.table("configmaps");
    for (const seen of [20, 40, 43, 45]) {
      expect(configMaps.positionAfter(seen)).toBeUndefined();
      expect(configMaps.snapshot(seen)).toBeUndefined();
    }
    expect(configMaps.positionAfter(restored.revision)).toBeDefined();
    restored.commit(changesOf(46, restored));
    await restored.durable();
    await restored.close();
    const again = await openDurableStore(target);
    expect(again.revision).toBe(now.getTime() + 1);
    expect(again.table("configmaps").positionAfter(45)).toBeUndefined();
    await again.close();
    expect((await backupStore(target, file)).revision).toBe(now.getTime() + 1);
  });

  it("that is restored where the clock is wrong goes on from later versions, too", async () => {
    const store = await openDurableStore(data);
    await write(store, 3);
    await store.close();
    const file = join(directory, "backup");
    await backupStore(data, file);
    const { revision } = await restoreStore(file, join(directory, "restored"), new Date(0));
    expect(revision).toBe(1_000_003);
  });

  it.each([
    [
      "where there is a store",
      (it: { data: string; file: string }) => restoreStore(it.file, it.data, now),
      /has a store: restore to another directory/,
    ],
    [
      "of nothing",
      (it: { data: string }) => backupStore(join(it.data, "nowhere"), join(it.data, "b")),
      /there is no store in/,
    ],
    [
      "from a file that is not there",
      (it: { data: string }) => restoreStore(join(it.data, "x"), `${it.data}-2`, now),
      /cannot be read/,
    ],
    [
      "from some other file",
      (it: { data: string; other: string }) => restoreStore(it.other, `${it.data}-3`, now),
      /is damaged or not a backup/,
    ],
    [
      "from a newer version",
      (it: { data: string; newer: string }) => restoreStore(it.newer, `${it.data}-4`, now),
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
    await expect(restoreStore(join(directory, "backup"), data, now)).rejects.toThrow(/in use by process/);
    await store.close().catch(() => {});
  });

  it("is restored without what need not hold any more; what is changed has the first version of the restored store", async () => {
    const store = await openDurableStore(data);
    await write(store, 20);
    await store.close();
    const file = join(directory, "backup");
    await backupStore(data, file);
    const target = join(directory, "restored");
    const [first, ...others] = store.table("configmaps").list();
    const configmaps = (object: Stored) =>
      object.metadata.name === first?.metadata.name ? { ...object, data: { text: "changed" } } : object;
    const { revision } = await restoreStore(file, target, now, { configmaps });
    const restored = await openDurableStore(target);
    const metadata = { ...first?.metadata, resourceVersion: `${revision}` };
    expect(restored.table("configmaps").list()).toEqual([
      { ...first, metadata, data: { text: "changed" } },
      ...others,
    ]);
    await restored.close();
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
