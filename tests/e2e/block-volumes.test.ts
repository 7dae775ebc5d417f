/** Volumes that pods get as devices, on a cluster of processes, in each form that this machine has of them. */
import { afterEach, expect, it } from "vitest";
import { bestForm, TestCluster } from "./support/test-cluster.ts";

let test: TestCluster;
afterEach(() => test.down());

const forms = [...new Set([bestForm(), "unprivileged" as const])];

it.each(forms)(
  "a writer on an in-tree device crosses to CSI and comes back, and loses no record (%s)",
  { timeout: 300_000 },
  async (form) => {
    test = await TestCluster.empty(1, form);
    await test.startDeviceWriter();
    expect(await test.inTreeCallsSince(0)).toContain("attachDisk");
    await test.cross("migrate");
    const migratedAt = await test.lastCloudCall();
    await test.writerRuns();
    expect(await test.inTreeCallsSince(migratedAt)).toEqual([]);
    await test.cross("rollback");
    const cameBackAt = await test.lastCloudCall();
    await test.writerRuns();
    await test.expectNothingLost();
    expect(await test.inTreeCallsSince(cameBackAt)).toContain("detachDisk");
  },
);

it.each(forms)("a writer on a device loses no record when the node's agent is killed (%s)", async (form) => {
  test = await TestCluster.empty(1, form);
  await test.cross("migrate");
  await test.startDeviceWriter();
  expect((await test.mounts()).filter((target) => target.includes("/volumeDevices/"))).toHaveLength(2);
  test.signal("node-agent-node-1", "SIGKILL");
  await test.writerRuns();
  await test.expectNothingLost();
});
