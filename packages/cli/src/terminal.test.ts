import { expect, test } from "vitest";
import { seconds, table } from "./terminal.ts";

test("columns are as wide as their widest cell, and no line ends in blanks", () => {
  expect(
    table([
      ["NODE", "READY", "ZONE"],
      ["node-1", "True", ""],
    ]),
  ).toBe("NODE     READY   ZONE\nnode-1   True\n");
});

test("times are in seconds", () => {
  expect(seconds(1449)).toBe("1.4 s");
});
