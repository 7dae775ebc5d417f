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
  return { run, seconds, stop };
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

it("an operation that ends because its controller stops is no failure", async () => {
  const { run, seconds, stop } = measured();
  stop.abort(new Error("stopped"));
  await expect(run(fails)).rejects.toThrow("no room");
  expect(seconds("fail-unknown")).toEqual([]);
});
