import fc from "fast-check";
import { expect, test } from "vitest";
import { type Line, LineSplitter } from "./line-splitter.ts";

const textOf = ({ bytes, start, end }: Line): string => bytes.toString("utf8", start, end);

test("lines come out whole wherever the stream is cut, also inside a character", () => {
  const text = fc.array(fc.string({ unit: "grapheme", minLength: 1 }).map((s) => s.replaceAll("\n", "x")));
  fc.assert(
    fc.property(text, fc.array(fc.nat({ max: 200 })), (lines, cuts) => {
      const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
      const places = [0, ...cuts.filter((cut) => cut <= bytes.length).sort((a, b) => a - b), bytes.length];
      const splitter = new LineSplitter();
      const seen: string[] = [];
      for (let i = 1; i < places.length; i++) {
        seen.push(...splitter.push(bytes.subarray(places[i - 1], places[i])).map(textOf));
      }
      expect(seen).toEqual(lines);
      expect(splitter.isInsideLine).toBe(false);
    }),
  );
});

test("a stream that ends inside a line is known for it", () => {
  const splitter = new LineSplitter();
  expect(splitter.push(new TextEncoder().encode('{"a":1}\n{"b"')).map(textOf)).toEqual(['{"a":1}']);
  expect(splitter.isInsideLine).toBe(true);
});
