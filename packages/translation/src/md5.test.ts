import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { md5Hex } from "./md5.ts";

test("equals the platform's MD5 for any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (text) => {
      expect(md5Hex(text)).toBe(createHash("md5").update(text, "utf8").digest("hex"));
    }),
  );
  for (const length of [0, 55, 56, 63, 64, 65, 119, 120, 128]) {
    const text = "a".repeat(length);
    expect(md5Hex(text)).toBe(createHash("md5").update(text).digest("hex"));
  }
});
