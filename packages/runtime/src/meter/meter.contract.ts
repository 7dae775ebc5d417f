/** What every form of the Meter seam does alike. Run by the tests of the forms. */
import { describe, expect, test } from "vitest";
import type { Meter, MetricLabels } from "./meter.ts";

/** A meter under test; `value` reads a counter's sum, a gauge's value or a histogram's count. */
export interface MeterUnderTest {
  readonly meter: Meter;
  value(name: string, labels?: MetricLabels): Promise<number>;
}

/** Declares the contract's tests for one form. */
export function meterContract(form: string, make: () => MeterUnderTest): void {
  describe(`meter contract: ${form}`, () => {
    test("asks for what is only known when values are read, until that is over", async () => {
      const { meter, value } = make();
      const gauge = meter.gauge("age", { help: "Age." });
      let age = 1;
      const end = meter.beforeReading(() => gauge.set(age));
      expect(await value("age")).toBe(1);
      age = 2;
      expect(await value("age")).toBe(2);
      end();
      age = 3;
      expect(await value("age")).toBe(2);
    });

    test("counters add up by label values", async () => {
      const { meter, value } = make();
      const counter = meter.counter("calls_total", { help: "Calls.", labels: ["code", "path"] });
      counter.add(1, { code: "OK", path: "csi" });
      counter.add(2, { path: "csi", code: "OK" });
      counter.add(5, { code: "ABORTED", path: "csi" });
      expect(await value("calls_total", { code: "OK", path: "csi" })).toBe(3);
      expect(await value("calls_total", { code: "ABORTED", path: "csi" })).toBe(5);
      expect(() => counter.add(-1, { code: "OK", path: "csi" })).toThrow();
    });

    test("a gauge has its last value, a histogram counts", async () => {
      const { meter, value } = make();
      const gauge = meter.gauge("depth", { help: "Depth." });
      gauge.set(5);
      gauge.set(3);
      expect(await value("depth")).toBe(3);
      const histogram = meter.histogram("seconds", { help: "Seconds.", labels: ["op"], buckets: [1, 2] });
      histogram.observe(0.5, { op: "a" });
      histogram.observe(1.5, { op: "a" });
      histogram.observe(9, { op: "b" });
      expect(await value("seconds", { op: "a" })).toBe(2);
    });

    test("what is gone has no value any more", async () => {
      const { meter, value } = make();
      const gauge = meter.gauge("used", { help: "Used.", labels: ["claim"] });
      gauge.set(5, { claim: "a" });
      gauge.set(6, { claim: "b" });
      gauge.remove({ claim: "a" });
      gauge.remove({ claim: "c" });
      expect(await value("used", { claim: "a" })).toBe(0);
      expect(await value("used", { claim: "b" })).toBe(6);
    });

    test("the same name is the same metric, and of one kind", async () => {
      const { meter, value } = make();
      meter.counter("same", { help: "Same." }).add(1);
      meter.counter("same", { help: "Same." }).add(1);
      expect(await value("same")).toBe(2);
      expect(() => meter.gauge("same", { help: "Same." })).toThrow("metric same is a counter, not a gauge");
    });

    test("a label that was not declared is refused", () => {
      const { meter } = make();
      const counter = meter.counter("labelled", { help: "Labelled.", labels: ["a"] });
      expect(() => counter.add(1, { b: "x" })).toThrow(/label/i);
    });
  });
}
