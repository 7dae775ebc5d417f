import { expect, test } from "vitest";
import { meterContract } from "./meter.contract.ts";
import { type MetricLabels, noMeter } from "./meter.ts";
import { createMeter } from "./prometheus-meter.ts";
import { recordingMeter } from "./recording-meter.ts";

meterContract("real", () => {
  const meter = createMeter();
  const value = async (name: string, labels: MetricLabels = {}) => {
    for (const line of (await meter.exposition()).split("\n")) {
      const [, metric, text = "", number] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const seen = Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map((m) => [m[1], m[2]]));
      const isMeant = metric === name || metric === `${name}_count`;
      if (isMeant && JSON.stringify(sorted(seen)) === JSON.stringify(sorted(labels))) return Number(number);
    }
    return 0;
  };
  return { meter, value };
});

meterContract("virtual", () => {
  const meter = recordingMeter();
  return { meter, value: async (name, labels) => meter.value(name, labels) };
});

function sorted(labels: Readonly<Record<string, unknown>>) {
  return Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
}

test("the exposition is Prometheus text, and two meters share nothing", async () => {
  const meter = createMeter();
  meter.counter("longshore_calls_total", { help: "Calls.", labels: ["code"] }).add(2, { code: "OK" });
  expect(await meter.exposition()).toBe(
    '# HELP longshore_calls_total Calls.\n# TYPE longshore_calls_total counter\nlongshore_calls_total{code="OK"} 2\n',
  );
  expect(meter.contentType).toContain("text/plain");
  expect((await createMeter().exposition()).trim()).toBe("");
});

test("a recording meter keeps observations in order", () => {
  const meter = recordingMeter();
  const histogram = meter.histogram("seconds", { help: "Seconds." });
  for (const value of [3, 1, 2]) histogram.observe(value);
  expect(meter.observations("seconds")).toEqual([3, 1, 2]);
  expect(meter.observations("other")).toEqual([]);
});

test("measuring nothing takes anything", () => {
  noMeter.counter("a", { help: "" }).add(1);
  noMeter.gauge("a", { help: "" }).set(1, { x: "y" });
  expect(noMeter.histogram("a", { help: "" }).observe(1)).toBeUndefined();
});
