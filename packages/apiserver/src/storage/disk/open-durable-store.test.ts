import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { KubeObject } from "@longshore/kube";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ownWithNulls } from "../../api/own.ts";
import { changesOf } from "../../testing/power-loss/recorded-writer.ts";
import { memoryStore, ObjectStore } from "../object-store.ts";
import type { Persistence } from "../persistence.ts";
import { type Store, StoreError } from "../store.ts";
import { openDurableStore } from "./open-durable-store.ts";
import { filesOf } from "./read-store-files.ts";

const aConfigMap = (name: string, text = "1") => ({
  resource: "configmaps",
  namespace: "n",
  name,
  object: { kind: "ConfigMap", metadata: { name, namespace: "n", uid: name }, data: { text } },
});

const run = promisify(execFile);

/** As an administrator does who puts a copy in the place of what a server has open. */
async function replaceDirectory(directory: string): Promise<void> {
  await cp(directory, `${directory}-copy`, { recursive: true });
  await rm(join(`${directory}-copy`, "lock"));
  await rename(directory, join(`${directory}-copy`, "old"));
  await rename(`${directory}-copy`, directory);
}

/** Bytes in which one text is another of the same length. */
function replaced(bytes: Buffer, text: string, by: string): Buffer {
  const at = bytes.indexOf(text);
  expect(at).toBeGreaterThan(0);
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(by), bytes.subarray(at + text.length)]);
}

