import { expect, test } from "vitest";
import { terminalSizes } from "./terminal-sizes.ts";

test.each([
  ["one", ['{"Width":80,"Height":24}\n'], [[80, 24]]],
  [
    "two at once, without an end of line",
    ['{"Width":80,"Height":24}{"Width":81,"Height":25}'],
    [
      [80, 24],
      [81, 25],
    ],
  ],
  ["one in pieces", ['{"Wid', 'th":80,"Height"', ":24}\n"], [[80, 24]]],
  [
    "the next after what is none",
    ['no}{"Width":0,"Height":24}{"Width":1,"Height":70000}\n{"Width":2,"Height":3}'],
    [[2, 3]],
  ],
  [
    "the next after a beginning without an end",
    [`{"x":"${"y".repeat(1000)}`, '"}{"Width":2,"Height":3}'],
    [[2, 3]],
  ],
] as const)("sizes of a terminal: %s", async (_name, pieces, sizes) => {
  async function* input() {
    for (const piece of pieces) yield Buffer.from(piece);
  }
  const seen: number[][] = [];
  for await (const { columns, rows } of terminalSizes(input())) seen.push([columns, rows]);
  expect(seen).toEqual(sizes);
});
