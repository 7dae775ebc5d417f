import { expect, test } from "vitest";
import { parseClass, parsePairs, parseTolerations } from "./driver-deploy-texts.ts";

test("pairs", () => {
  expect(parsePairs("--x", ["a=b, c=d=e", "f="])).toEqual({ a: "b", c: "d=e", f: "" });
  expect(() => parsePairs("--x", ["a"])).toThrow(/^--x: "a" is not a pair/);
  expect(() => parsePairs("--x", ["=b"])).toThrow(/is not a pair/);
  expect(() => parsePairs("--x", ["a=1,a=2"])).toThrow(/twice/);
});

test("tolerations, as taints are written", () => {
  expect(parseTolerations("--t", ["a=b:NoSchedule,c:NoExecute", "d", ":Exists"])).toEqual([
    { key: "a", operator: "Equal", value: "b", effect: "NoSchedule" },
    { key: "c", operator: "Exists", effect: "NoExecute" },
    { key: "d", operator: "Exists" },
    { operator: "Exists" },
  ]);
  for (const text of ["", "=b", ":NoSchedule", "a:b:c"]) {
    expect(() => parseTolerations("--t", [text])).toThrow(/^--t: .*write key=value:NoSchedule/);
  }
});

test("classes with their parameters", () => {
  expect(parseClass("--c", "fast")).toEqual({ name: "fast", parameters: {} });
  expect(parseClass("--c", "fast:type=ssd,iops=3")).toEqual({
    name: "fast",
    parameters: { type: "ssd", iops: "3" },
  });
  expect(() => parseClass("--c", "fast:ssd")).toThrow(/^--c: "ssd" is not a pair/);
});