describe("the durable store", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "store-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it("has after a restart what it had before", async () => {
    const before = await openDurableStore(directory);
    before.commit([aConfigMap("a"), aConfigMap("b")]);
    before.commit([{ resource: "configmaps", namespace: "n", name: "a" }]);
    before.commit([aConfigMap("b", "2")]);
    await before.durable();
    await before.close();

    const after = await openDurableStore(directory);
    expect(after.revision).toBe(3);
    expect(after.table("configmaps").list("n")).toMatchObject([
      { metadata: { name: "b", resourceVersion: "3" }, data: { text: "2" } },
    ]);
    expect(
      after
        .table("configmaps")
        .snapshot(1)
        ?.map((o) => o.metadata.name),
    ).toEqual(["a", "b"]);
    const position = after.table("configmaps").positionAfter(1) ?? -1;
    expect(after.table("configmaps").entry(position)).toMatchObject({
      type: "DELETED",
      revision: 2,
      object: { metadata: { name: "a", resourceVersion: "2" } },
      previous: { metadata: { resourceVersion: "1" } },
    });
    await after.close();
  });

  it("keeps a null that is meant", async () => {
    const before = await openDurableStore(directory);
    const object = ownWithNulls({ kind: "Thing", apiVersion: "v1", spec: { colour: null } } as KubeObject);
    before.commit([{ resource: "things", namespace: "", name: "a", object }]);
    await before.close();
    const after = await openDurableStore(directory);
    expect(after.table("things").get("", "a")).toMatchObject({ spec: { colour: null } });
    await after.close();
  });

  it("keeps a second one out of its directory, and lets it in afterwards", async () => {
    const first = await openDurableStore(directory);
    await expect(openDurableStore(directory)).rejects.toThrow(
      `the data directory ${directory} is in use by process ${process.pid}: stop that process or choose another directory`,
    );
    await first.close();
    await (await openDurableStore(directory)).close();
  });

  it.each([
    ["its lock was removed", () => rm(join(directory, "lock"))],
    ["its directory was replaced", () => replaceDirectory(directory)],
  ])("writes nothing any more once %s", async (_name, lose) => {
    const failures: string[] = [];
    const store = await openDurableStore(directory, { onFailed: (error) => failures.push(error.message) });
    store.commit([aConfigMap("a")]);
    await store.durable();
    const path = join(directory, "objects", "000001.log");
    await lose();
    const before = await readFile(path);
    const message = `the lock of the data directory ${directory} is lost, and nothing is written there any more: see that no other server uses it, then start the server again`;
    store.commit([aConfigMap("b")]);
    await expect(store.durable()).rejects.toMatchObject({ cause: { message } });
    expect(failures).toEqual([message]);
    await store.close();
    expect((await readFile(path)).equals(before)).toBe(true);
    const after = await openDurableStore(directory);
    expect(after.table("configmaps").get("n", "b")).toBeUndefined();
    await after.close();
  });

  it("says in one sentence that it cannot be opened", async () => {
    const file = join(directory, "file");
    await writeFile(file, "");
    await expect(openDurableStore(join(file, "data"))).rejects.toThrow(
      /cannot be opened: check that it can be written/,
    );
  });

  it.each([
    ["garbage", () => Buffer.from("garbage ".repeat(4000))],
    ["a file that is cut off", (whole: Buffer) => whole.subarray(0, whole.length - 40)],
    ["an empty file", () => Buffer.alloc(0)],
    [
      "an object that is no JSON",
      (whole: Buffer) => replaced(whole, '"kind":"ConfigMap"', '"kind":"ConfigMap,'),
    ],
  ])("refuses %s in one sentence, and lets go of the directory", async (_name, damage) => {
    const store = await openDurableStore(directory);
    store.commit([aConfigMap("a")]);
    await store.durable();
    await store.close();
    const path = join(directory, "objects", "000001.log");
    await writeFile(path, damage(await readFile(path)));
    const message = `the store ${path} is damaged: restore it from a backup, or remove it to begin with an empty cluster`;
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(openDurableStore(directory)).rejects.toThrow(new StoreError(message));
    }
    await rm(join(directory, "objects"), { recursive: true });
    await (await openDurableStore(directory)).close();
  });

  it("refuses what a newer version has written, and leaves it as it is", async () => {
    await (await openDurableStore(directory)).close();
    const path = join(directory, "objects", "000001.log");
    const newer = replaced(await readFile(path), "format 1", "format 2");
    await writeFile(path, newer);
    await expect(openDurableStore(directory)).rejects.toThrow(
      `the store ${path} was written by a newer version of this program (format 2, this one reads up to 1): use that version, or another data directory`,
    );
    expect((await readFile(path)).equals(newer)).toBe(true);
  });

  it("refuses what an earlier version has written", async () => {
    await writeFile(join(directory, "objects.mdb"), "");
    await expect(openDurableStore(directory)).rejects.toThrow(/earlier version of this program/);
  });

  it.skipIf(process.getuid?.() !== 0)(
    "survives a disk that is full, and goes on when there is room",
    async () => {
      const disk = join(directory, "disk");
      await mkdir(disk);
      await run("mount", ["-t", "tmpfs", "-o", "size=2m", "none", disk]);
      try {
        const data = join(disk, "data");
        const store = await openDurableStore(data);
        const kept: string[] = [];
        let failure: unknown;
        for (let i = 0; failure === undefined; i++) {
          store.commit([aConfigMap(`c${i}`, "x".repeat(20_000))]);
          await store.durable()?.then(
            () => kept.push(`c${i}`),
            (error: unknown) => {
              failure = error;
            },
          );
        }
        expect(failure).toMatchObject({
          name: "StoreError",
          cause: { message: `cannot write to ${join(data, "objects")}: its disk is full, make room there` },
        });
        const names = (from: Store) =>
          from
            .table("configmaps")
            .list("n")
            .map((o) => o.metadata.name)
            .sort();
        expect(names(store)).toEqual(kept.sort());
        await expect(openDurableStore(join(disk, "other"))).rejects.toThrow(
          `cannot write to ${join(disk, "other")}: its disk is full, make room there`,
        );
        await run("mount", ["-o", "remount,size=8m", disk]);
        store.commit([aConfigMap("more")]);
        await store.durable();
        await store.close();
        const again = await openDurableStore(data);
        expect(names(again)).toEqual([...kept, "more"].sort());
        await again.close();
      } finally {
        await run("umount", ["-l", disk]);
      }
    },
  );

  it.skipIf(process.getuid?.() !== 0)(
    "goes on with its log when there is no room for a base, and makes one when there is",
    async () => {
      const disk = join(directory, "disk");
      await mkdir(disk);
      await run("mount", ["-t", "tmpfs", "-o", "size=3m", "none", disk]);
      try {
        let failures = 0;
        const onBaseFailed = () => failures++;
        const store = await openDurableStore(join(disk, "data"), {
          logBytesMin: 200_000,
          historyLimit: 10,
          onBaseFailed,
        });
        // More than half of the disk, so that there is no room for a base while the old files exist.
        for (let i = 0; i < 80; i++) {
          store.commit([aConfigMap(`c${i}`, "x".repeat(20_000))]);
          await store.durable();
        }
        while (failures === 0) {
          store.commit([aConfigMap("more", "x".repeat(20_000))]);
          await store.durable();
        }
        await run("mount", ["-o", "remount,size=20m", disk]);
        const objects = join(disk, "data", "objects");
        const base = filesOf(objects, "base").at(-1);
        for (let i = 0; i < 500 && filesOf(objects, "base").at(-1) === base; i++) {
          store.commit([aConfigMap("more", "x".repeat(20_000))]);
          await store.durable();
        }
        expect(filesOf(objects, "base").at(-1)).not.toBe(base);
        const { revision } = store;
        await store.close();
        const again = await openDurableStore(join(disk, "data"));
        expect(again.revision).toBe(revision);
        expect(again.table("configmaps").size).toBe(81);
        await again.close();
      } finally {
        await run("umount", ["-l", disk]);
      }
    },
  );

  it("stores nothing more once a sync has failed, since the content of the disk is unknown, and reports it", async () => {
    const failures: Error[] = [];
    const store = await openDurableStore(directory, { onFailed: (error) => failures.push(error) });
    store.commit([aConfigMap("a")]);
    await store.durable();
    const handle = await open(join(directory, "objects", "000001.log"));
    const sync = vi.spyOn(Object.getPrototypeOf(handle), "datasync");
    await handle.close();
    sync.mockRejectedValueOnce(new Error("EIO: i/o error, fdatasync"));
    store.commit([aConfigMap("b")]);
    await expect(store.durable()).rejects.toThrow("the change could not be stored");
    const calls = sync.mock.calls.length;
    store.commit([aConfigMap("c")]);
    await expect(store.durable()).rejects.toThrow("the change could not be stored");
    expect(sync.mock.calls).toHaveLength(calls);
    expect(failures.map((error) => error.message)).toEqual([
      `cannot write to ${join(directory, "objects")}: check that the disk is healthy, then start the server again`,
    ]);
    await store.close();
    sync.mockRestore();
    const again = await openDurableStore(directory);
    expect(again.table("configmaps").get("n", "a")).toBeDefined();
    expect(again.table("configmaps").get("n", "c")).toBeUndefined();
    await again.close();
  });

  it("keeps every acknowledged write, each whole, when its process is killed again and again", async () => {
    const writer = new URL("../../testing/power-loss/recorded-writer.ts", import.meta.url).pathname;
    const model = memoryStore();
    const stateOf = (of: Store) =>
      ["configmaps", "secrets"].map((resource) => JSON.stringify(of.table(resource).list()));
    let acknowledged = 0;
    for (const killAfter of [1, 150, 37, 90]) {
      const args = ["--import", "tsx", writer, directory, "1000000", "4"];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      let count = 0;
      for await (const line of createInterface(child.stdout)) {
        acknowledged = Math.max(acknowledged, Number(line.slice("ack ".length)));
        if (++count === killAfter) child.kill("SIGKILL");
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      expect(count).toBeGreaterThanOrEqual(killAfter);
      const store = await openDurableStore(directory);
      expect(store.revision).toBeGreaterThanOrEqual(acknowledged);
      while (model.revision < store.revision) model.commit(changesOf(model.revision + 1, model));
      expect(stateOf(store)).toEqual(stateOf(model));
      await store.close();
    }
  });
});

