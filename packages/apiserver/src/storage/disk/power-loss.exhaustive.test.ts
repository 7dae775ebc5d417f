/**
 * What is acknowledged survives a loss of power: a real process is recorded at its system calls, killed and begun again,
 * and at every point of it the disk is rebuilt, as it was and with what was not synced lost, reordered or torn.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Decide, DiskModel, type Image } from "../../testing/power-loss/disk-model.ts";
import { changesOf } from "../../testing/power-loss/recorded-writer.ts";
import {
  type Operation,
  operationsOf,
  record,
  whyNotRecordable,
} from "../../testing/power-loss/recording.ts";
import { memoryStore } from "../object-store.ts";
import type { Store } from "../store.ts";
import { openDurableStore } from "./open-durable-store.ts";

const why = whyNotRecordable();
if (why !== undefined) console.warn(`the loss of power is not tested: ${why} (Debian package strace)`);

const commits = 120;
const seed = 20260101;

/** Everything that a store holds, as text. */
function stateOf(store: Store): string {
  return ["configmaps", "secrets"].map((resource) => JSON.stringify(store.table(resource).list())).join("\n");
}

/** What a store must hold at each revision. */
function expectedStates(): string[] {
  const store = memoryStore();
  const states = [stateOf(store)];
  while (store.revision < commits) {
    store.commit(changesOf(store.revision + 1, store));
    states.push(stateOf(store));
  }
  return states;
}

/** Numbers in [0, 1) that follow from the seed (mulberry32). */
function seededNumbers(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The disks that a loss of power may leave now: all combinations when few, else some. */
function* imagesOf(disk: DiskModel, random: () => number): Generator<Image> {
  yield disk.image(() => "whole");
  yield disk.image(() => "lost");
  let open = 0;
  disk.image((_n, path) => {
    if (!path.endsWith("acknowledged")) open++;
    return "whole";
  });
  if (open <= 4) {
    for (let bits = 0; bits < 2 ** open; bits++) {
      for (const marks of ["whole", "lost"] as const) {
        let seen = 0;
        yield disk.image((_n, path) => {
          if (path.endsWith("acknowledged")) return marks;
          return (bits >> seen++) & 1 ? "whole" : "lost";
        });
      }
    }
  }
  for (let sample = 0; sample < 6; sample++) {
    const share = random();
    const decide: Decide = () => (random() < share ? "whole" : random() < 0.5 ? "torn" : "lost");
    yield disk.image(decide, random);
  }
}

interface Outcome {
  readonly images: number;
  readonly distinct: number;
  readonly failures: readonly string[];
}

/** Opens every disk that every point of the recording may leave. */
async function check(operations: readonly Operation[], data: string, scratch: string): Promise<Outcome> {
  const expected = expectedStates();
  const random = seededNumbers(seed);
  const disk = new DiskModel();
  const known = new Map<string, number | string>();
  const failures: string[] = [];
  let acknowledged = 0;
  let images = 0;
  for (const [i, operation] of operations.entries()) {
    disk.apply(operation);
    if (operation.type === "said") {
      for (const [, revision] of operation.text.matchAll(/^ack (\d+)$/gm)) {
        acknowledged = Math.max(acknowledged, Number(revision));
      }
    }
    for (const image of imagesOf(disk, random)) {
      images++;
      const hash = createHash("sha1");
      for (const [path, bytes] of image) hash.update(`${path}\0${bytes.length}\0`).update(bytes);
      const key = hash.digest("base64");
      const found = known.get(key) ?? (await opened(image, data, scratch, expected));
      known.set(key, found);
      if (typeof found === "number" && found >= acknowledged) continue;
      failures.push(`after operation ${i} (${operation.type}), ${acknowledged} acknowledged: ${found}`);
      if (failures.length >= 20) return { images, distinct: known.size, failures };
    }
  }
  expect(acknowledged).toBe(commits);
  return { images, distinct: known.size, failures };
}

/** The revision of the store on the disk, or what is wrong with it. */
async function opened(
  image: Image,
  data: string,
  scratch: string,
  expected: readonly string[],
): Promise<number | string> {
  rmSync(scratch, { recursive: true, force: true });
  for (const [path, bytes] of image) {
    if (!path.startsWith(`${data}/`)) continue;
    const place = join(scratch, path.slice(data.length));
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, bytes);
  }
  let store: Store;
  try {
    store = await openDurableStore(scratch);
  } catch (error) {
    return `${error}`;
  }
  try {
    const { revision } = store;
    if (stateOf(store) !== expected[revision]) return `revision ${revision} holds something else`;
    return revision;
  } finally {
    await store.close();
  }
}

describe.skipIf(why !== undefined)("a loss of power", () => {
  let directory: string;
  let scratch: string;
  let data: string;
  let operations: Operation[];

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "power-"));
    // In memory where there is such a place: the thousands of stores that are opened need not reach a disk.
    scratch = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "power-"));
    data = join(directory, "data");
    const writer = new URL("../../testing/power-loss/recorded-writer.ts", import.meta.url).pathname;
    const runs = [
      ["50", "1", "kill"],
      ["90", "4", "kill"],
      [String(commits), "2", "close"],
    ];
    const traces = runs.map((run) =>
      record([process.execPath, "--import", "tsx", writer, data, ...run], join(directory, "trace")),
    );
    operations = operationsOf(traces.join("\n"), data);
  });
  afterAll(() => {
    rmSync(directory, { recursive: true });
    rmSync(scratch, { recursive: true });
  });

  it("takes nothing that was acknowledged, nor half of a commit, whatever was not synced", async () => {
    const count = (type: Operation["type"]) => operations.filter((o) => o.type === type).length;
    expect(count("sync")).toBeGreaterThan(60);
    expect(count("rename")).toBeGreaterThan(4);
    const outcome = await check(operations, data, join(scratch, "data"));
    expect(outcome.failures).toEqual([]);
    expect(outcome.images).toBeGreaterThan(4000);
    expect(outcome.distinct).toBeGreaterThan(1000);
    console.info(`${operations.length} operations, ${outcome.images} disks, ${outcome.distinct} different`);
  });

  it("would be noticed by this test, if syncs were left out or came after the acknowledgement", async () => {
    const withoutSyncs = operations.filter((o) => o.type !== "sync" || !o.path.endsWith(".log"));
    const late = operations.map((o) =>
      o.type === "sync" && o.path.endsWith(".log") ? { ...o, end: o.end + 40 } : o,
    );
    const effect = (o: Operation) => (o.type === "sync" ? o.end : o.begin);
    late.sort((a, b) => effect(a) - effect(b));
    for (const broken of [withoutSyncs, late]) {
      const { failures } = await check(broken, data, join(scratch, "data"));
      expect(failures).toHaveLength(20);
    }
  });
});
