/** A whole cluster of processes, real volumes where the machine allows it, and the crossing there and back. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { TestCluster } from "./support/test-cluster.ts";

let test: TestCluster;
beforeEach(async () => {
  test = await TestCluster.up();
});
afterEach(() => test.down());

it("a cluster crosses and comes back, and no acknowledged write is lost", async () => {
  await test.writerRuns();
  await test.cross("migrate", () => {});
  const migratedAt = await test.lastCloudCall();
  await test.writerRuns();
  expect(await test.inTreeCallsSince(migratedAt)).toEqual([]);
  await test.cross("rollback", () => {});
  await test.writerRuns();
  await test.expectNothingLost();
});
