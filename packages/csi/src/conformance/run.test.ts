import { expect, test } from "vitest";
import { conformanceChecks, runConformance } from "./index.ts";
import { fakeWorld } from "./testing/fake-world.ts";

const never = new AbortController().signal;

test("a driver that keeps the contract passes, and only what is for lesser drivers is skipped", async () => {
  const world = await fakeWorld({ maxVolumes: 8n });
  const report = await world.clock.run(runConformance(world.env, world.options, never));
  const failed = report.results.filter(({ outcome }) => outcome === "failed");
  expect(failed.map(({ id, message }) => `${id}: ${message}`)).toEqual([]);
  expect(report.leftovers).toEqual([]);
  const skipped = report.results.filter(({ outcome }) => outcome === "skipped");
  expect(skipped.map(({ id, message }) => `${id}: ${message}`)).toEqual([]);
  expect(report.results).toHaveLength(conformanceChecks.length);
});
