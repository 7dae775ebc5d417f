/** Volumes that pods get as devices, on a cluster of processes: real devices where the machine allows it. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { TestCluster } from "./support/test-cluster.ts";

let test: TestCluster;
beforeEach(async () => {
  test = await TestCluster.empty();
});
afterEach(() => test.down());

it("a writer on a device loses no record when the node's agent is killed", async () => {
  await test.cross("migrate");
  await test.startDeviceWriter();
  expect((await test.mounts()).filter((target) => target.includes("/volumeDevices/"))).toHaveLength(2);
  test.signal("node-agent-node-1", "SIGKILL");
  await test.writerRuns();
  await test.expectNothingLost();
});
