import { describe, expect, test } from "vitest";
import { backoffMs } from "./backoff.ts";
import { systemClock } from "./clock/system-clock.ts";
import { VirtualClock } from "./clock/virtual-clock.ts";
import { type Component, periodically, StoppedError, stopAll, TaskGroup } from "./component.ts";
import { recordingLogger } from "./logger/recording-logger.ts";
import { SeededRandom } from "./random.ts";

function env(clock = new VirtualClock()) {
  return { clock, random: new SeededRandom(1), logger: recordingLogger() };
}

describe("task group", () => {
  test("stop aborts its tasks, waits for all of them, and may be called again", async () => {
    const clock = new VirtualClock();
    const ended: string[] = [];
    const group = new TaskGroup(() => ended.push("an error"));
    group.spawn(async (signal) => {
      await clock.sleep(60_000, signal).catch((reason) => expect(reason).toBeInstanceOf(StoppedError));
      await clock.sleep(1000, new AbortController().signal); // Cleaning up takes its time.
      ended.push("slow");
      // What a task begins while it ends is not begun.
      group.spawn(async () => void ended.push("begun too late"));
    });
    group.spawn((signal) => clock.sleep(60_000, signal));
    const stopping = Promise.all([group.stop(), group.stop()]);
    await clock.run(stopping);
    expect(ended).toEqual(["slow"]);
    expect(clock.monotonicMs()).toBe(1000);
    group.spawn(async () => void ended.push("after the stop"));
    await group.stop();
    expect(ended).toEqual(["slow"]);
  });

  test("a task that fails is reported, also one that throws at once; the others go on", async () => {
    const errors: unknown[] = [];
    const group = new TaskGroup((error) => errors.push(error));
    let isGoingOn = false;
    const failure = new Error("failed");
    group.spawn(() => {
      throw failure;
    });
    group.spawn(() => Promise.reject(failure));
    group.spawn(async () => {
      await Promise.resolve();
      isGoingOn = true;
    });
    await new VirtualClock().settle();
    expect(errors).toEqual([failure, failure]);
    expect(isGoingOn).toBe(true);
    expect(group.signal.aborted).toBe(false);
  });
});

describe("stopAll", () => {
  test("stops in reverse order, all of them, and reports the first failure", async () => {
    const stopped: string[] = [];
    const component = (name: string, error?: Error): Component => ({
      async stop() {
        stopped.push(name);
        if (error !== undefined) throw error;
      },
    });
    const failure = new Error("b");
    const all = [component("a", new Error("a")), component("b", failure), component("c")];
    await expect(stopAll(all)).rejects.toBe(failure);
    expect(stopped).toEqual(["c", "b", "a"]);
  });
});

describe("back-off", () => {
  test.each([
    [1, 500],
    [2, 1000],
    [3, 2000],
    [9, 122_000],
    [10_000, 122_000],
  ])("after %i failures: %i ms", (failures, expected) => {
    expect(backoffMs({ initialMs: 500, maximumMs: 122_000 }, failures)).toBe(expected);
  });

  test("jitter only adds, and no more than its share", () => {
    const random = new SeededRandom(1);
    const policy = { initialMs: 1000, maximumMs: 60_000, jitter: 0.1 };
    const delays = Array.from({ length: 100 }, () => backoffMs(policy, 1, random));
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(1000);
    expect(Math.max(...delays)).toBeLessThan(1100);
    expect(new Set(delays).size).toBeGreaterThan(50);
  });
});

describe("periodic work", () => {
  test("passes follow each other at the period, failures back off, success resets", async () => {
    const seams = env();
    const { clock, logger } = seams;
    const group = new TaskGroup(() => {});
    const startedAt: number[] = [];
    group.spawn((signal) =>
      periodically(seams, { name: "resync", periodMs: 1000 }, signal, async () => {
        startedAt.push(clock.monotonicMs());
        if (startedAt.length >= 2 && startedAt.length <= 4) throw new Error("no");
      }),
    );
    await clock.advance(11_000);
    expect(startedAt).toEqual([0, 1000, 2000, 4000, 8000, 9000, 10_000, 11_000]);
    expect(logger.lines.map((line) => line.message)).toEqual(Array(3).fill("resync failed"));
    await group.stop();
    await clock.advance(10_000);
    expect(startedAt).toHaveLength(8);
  });

  test("the work that the stop interrupts is no failure", async () => {
    const seams = env();
    const group = new TaskGroup(() => {});
    group.spawn((signal) =>
      periodically(seams, { name: "watch", periodMs: 1000 }, signal, (s) => seams.clock.sleep(60_000, s)),
    );
    await seams.clock.advance(500);
    await group.stop();
    expect(seams.logger.lines).toEqual([]);
  });
});

/** A component that connects, and backs off as long as it cannot. */
function startConnector(
  seams: ReturnType<typeof env>,
  connect: (signal: AbortSignal) => Promise<void>,
): Component & { readonly connected: Promise<void> } {
  let resolveStarted: () => void = () => {};
  const connected = new Promise<void>((resolve) => {
    resolveStarted = resolve;
  });
  const group = new TaskGroup((error) => seams.logger.error("connector died", { error }));
  group.spawn(async (signal) => {
    for (let failures = 1; ; failures++) {
      try {
        await connect(signal);
        return resolveStarted();
      } catch (error) {
        seams.logger.info("not connected", { error });
        await seams.clock.sleep(backoffMs({ initialMs: 500, maximumMs: 122_000 }, failures), signal);
      }
    }
  });
  return { connected, stop: () => group.stop() };
}

test("scenario: a component lives through 30 minutes of exponential back-off in under 50 ms", async () => {
  // The fastest of ten: what else runs on the machine is not this test's business.
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 10 && fastestMs >= 50; run++) {
    const startMs = systemClock.monotonicMs();
    await liveThroughBackOff();
    fastestMs = Math.min(fastestMs, systemClock.monotonicMs() - startMs);
  }
  expect(fastestMs).toBeLessThan(50);
});

async function liveThroughBackOff(): Promise<void> {
  const seams = env();
  const { clock, logger } = seams;
  const halfAnHour = 30 * 60_000;
  const connector = startConnector(seams, async () => {
    if (clock.monotonicMs() < halfAnHour) throw new Error("connection refused");
  });
  await clock.run(connector.connected);
  await connector.stop();
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(halfAnHour);
  expect(clock.monotonicMs()).toBeLessThan(halfAnHour + 122_000);
  expect(logger.lines).toHaveLength(22);
}
