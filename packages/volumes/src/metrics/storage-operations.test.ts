/** How operations are measured. Source: docs/behaviour/node-agent.md 10. */
import { recordingMeter, VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { storageOperations } from "./storage-operations.ts";

function measured() {
  const clock = new VirtualClock();
  const meter = recordingMeter();
  const stop = new AbortController();
  const operations = storageOperations({ clock, meter });
  /** Takes two seconds. */
  const run = async (end: () => void) => {
    const volume = { plugin: "example.com/disk", isMigrated: true };
    const running = operations.measure("volume_provision", volume, stop.signal, async () => {
      await clock.sleep(2_000, new AbortController().signal);
      end();
    });
    return clock.run(running);
  };
  const seconds = (status: string) =>
    meter.observations("storage_operation_duration_seconds", {
      volume_plugin: "example.com/disk",
      operation_name: "volume_provision",
      status,
      migrated: "true",
    });
  const labels = { volume_plugin: "example.com/disk", operation_name: "volume_provision" };
  const counts = () => [
    meter.value("storage_operation_status_count", { ...labels, status: "success" }),
    meter.value("storage_operation_status_count", { ...labels, status: "fail-unknown" }),
    meter.value("storage_operation_errors_total", labels),
  ];
  return { run, seconds, counts, stop };
}

const fails = () => {
  throw new Error("no room");
};

it("an operation is measured in seconds, by how it ends", async () => {
  const { run, seconds } = measured();
  await run(() => {});
  await expect(run(fails)).rejects.toThrow("no room");
  expect([seconds("success"), seconds("fail-unknown")]).toEqual([[2], [2]]);
});

it("operations are counted by how they end, and errors by themselves, as in 1.20", async () => {
  const { run, counts } = measured();
  for (let n = 0; n < 2; n++) await run(() => {});
  await expect(run(fails)).rejects.toThrow("no room");
  expect(counts()).toEqual([2, 1, 1]);
});

it("an operation that ends because its controller stops is no failure", async () => {
  const { run, seconds, stop } = measured();
  stop.abort(new Error("stopped"));
  await expect(run(fails)).rejects.toThrow("no room");
  expect(seconds("fail-unknown")).toEqual([]);
});
