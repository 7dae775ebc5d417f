/** What a disk changes by itself is noticed: a store is refused, or it holds everything. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changesOf } from "../../testing/power-loss/recorded-writer.ts";
import { type Store, StoreError } from "../store.ts";
import { backupStore, restoreStore } from "./backup-store.ts";
import { openDurableStore } from "./open-durable-store.ts";

const stateOf = (store: Store) =>
  ["configmaps", "secrets"].map((resource) => JSON.stringify(store.table(resource).list())).join("\n");

let directory: string;
/** A store that was closed, and one whose process was killed. */
const stores: Record<"closed" | "killed", { readonly path: string; state: string; revision: number }> = {
  closed: { path: "", state: "", revision: 0 },
  killed: { path: "", state: "", revision: 0 },
};
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "damage-"));
  const store = await openDurableStore(join(directory, "closed"), { logBytesMin: 12_000, historyLimit: 20 });
  while (store.revision < 60) {
    store.commit(changesOf(store.revision + 1, store));
    await store.durable();
  }
  // A base that is being written meanwhile would leave files of which some are not needed.
  while (readdirSync(join(directory, "closed", "objects")).length !== 3) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  cpSync(join(directory, "closed"), join(directory, "killed"), { recursive: true });
  const { revision } = store;
  for (const name of ["closed", "killed"] as const) {
    stores[name] = { path: join(directory, name), state: stateOf(store), revision };
    rmSync(join(directory, name, "lock"), { force: true });
  }
  await store.close();
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Opens a changed copy of the store: "whole", or the failure. */
async function outcome(name: "closed" | "killed", change: (objects: string) => void): Promise<string> {
  const { path, state, revision } = stores[name];
  const copy = mkdtempSync(join(directory, "copy-"));
  cpSync(path, copy, { recursive: true });
  change(join(copy, "objects"));
  try {
    const store = await openDurableStore(copy);
    const found = stateOf(store) === state && store.revision === revision ? "whole" : "LOST";
    await store.close();
    return found;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return error.message.replace(/^the store \S+ (is damaged|was written by a newer version).*$/, "$1");
  } finally {
    rmSync(copy, { recursive: true });
  }
}

const names = ["closed", "killed"] as const;

describe.each(names)("a store that was %s", (name) => {
  it("has several files", () => {
    const files = readdirSync(join(stores[name].path, "objects")).sort();
    expect(files).toEqual([expect.stringMatching(/base$/), expect.stringMatching(/log$/), "acknowledged"]);
  });

  it("is refused or whole when bits change", async () => {
    const seen = new Map<string, number>();
    const flip = fc.record({ place: fc.double({ min: 0, max: 0.999999, noNaN: true }), bit: fc.nat(7) });
    await fc.assert(
      fc.asyncProperty(fc.array(flip, { minLength: 1, maxLength: 4 }), async (flips) => {
        const found = await outcome(name, (objects) => {
          const files = readdirSync(objects).map((file) => join(objects, file));
          const total = files.reduce((sum, file) => sum + statSync(file).size, 0);
          for (const { place, bit } of flips) {
            let at = Math.floor(place * total);
            const file = files.find((f) => {
              const { size } = statSync(f);
              if (at < size) return true;
              at -= size;
              return false;
            }) as string;
            const bytes = readFileSync(file);
            bytes[at] = (bytes[at] as number) ^ (1 << bit);
            writeFileSync(file, bytes);
          }
        });
        seen.set(found, (seen.get(found) ?? 0) + 1);
        expect(["whole", "is damaged", "was written by a newer version"]).toContain(found);
      }),
      { numRuns: 300 },
    );
    expect(seen.get("is damaged")).toBeGreaterThan(200);
  });

  it("is refused or whole when any one byte of its last frame, or of what says how far it was, changes", async () => {
    const found = new Set<string>();
    for (const [file, count] of [
      ["acknowledged", 64],
      ["log", 64],
    ] as const) {
      for (let i = 0; i < count; i++) {
        found.add(
          await outcome(name, (objects) => {
            const path = join(objects, readdirSync(objects).find((f) => f.endsWith(file)) as string);
            const bytes = readFileSync(path);
            const at = bytes.length - 1 - i;
            bytes[at] = (bytes[at] as number) ^ 0xff;
            writeFileSync(path, bytes);
          }),
        );
      }
    }
    expect([...found].sort()).toEqual(["is damaged", "whole"]);
  });

  it("is refused when its last frame and both marks of how far it was have changed", async () => {
    const found = await outcome(name, (objects) => {
      for (const [type, places] of [
        ["acknowledged", [3, 40]],
        ["log", [-20]],
      ] as const) {
        const path = join(objects, readdirSync(objects).find((f) => f.endsWith(type)) as string);
        const bytes = readFileSync(path);
        for (const place of places) {
          const at = (place + bytes.length) % bytes.length;
          bytes[at] = (bytes[at] as number) ^ 1;
        }
        writeFileSync(path, bytes);
      }
    });
    expect(found).toBe("is damaged");
  });

  it.each([
    ["base", "is damaged"],
    ["log", "is damaged"],
    ["acknowledged", "whole"],
  ])("without its file %s: %s", async (file, expected) => {
    const without = (objects: string) =>
      rmSync(join(objects, readdirSync(objects).find((f) => f.endsWith(file)) as string));
    expect(await outcome(name, without)).toBe(expected);
  });

  it("is refused when a file is cut off anywhere", async () => {
    for (const type of ["log", "base"]) {
      for (const share of [0, 0.0003, 0.2, 0.7, 0.95]) {
        const cut = await outcome(name, (objects) => {
          const path = join(objects, readdirSync(objects).find((f) => f.endsWith(type)) as string);
          const bytes = readFileSync(path);
          writeFileSync(path, bytes.subarray(0, Math.floor(bytes.length * share)));
        });
        expect(`${type} ${share} ${cut}`).toBe(`${type} ${share} is damaged`);
      }
    }
  });
});

describe("a backup", () => {
  it("is refused when a bit changes or it is cut off, and nothing is restored", async () => {
    const file = join(directory, "backup");
    await backupStore(stores.closed.path, file);
    const whole = readFileSync(file);
    const target = join(directory, "restored");
    const attempts = Array.from({ length: 60 }, (_, i) => Math.floor((i / 60) * whole.length));
    for (const at of attempts) {
      for (const bytes of [Buffer.from(whole), whole.subarray(0, at)]) {
        if (bytes.length === whole.length) bytes[at] = (bytes[at] as number) ^ 1;
        writeFileSync(file, bytes);
        await expect(restoreStore(file, target, new Date(0))).rejects.toBeInstanceOf(StoreError);
      }
    }
    writeFileSync(file, whole);
    await restoreStore(file, target, new Date(0));
    const store = await openDurableStore(target);
    expect(stateOf(store)).toBe(stores.closed.state);
    await store.close();
  });
});
