import { describe, expect, test } from "vitest";
import { clockContract } from "./clock.contract.ts";
import { withAnyOf } from "./clock.ts";
import { systemClock } from "./system-clock.ts";
import { VirtualClock, VirtualTimeError } from "./virtual-clock.ts";

const never = new AbortController().signal;

clockContract("real", () => ({ clock: systemClock, drive: (work) => work }));

clockContract("virtual", () => {
  const clock = new VirtualClock();
  return { clock, drive: (work) => clock.run(work) };
});

describe("virtual clock", () => {
  test("time stands still until it is moved", async () => {
    const clock = new VirtualClock(new Date("2026-01-01T00:00:00Z"));
    const log: number[] = [];
    void (async () => {
      for (;;) {
        await clock.sleep(1000, never);
        log.push(clock.monotonicMs());
      }
    })();
    await clock.settle();
    expect(log).toEqual([]);
    await clock.advance(2500);
    expect(log).toEqual([1000, 2000]);
    expect(clock.monotonicMs()).toBe(2500);
    expect(clock.now()).toEqual(new Date("2026-01-01T00:00:02.500Z"));
  });

  test("the wall clock can jump without touching durations", async () => {
    const clock = new VirtualClock(new Date("2026-01-01T00:00:00Z"));
    const sleeping = clock.sleep(1000, never);
    clock.jumpWall(-3_600_000);
    await clock.run(sleeping);
    expect(clock.monotonicMs()).toBe(1000);
    expect(clock.now()).toEqual(new Date("2025-12-31T23:00:01Z"));
  });

  test("work that nothing can wake is reported, and so is work without end", async () => {
    const clock = new VirtualClock();
    await expect(clock.run(new Promise(() => {}))).rejects.toThrow(VirtualTimeError);
    const forever = (async () => {
      for (;;) await clock.sleep(1000, never);
    })();
    await expect(clock.run(forever, { limitMs: 60_000 })).rejects.toThrow("not done at 60000 ms");
  });

  test("work that repeats without a pause is reported", async () => {
    const clock = new VirtualClock();
    const hot = (async () => {
      for (;;) await clock.sleep(0, never);
    })();
    await expect(clock.run(hot)).rejects.toThrow("time stands still at 0 ms");
  });

  test("promise chains run to their end between two timers", async () => {
    const clock = new VirtualClock();
    const log: string[] = [];
    clock.timer(1, () => {
      log.push("first");
      void Promise.resolve()
        .then(() => {})
        .then(() => log.push("its consequence"));
    });
    clock.timer(1, () => log.push("second"));
    await clock.advance(1);
    expect(log).toEqual(["first", "its consequence", "second"]);
  });

  test("ten thousand timers fire in order", async () => {
    const clock = new VirtualClock();
    const due = Array.from({ length: 10_000 }, (_, i) => (i * 7919) % 10_007);
    const fired: number[] = [];
    for (const ms of due) clock.timer(ms, () => fired.push(ms));
    await clock.advance(10_007);
    expect(fired).toEqual([...due].sort((a, b) => a - b));
  });
});

describe("a signal of several", () => {
  test("aborts with the first of them, and is not waited for once the work is done", async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const reason = new Error("other");
    const ended = withAnyOf(
      [one.signal, other.signal],
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    other.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await expect(withAnyOf([one.signal, other.signal], async () => 1)).rejects.toBe(reason);
    const inner = await withAnyOf([one.signal], async (signal) => signal);
    one.abort();
    expect(inner.aborted).toBe(false);
  });
});
