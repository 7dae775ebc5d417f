/** What every form of the Random seam does alike. Run by the tests of the forms. */
import { describe, expect, test } from "vitest";
import type { Random } from "./random.ts";

/** Declares the contract's tests for one form. */
export function randomContract(form: string, make: () => Random): void {
  describe(`random contract: ${form}`, () => {
    test("draws are integers in [0, bound), and all of them come", () => {
      const random = make();
      const drawn = new Set(Array.from({ length: 1000 }, () => random.below(7, "test")));
      expect([...drawn].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(random.below(1, "test")).toBe(0);
      for (let i = 0; i < 100; i++) {
        const large = random.below(2 ** 32, "test");
        expect(Number.isInteger(large) && large >= 0 && large < 2 ** 32).toBe(true);
      }
    });

    test("uuids are of version 4 and all different, in forks, too", () => {
      const random = make();
      const uuids = [random, random.fork("a"), random.fork("b")].flatMap((stream) =>
        Array.from({ length: 100 }, () => stream.uuid("test")),
      );
      for (const uuid of uuids) {
        expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      }
      expect(new Set(uuids).size).toBe(300);
    });
  });
}
