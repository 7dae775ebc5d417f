import { expect, test } from "vitest";
import { matcher } from "./filter.ts";

test.each([
  ["", "anything", true],
  ["  ", "anything", true],
  ["data node-1", "default/data-writer-0 node-1 · CSI", true],
  ["NODE-1 Data", "default/data-writer-0 node-1 · CSI", true],
  ["data node-2", "default/data-writer-0 node-1 · CSI", false],
  [".*", "no pattern", false],
])('"%s" in "%s": %s', (filter, text, expected) => {
  expect(matcher(filter)(text)).toBe(expected);
});
