import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type ClusterLayout, clusterLayout } from "../layout/cluster-layout.ts";
import { CrossingInProgressError, lockCrossing } from "./lock-crossing.ts";

let layout: ClusterLayout;
beforeEach(() => {
  layout = clusterLayout(mkdtempSync(join(tmpdir(), "longshore-lock-")));
});
afterEach(() => rmSync(layout.dir, { recursive: true, force: true }));

it("refuses a second crossing beside the first, and lets go without a trace", () => {
  const release = lockCrossing(layout);
  expect(() => lockCrossing(layout)).toThrow(CrossingInProgressError);
  expect(readdirSync(layout.dir)).toEqual(["crossing.lock"]);
  release();
  expect(readdirSync(layout.dir)).toEqual([]);
});

it.each([
  ["a process that is gone", JSON.stringify({ pid: 1, host: "h", pidNamespace: "pid:[1]" })],
  ["a damaged file", "{"],
])("takes over what is left of %s", (_what, text) => {
  writeFileSync(`${layout.dir}/crossing.lock`, text);
  const release = lockCrossing(layout);
  expect(() => lockCrossing(layout)).toThrow(CrossingInProgressError);
  release();
  expect(readdirSync(layout.dir)).toEqual([]);
});
