import { expect, test } from "vitest";
import { foreignText, hasUnfitCharacters } from "./foreign-text.ts";

test("a text is on one line and steers nothing; the rest stays as it is", () => {
  expect(foreignText("a\nb\tc\x00\x1b[31m\x7f\x9b\u202e\u2066\u2029\ufeff")).toBe(
    "a\\nb\\tc\\x00\\x1b[31m\\x7f\\x9b\\u202e\\u2066\\u2029\\ufeff",
  );
  expect(foreignText("plain \\n, ünïcode 😀, שלום")).toBe("plain \\n, ünïcode 😀, שלום");
  expect(foreignText("half \ud83d.")).toBe("half \\ud83d.");
});

test("a long text is cut, between characters", () => {
  expect(foreignText("x".repeat(10), 10)).toBe("x".repeat(10));
  expect(foreignText("x".repeat(11), 10)).toBe(`${"x".repeat(10)}… (1 more characters)`);
  expect(foreignText("😀😀😀", 3)).toBe("😀… (4 more characters)");
});

test("a text that would be changed is recognised", () => {
  expect(hasUnfitCharacters("plain")).toBe(false);
  // A pattern that remembers where it was would miss every other one.
  for (let i = 0; i < 3; i++) expect(hasUnfitCharacters("a\u2028")).toBe(true);
});
