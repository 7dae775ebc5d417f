import { SeededRandom } from "@longshore/runtime";
import { expect, it } from "vitest";
import { FaultDraws } from "./fault-draws.ts";

it("draws each kind from a stream of its own, whatever else is drawn", () => {
  const [alone, among] = [new FaultDraws(new SeededRandom(5)), new FaultDraws(new SeededRandom(5))];
  const drawnAlone = Array.from({ length: 20 }, () => alone.next("a").below(1000));
  const drawnAmong = Array.from({ length: 20 }, () => {
    among.next("b").below(1000);
    return among.next("a").below(1000);
  });
  expect(drawnAmong).toEqual(drawnAlone);
  expect(new Set(drawnAlone).size).toBeGreaterThan(10);
});

it("names each fault by its kind and number, and lets only those happen that are named", () => {
  const draws = new FaultDraws(new SeededRandom(5), new Set(["a #2"]));
  expect([draws.next("a"), draws.next("a"), draws.next("b")].map((draw) => draws.happens(draw))).toEqual([
    false,
    true,
    false,
  ]);
  expect(draws.struck).toEqual(["a #2"]);
});
