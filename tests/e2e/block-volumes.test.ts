/** Volumes that pods get as devices, on a cluster of processes, in each form that this machine has of them. */
import { afterEach, expect, it } from "vitest";
import { bestForm, TestCluster } from "./support/test-cluster.ts";

let test: TestCluster;
afterEach(() => test.down());

it.each([...new Set([bestForm(), "unprivileged" as const])])(
  "a writer on a device loses no record when the node's agent is killed (%s)",
  async (form) => {
    test = await TestCluster.empty(1, form);
    await test.cross("migrate");
    await test.startDeviceWriter();
    expect((await test.mounts()).filter((target) => target.includes("/volumeDevices/"))).toHaveLength(2);
    test.signal("node-agent-node-1", "SIGKILL");
    await test.writerRuns();
    await test.expectNothingLost();
  },
);