/** A disk whose writes the test lets end. */
class SlowDisk implements Persistence {
  readonly groups: { readonly size: number; end(error?: Error): void }[] = [];
  persist(commits: readonly unknown[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.groups.push({
        size: commits.length,
        end: (error) => (error === undefined ? resolve() : reject(error)),
      });
    });
  }
  async close(): Promise<void> {}
}

describe("the history", () => {
  it("of the last five minutes is kept, and of each resource the latest changes whatever their age", () => {
    let now = 0;
    const store = new ObjectStore({ now: () => now });
    const table = store.table("configmaps");
    for (let i = 0; i < 1000; i++) store.commit([aConfigMap("busy", String(i))]);
    store.commit([{ ...aConfigMap("quiet"), resource: "secrets" }]);
    for (let minute = 1; minute <= 5; minute++) {
      now = minute * 60_000;
      expect(table.positionAfter(0)).toBe(0);
      store.commit([aConfigMap("busy", `minute ${minute}`)]);
    }
    now = 6 * 60_000;
    store.commit([aConfigMap("busy", "last")]);
    expect(table.positionAfter(0)).toBeUndefined();
    expect(table.snapshot(store.revision - 500)).toHaveLength(1);
    expect(store.table("secrets").positionAfter(0)).toBe(0);
  });

  it("does not take more memory than it may, however large the objects", () => {
    const store = new ObjectStore({ historyBytesMax: 1_000_000 });
    for (let i = 0; i < 100; i++) store.commit([aConfigMap("busy", "x".repeat(100_000))]);
    const table = store.table("configmaps");
    expect(table.positionAfter(store.revision - 6)).toBeDefined();
    expect(table.positionAfter(store.revision - 12)).toBeUndefined();
    for (let i = 0; i < 100; i++) store.commit([aConfigMap(`small-${i}`)]);
    expect(table.positionAfter(store.revision - 100)).toBeDefined();
    const one = new ObjectStore({ historyBytesMax: 10 });
    for (let i = 0; i < 3; i++) one.commit([aConfigMap("huge", "x".repeat(1000))]);
    expect(one.table("configmaps").positionAfter(2)).toBeDefined();
    expect(one.table("configmaps").positionAfter(1)).toBeUndefined();
  });

  it("is not longer than its limit, however fast it grows", () => {
    const store = new ObjectStore({ historyLimit: 100 });
    for (let i = 0; i < 1000; i++) store.commit([aConfigMap("busy", String(i))]);
    const table = store.table("configmaps");
    expect(table.positionAfter(store.revision - 100)).toBeDefined();
    expect(table.positionAfter(store.revision - 130)).toBeUndefined();
  });
});

