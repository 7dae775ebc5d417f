import fc from "fast-check";
import { expect, it } from "vitest";
import { MultiMap } from "./multi-map.ts";

it("holds what a map of sets holds, in the same order", () => {
  const step = fc.record({
    isAdded: fc.boolean(),
    key: fc.constantFrom("a", "b"),
    value: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const map = new MultiMap<string, number>();
      const model = new Map<string, Set<number>>();
      for (const { isAdded, key, value } of steps) {
        const values = model.get(key) ?? new Set();
        if (isAdded) {
          map.add(key, value);
          values.add(value);
        } else {
          map.delete(key, value);
          values.delete(value);
        }
        if (values.size > 0) model.set(key, values);
        else model.delete(key);
        expect(map.size).toBe(model.size);
        for (const one of ["a", "b"]) {
          expect(map.get(one)).toEqual([...(model.get(one) ?? [])]);
          expect(map.has(one)).toBe(model.has(one));
        }
      }
    }),
  );
});

it("what was read does not change later", () => {
  const map = new MultiMap<string, number>();
  map.add("a", 1);
  map.add("a", 2);
  const read = map.get("a");
  map.delete("a", 1);
  expect(read).toEqual([1, 2]);
});
