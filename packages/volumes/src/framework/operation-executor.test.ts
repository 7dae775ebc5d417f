import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { createOperationExecutor, type OperationEnd, type OperationKey } from "./operation-executor.ts";

function executor() {
  const clock = new VirtualClock();
  const ends: OperationEnd[] = [];
  const env = { clock, logger: silentLogger, random: new SeededRandom(1), meter: noMeter };
  return { clock, ends, executor: createOperationExecutor(env, { onEnd: (end) => ends.push(end) }) };
}

const forever = () => new Promise<void>(() => {});
const fails = () => Promise.reject(new Error("no"));

describe("what excludes what", () => {
  const cases: readonly [string, OperationKey, OperationKey, boolean][] = [
    ["the same volume", { volumeName: "v" }, { volumeName: "v" }, true],
    ["another volume", { volumeName: "v" }, { volumeName: "w" }, false],
    [
      "two nodes of a shared volume",
      { volumeName: "v", nodeName: "a" },
      { volumeName: "v", nodeName: "b" },
      false,
    ],
    ["one node and all nodes", { volumeName: "v", nodeName: "a" }, { volumeName: "v" }, true],
    ["two pods", { volumeName: "v", podName: "p" }, { volumeName: "v", podName: "q" }, false],
    ["a pod and the volume", { volumeName: "v", podName: "p" }, { volumeName: "v" }, true],
    ["no volume at all", { volumeName: "" }, { volumeName: "" }, false],
  ];
  it.each(cases)("%s", (_name, running, other, excluded) => {
    const { executor: ops } = executor();
    ops.startOperation(running, "mount", forever);
    expect(ops.isOperationPending(other)).toBe(excluded);
    expect(ops.startOperation(other, "unmount", forever).kind).toBe(excluded ? "pending" : "started");
  });
});

describe("back-off", () => {
  it("doubles from half a second to two minutes and two seconds, and ends with a success", async () => {
    const { clock, executor: ops } = executor();
    const waits: number[] = [];
    for (let i = 0; i < 10; i++) {
      const started = ops.startOperation({ volumeName: "v" }, "attach", fails);
      expect(started.kind).toBe("started");
      await clock.settle();
      const again = ops.startOperation({ volumeName: "v" }, "attach", fails);
      if (again.kind !== "backoff") throw new Error(`expected a back-off, got ${again.kind}`);
      waits.push(again.retryInMs);
      await clock.advance(again.retryInMs);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 122000, 122000]);
    ops.startOperation({ volumeName: "v" }, "attach", async () => {});
    await clock.settle();
    ops.startOperation({ volumeName: "v" }, "attach", fails);
    await clock.settle();
    expect(ops.check({ volumeName: "v" }, "attach")).toEqual({ kind: "backoff", retryInMs: 500 });
  });

  it("does not hold up an operation of another name, which also resets it", async () => {
    const { clock, executor: ops } = executor();
    ops.startOperation({ volumeName: "v" }, "attach", fails);
    await clock.settle();
    expect(ops.startOperation({ volumeName: "v" }, "detach", async () => {}).kind).toBe("started");
    await clock.settle();
    expect(ops.check({ volumeName: "v" }, "attach")).toEqual({ kind: "free" });
  });

  it("reports every end, and none once stopped", async () => {
    const { clock, ends, executor: ops } = executor();
    ops.startOperation({ volumeName: "v" }, "attach", fails);
    ops.startOperation({ volumeName: "w" }, "attach", async () => {});
    await clock.settle();
    expect(ends.map(({ key, retryInMs }) => [key.volumeName, retryInMs])).toEqual([
      ["v", 500],
      ["w", 0],
    ]);
    ops.startOperation({ volumeName: "x" }, "attach", async (signal) => {
      await clock.sleep(1e6, signal);
    });
    await clock.run(ops.stop());
    expect(ends).toHaveLength(2);
    expect(ops.running).toBe(0);
  });
});
