/** What a step reports of its waits, and when: on the virtual clock. */
import { VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { type Wait, waitWords } from "./wait.ts";
import { waitFor } from "./waits.ts";
import { StepTimeoutError, watchStep } from "./watch-step.ts";

const never = new AbortController().signal;
const about = (limitMs: number, reported: string[], clock: VirtualClock) => ({
  step: "drain",
  nodeName: "n1",
  limitMs,
  wait: waitFor("Node", "n1", "its pods to end"),
  onWaiting: ({ wait, waitedMs, leftMs }: { wait: Wait; waitedMs: number; leftMs: number }) => {
    reported.push(`${clock.monotonicMs()}: ${waitWords(wait)} waited ${waitedMs} left ${leftMs}`);
  },
});

test("a wait is reported at once and every 30 s, however often the step looks", async () => {
  const clock = new VirtualClock();
  const reported: string[] = [];
  const watched = watchStep(clock, about(100_000, reported, clock), never, async (onWaiting, signal) => {
    for (;;) {
      onWaiting(waitFor("Pod", "w-0", "to end"));
      await clock.sleep(100, signal);
    }
  });
  await expect(clock.run(watched)).rejects.toMatchObject({
    name: "StepTimeoutError",
    message: '"drain" on node n1 still waits after 100 s for Pod w-0 (to end)',
  });
  expect(reported).toEqual([
    "0: Pod w-0 (to end) waited 0 left 100000",
    "30000: Pod w-0 (to end) waited 30000 left 70000",
    "60000: Pod w-0 (to end) waited 60000 left 40000",
    "90000: Pod w-0 (to end) waited 90000 left 10000",
  ]);
});

test("a step inside one long call is reported too, after a second and every 30 s", async () => {
  const clock = new VirtualClock();
  const reported: string[] = [];
  const watched = watchStep(clock, about(65_000, reported, clock), never, (_, signal) =>
    clock.sleep(1e6, signal),
  );
  await expect(clock.run(watched)).rejects.toBeInstanceOf(StepTimeoutError);
  expect(reported.map((line) => line.replace(/ waited.*/, ""))).toEqual([
    "1000: Node n1 (its pods to end)",
    "31000: Node n1 (its pods to end)",
    "61000: Node n1 (its pods to end)",
  ]);
});

test("what changes is reported, at most once a second, and the time starts again for other objects", async () => {
  const clock = new VirtualClock();
  const reported: string[] = [];
  await clock.run(
    watchStep(clock, about(60_000, reported, clock), never, async (onWaiting, signal) => {
      for (let i = 0; i < 25; i++) {
        onWaiting(waitFor("Pod", `w-${Math.floor(i / 10)}`, i < 5 ? "a" : "b"));
        await clock.sleep(100, signal);
      }
    }),
  );
  expect(reported.map((line) => line.replace(/ left.*/, ""))).toEqual([
    "0: Pod w-0 (a) waited 0",
    "1000: Pod w-1 (b) waited 0",
    "2000: Pod w-2 (b) waited 0",
  ]);
});

test("a quick step says nothing, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const reported: string[] = [];
  await clock.run(watchStep(clock, about(60_000, reported, clock), never, (_, s) => clock.sleep(900, s)));
  await clock.advance(120_000);
  expect(reported).toEqual([]);
});

test("Ctrl-C is no timeout", async () => {
  const clock = new VirtualClock();
  const interrupted = new AbortController();
  clock.timer(500, () => interrupted.abort(new Error("Ctrl-C")));
  const watched = watchStep(clock, about(60_000, [], clock), interrupted.signal, (_, s) =>
    clock.sleep(1e6, s),
  );
  await expect(clock.run(watched)).rejects.toThrow("Ctrl-C");
});

test("many objects: the first are named, the others counted", () => {
  const subjects = [1, 2, 3, 4, 5].map((i) => ({ kind: "Pod", namespace: "d", name: `w-${i}`, why: "x" }));
  expect(waitWords({ subjects })).toBe("Pod d/w-1 (x); Pod d/w-2 (x); Pod d/w-3 (x); and 2 more");
});

test("what a driver says steers no terminal, and is bounded", () => {
  const why = `status.detachError: \u001b[2J\nok ${"x".repeat(1000)}`;
  const words = waitWords(waitFor("VolumeAttachment", "csi-1", why));
  expect(words).toContain("status.detachError: \\x1b[2J\\nok xxx");
  expect(words.length).toBeLessThan(600);
});
