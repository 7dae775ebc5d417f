/** The fast patches return the same results as the naive ones, and their cost stays within bounds. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { own } from "../api/own.ts";
import { type JsonOperation, naiveJsonPatch, naiveListMerge } from "../testing/naive-patches.ts";
import { applyJsonPatch } from "./apply-json-patch.ts";
import { applyStrategicPatch } from "./apply-strategic-patch.ts";
import { WorkingList } from "./working-list.ts";

/** The value, or "refused". */
function outcome(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    expect((error as { code?: number }).code).toBeGreaterThanOrEqual(400);
    return "refused";
  }
}

const names = fc.constantFrom("a", "b", "c", "0", "1", "-1", "-", "9", "x~1y");
const paths = fc.array(names, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join("/")}`);
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    fc.constantFrom(null, 1, "t", true, {}, []),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
const operations: fc.Arbitrary<JsonOperation> = fc.record({
  op: fc.constantFrom("add", "add", "add", "remove", "replace", "move", "copy", "copy", "test"),
  path: paths,
  from: paths,
  value: values,
});
const objects = fc.dictionary(fc.constantFrom("a", "b", "c"), values, { noNullPrototype: true });

describe("a JSON patch", () => {
  it("gives what operations give that are carried out one by one on a copy", () => {
    fc.assert(
      fc.property(objects, fc.array(operations, { maxLength: 8 }), (target, patch) => {
        const before = structuredClone(target);
        // What is refused says little of what is not: as many operations as can be applied.
        const whole = naiveJsonPatch(target, patch);
        expect(outcome(() => applyJsonPatch(target, patch))).toEqual(whole);
        const applicable = patch.filter((operation) => naiveJsonPatch(target, [operation]) !== "refused");
        expect(outcome(() => applyJsonPatch(target, applicable))).toEqual(naiveJsonPatch(target, applicable));
        expect(target).toEqual(before);
      }),
      { numRuns: 500 },
    );
  });

  it("looks at the members of the object once, however many operations there are", () => {
    const looks = (operationCount: number) => {
      let count = 0;
      const members = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, "v"]));
      const data = new Proxy(members, {
        ownKeys(object) {
          const keys = Reflect.ownKeys(object);
          count += keys.length;
          return keys;
        },
        get(object, key) {
          count++;
          return Reflect.get(object, key);
        },
      });
      const patch = Array.from({ length: operationCount }, (_, i) => [
        { op: "add", path: `/data/n${i}`, value: "v" },
        { op: "replace", path: `/data/k${i % 100}`, value: "w" },
      ]).flat();
      applyJsonPatch({ data }, patch);
      return count;
    };
    expect(looks(1000)).toBe(looks(10));
  });

  it("counts the members once of an object that is tested again and again", () => {
    let counted = 0;
    const data = new Proxy({ a: 1, b: 2 } as Record<string, unknown>, {
      ownKeys(object) {
        counted++;
        return Reflect.ownKeys(object);
      },
    });
    const wanted = { a: 1, b: 2 };
    applyJsonPatch({ data }, Array(500).fill({ op: "test", path: "/data", value: wanted }));
    expect(counted).toBe(1);
  });

  it("bounds what it copies", () => {
    const doubling = Array.from({ length: 60 }, (_, i) => ({
      op: "copy",
      from: "/data",
      path: `/data/x${i}`,
    }));
    expect(() => applyJsonPatch({ data: { a: "text" } }, doubling)).toThrow(
      /accumulated size increase of copy is \d+, exceeding the limit 3145728/,
    );
  });

  it("refuses to nest without end", () => {
    const nesting = Array.from({ length: 3000 }, () => [
      { op: "move", from: "/a", path: "/b" },
      { op: "add", path: "/a", value: {} },
      { op: "move", from: "/b", path: "/a/x" },
    ]).flat();
    expect(() => applyJsonPatch({ a: {} }, nesting)).toThrow(/nested more than 500 levels deep/);
  });
});

describe("a list into whose middle items are put", () => {
  it("is as an array is", () => {
    const steps = fc.array(fc.tuple(fc.nat(), fc.constantFrom("insert", "insert", "remove", "set")), {
      maxLength: 3000,
      size: "max",
    });
    fc.assert(
      fc.property(fc.nat(1500), steps, (length, all) => {
        const array: unknown[] = Array.from({ length }, (_, i) => i);
        const list = new WorkingList(array);
        for (const [at, step] of all) {
          if (step === "insert") {
            const index = at % (array.length + 1);
            array.splice(index, 0, -at);
            list.insert(index, -at);
          } else if (array.length > 0) {
            const index = at % array.length;
            if (step === "set") {
              array[index] = at;
              list.set(index, at);
            } else {
              array.splice(index, 1);
              list.remove(index);
            }
            expect(list.at(index)).toBe(array[index]);
          }
        }
        expect(list.toArray()).toEqual(array);
        expect(list.length).toBe(array.length);
      }),
      { numRuns: 30 },
    );
  });
});

const words = fc.constantFrom("a", "b", "c", "d", "e");
const maybe = <T>(list: fc.Arbitrary<T>) => fc.option(list, { nil: undefined });
const pod = { group: "", kind: "Pod" };
const items = fc.record({ name: words, image: fc.constantFrom("x", "y") });
const containerOf = (name: string) => ({ name });
const unique = <T>(of: fc.Arbitrary<T>) => fc.uniqueArray(of, { maxLength: 5 });

describe("a strategic merge patch", () => {
  it("merges values as sets are merged item by item", () => {
    fc.assert(
      fc.property(
        unique(words),
        fc.array(words, { maxLength: 6 }),
        maybe(unique(words)),
        unique(words),
        (before, value, order, gone) => {
          const patch = {
            finalizers: value,
            "$deleteFromPrimitiveList/finalizers": gone,
            ...(order === undefined ? {} : { "$setElementOrder/finalizers": order }),
          };
          const target = own({ metadata: { finalizers: before } });
          const result = outcome(() => applyStrategicPatch(target, { metadata: patch }, pod));
          const expected = naiveListMerge({ before, value, order, gone, mergeKey: undefined });
          expect(result).toEqual(expected === "refused" ? expected : { metadata: { finalizers: expected } });
        },
      ),
      { numRuns: 500 },
    );
  });

  it("merges items by their keys as item by item", () => {
    const patched = fc.oneof(
      items,
      words.map((name) => ({ name, $patch: "delete" })),
    );
    const lists = fc.array(items, { maxLength: 5 });
    fc.assert(
      fc.property(
        lists,
        fc.array(patched, { minLength: 1, maxLength: 6 }),
        maybe(unique(words)),
        (before, value, names) => {
          const order = names?.map(containerOf);
          const patch = {
            containers: value,
            ...(order === undefined ? {} : { "$setElementOrder/containers": order }),
          };
          const result = outcome(() =>
            applyStrategicPatch(own({ spec: { containers: before } }), { spec: patch }, pod),
          );
          const expected = naiveListMerge({ before, value, order, gone: [], mergeKey: "name" });
          expect(result).toEqual(expected === "refused" ? expected : { spec: { containers: expected } });
        },
      ),
      { numRuns: 500 },
    );
  });

  it("looks at the key of each item a few times, however many there are", () => {
    const looksOf = (count: number) => {
      let looks = 0;
      const item = (name: string) => ({
        get name() {
          looks++;
          return name;
        },
      });
      const before = Array.from({ length: count }, (_, i) => item(`c${i}`));
      const containers = Array.from({ length: count }, (_, i) => ({ name: `c${i * 2}`, image: "x" }));
      const order = [...containers, ...before].map(({ name }) => ({ name }));
      looks = 0;
      applyStrategicPatch(
        { spec: { containers: before } },
        { spec: { containers, "$setElementOrder/containers": order } },
        pod,
      );
      return looks;
    };
    expect(looksOf(400)).toBe(4 * looksOf(100));
  });

  it("refuses one that names the same item of a long list again and again", () => {
    const env = Array.from({ length: 5000 }, (_, i) => ({ name: `E${i}` }));
    const target = own({ spec: { containers: [{ name: "main", env }] } });
    const again = Array.from({ length: 1000 }, () => ({ name: "main", env: [{ name: "E0", value: "x" }] }));
    expect(() => applyStrategicPatch(target, { spec: { containers: again } }, pod)).toThrow(
      expect.objectContaining({ code: 413, message: expect.stringContaining("name each item once") }),
    );
  });
});