describe("commits on their way to the disk", () => {
  it("go there in groups, and are read by watches only once they are there", async () => {
    const disk = new SlowDisk();
    const store = new ObjectStore({}, disk);
    store.commit([aConfigMap("a")]);
    store.commit([aConfigMap("b")]);
    store.commit([aConfigMap("c")]);
    expect(disk.groups.map((g) => g.size)).toEqual([1]);
    expect(store.table("configmaps").entry(0)).toBeUndefined();
    const all = store.durable();
    disk.groups[0]?.end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(store.table("configmaps").entry(0)).toMatchObject({ name: "a" });
    expect(store.table("configmaps").entry(1)).toBeUndefined();
    expect(disk.groups.map((g) => g.size)).toEqual([1, 2]);
    disk.groups[1]?.end();
    await all;
    expect(store.readableRevision).toBe(3);
    expect(store.durable()).toBeUndefined();
  });

  it("are taken back, with all that was built on them, when the disk refuses", async () => {
    const disk = new SlowDisk();
    const store = new ObjectStore({}, disk);
    store.commit([aConfigMap("kept")]);
    const first = store.durable();
    disk.groups[0]?.end();
    await first;
    store.commit([aConfigMap("kept", "changed")]);
    const second = store.durable();
    store.commit([aConfigMap("later")]);
    const third = store.durable();
    disk.groups[1]?.end(new Error("ENOSPC"));
    await expect(second).rejects.toBeInstanceOf(StoreError);
    await expect(third).rejects.toBeInstanceOf(StoreError);
    expect(store.table("configmaps").list()).toMatchObject([
      { metadata: { name: "kept" }, data: { text: "1" } },
    ]);
    store.commit([aConfigMap("again")]);
    const fourth = store.durable();
    disk.groups[2]?.end();
    await fourth;
    expect(store.table("configmaps").entry(1)).toMatchObject({ name: "again", type: "ADDED", revision: 4 });
  });
});
