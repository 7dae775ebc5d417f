import { recordingMeter } from "@longshore/runtime";
import { expect, test } from "vitest";
import { addProcessMetrics } from "./process-metrics.ts";

test("what the process uses is measured when it is read, and CPU time only grows", () => {
  const meter = recordingMeter();
  addProcessMetrics(meter);
  expect(meter.value("process_resident_memory_bytes")).toBeGreaterThan(1e6);
  const before = meter.value("process_cpu_seconds_total");
  let sum = 0;
  for (let i = 0; i < 3e7; i++) sum += i;
  expect(sum).toBeGreaterThan(0);
  expect(meter.value("process_cpu_seconds_total")).toBeGreaterThan(before);
});

test.skipIf(process.platform !== "linux")("on Linux also files and virtual memory", () => {
  const meter = recordingMeter();
  addProcessMetrics(meter);
  expect(meter.value("process_virtual_memory_bytes")).toBeGreaterThan(
    meter.value("process_resident_memory_bytes"),
  );
  expect(meter.value("process_virtual_memory_max_bytes")).toBeGreaterThan(
    meter.value("process_virtual_memory_bytes"),
  );
  expect(meter.value("process_open_fds")).toBeGreaterThan(2);
  expect(meter.value("process_max_fds")).toBeGreaterThan(meter.value("process_open_fds"));
});
