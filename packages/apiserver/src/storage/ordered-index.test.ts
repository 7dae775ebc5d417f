import fc from "fast-check";
import { expect, it } from "vitest";
import { OrderedIndex } from "./ordered-index.ts";

it("is what a sorted map would be, whatever is put in and taken out", () => {
  const key = fc.integer({ min: 0, max: 3000 }).map((n) => `k${n}`);
  const step = fc.tuple(fc.boolean(), key);
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2500 }),
      fc.array(step, { maxLength: 300 }),
      key,
      (n, steps, from) => {
        const index = new OrderedIndex<number>();
        const model = new Map<string, number>();
        for (let i = 0; i < n; i++) {
          index.set(`k${i}`, i);
          model.set(`k${i}`, i);
        }
        steps.forEach(([isSet, k], i) => {
          if (isSet) {
            expect(index.set(k, i)).toBe(model.get(k));
            model.set(k, i);
          } else {
            expect(index.delete(k)).toBe(model.get(k));
            model.delete(k);
          }
          expect(index.get(k)).toBe(model.get(k));
        });
        const sorted = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
        const seen: [string, number][] = [];
        index.scan(from, "k5", (k, value) => seen.push([k, value]) > 0);
        expect(seen).toEqual(sorted.filter(([k]) => k >= from && k < "k5"));
        expect(index.rank(from)).toBe(sorted.filter(([k]) => k < from).length);
        expect(index.size).toBe(model.size);
      },
    ),
    { numRuns: 60 },
  );
});
