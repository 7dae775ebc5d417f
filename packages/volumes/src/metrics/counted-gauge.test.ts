/** Counting things by their labels. Source: docs/behaviour/node-agent.md 10. */
import { createMeter } from "@longshore/runtime";
import { expect, it } from "vitest";
import { CountedGauge } from "./counted-gauge.ts";

function counted() {
  const meter = createMeter();
  const gauge = new CountedGauge(meter, "things", { help: "Things.", labels: ["kind"] });
  const lines = async () =>
    (await meter.exposition()).split("\n").filter((line) => line.startsWith("things"));
  return { gauge, lines };
}

it("counts each key once, under its last labels", async () => {
  const { gauge, lines } = counted();
  gauge.put("1", { kind: "a" });
  gauge.put("1", { kind: "a" });
  gauge.put("2", { kind: "a" });
  expect(await lines()).toEqual(['things{kind="a"} 2']);
  gauge.put("2", { kind: "b" });
  expect(await lines()).toEqual(['things{kind="a"} 1', 'things{kind="b"} 1']);
});

it("leaves no value of what is gone", async () => {
  const { gauge, lines } = counted();
  gauge.put("1", { kind: "a" });
  gauge.put("2", { kind: "b" });
  gauge.drop("1");
  gauge.drop("1");
  expect(await lines()).toEqual(['things{kind="b"} 1']);
  gauge.clear();
  expect(await lines()).toEqual([]);
  gauge.put("2", { kind: "b" });
  expect(await lines()).toEqual(['things{kind="b"} 1']);
});
