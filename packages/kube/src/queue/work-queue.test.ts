import { recordingMeter } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test, vi } from "vitest";
import {
  type ReconcileResult,
  settled,
  startWorkQueue,
  TerminalError,
  type WorkQueueOptions,
} from "./work-queue.ts";

/** A queue whose passes take a second and are written down as `time key`. */
function observed(
  options: Partial<WorkQueueOptions> = {},
  answer: (key: string) => ReconcileResult = () => settled,
) {
  const env = virtualEnv();
  const passes: string[] = [];
  let running = 0;
  let runningMax = 0;
  const queue = startWorkQueue(env, {
    name: "test",
    async reconcile({ key, signal }) {
      passes.push(`${env.clock.monotonicMs() / 1000} ${key}`);
      runningMax = Math.max(runningMax, ++running);
      try {
        await env.clock.sleep(1000, signal);
        return answer(key);
      } finally {
        running--;
      }
    },
    ...options,
  });
  return { env, queue, passes, runningMax: () => runningMax };
}

test("a key waits at most once, and one added while it runs runs again after that", async () => {
  const { env, queue, passes } = observed({ workers: 3 });
  queue.add("a");
  queue.add("a");
  queue.add("b");
  await env.clock.advance(500);
  queue.add("a");
  queue.add("a");
  await env.clock.advance(10_000);
  expect(passes).toEqual(["0 a", "0 b", "1 a"]);
  await queue.stop();
});

test("no more keys run at once than there are workers", async () => {
  const { env, queue, passes, runningMax } = observed({ workers: 2 });
  for (const key of ["a", "b", "c", "d", "e"]) queue.add(key);
  expect(queue.length).toBe(3);
  await env.clock.advance(10_000);
  expect(runningMax()).toBe(2);
  expect(passes).toEqual(["0 a", "0 b", "1 c", "1 d", "2 e"]);
  await queue.stop();
});

test("a change does not wait behind a first list, nor the list behind changes for ever", async () => {
  const { env, queue, passes } = observed();
  for (let i = 0; i < 100; i++) queue.add(`listed-${i}`, "background");
  for (let i = 0; i < 6; i++) queue.add(`changed-${i}`);
  queue.add("listed-99");
  queue.add("changed-0", "background");
  await env.clock.advance(9_500);
  expect(passes.map((pass) => pass.split(" ")[1])).toEqual([
    "listed-0",
    "changed-0",
    "changed-1",
    "changed-2",
    "listed-1",
    "changed-3",
    "changed-4",
    "changed-5",
    "listed-2",
    "listed-99",
  ]);
  await env.clock.advance(200_000);
  expect(passes).toHaveLength(106);
  await queue.stop();
});

test("a lane that was emptied serves what comes later, and a key that moved, in the order of arrival", async () => {
  const { env, queue, passes } = observed();
  for (const key of ["a", "b"]) queue.add(key, "background");
  await env.clock.advance(2_500);
  for (const key of ["c", "d", "e"]) queue.add(key, "background");
  queue.add("d");
  await env.clock.advance(1_000);
  queue.add("b", "background");
  await env.clock.advance(10_000);
  expect(passes.map((pass) => pass.split(" ")[1])).toEqual(["a", "b", "c", "d", "e", "b"]);
  await queue.stop();
});

test("many failing keys together come back at a bounded rate", async () => {
  const env = virtualEnv();
  let passes = 0;
  const queue = startWorkQueue(env, {
    name: "test",
    workers: 50,
    backoff: { initialMs: 10, maximumMs: 10 },
    retryRate: { qps: 5, burst: 20 },
    reconcile: async () => {
      passes++;
      throw new Error("no");
    },
  });
  for (let i = 0; i < 10; i++) queue.add(`key-${i}`);
  await env.clock.advance(60_000);
  // Ten first passes, the burst, and five a second; without the rate it were a thousand a second.
  expect(passes).toBeGreaterThan(300);
  expect(passes).toBeLessThanOrEqual(10 + 20 + 60 * 5 + 1);
  await queue.stop();
});

test("of several delays the earliest counts", async () => {
  const { env, queue, passes } = observed();
  queue.addAfter("a", 9000);
  queue.addAfter("a", 3000);
  queue.addAfter("a", 6000);
  await env.clock.advance(60_000);
  expect(passes).toEqual(["3 a"]);
  await queue.stop();
});

test("a requested pass comes when it is due, and is void when the key runs before", async () => {
  let requests = 0;
  const { env, queue, passes } = observed({}, () =>
    ++requests === 1 ? { requeueAfterMs: 10_000 } : settled,
  );
  queue.add("a");
  await env.clock.advance(5000);
  queue.add("a");
  await env.clock.advance(60_000);
  expect(passes).toEqual(["0 a", "5 a"]);
  await queue.stop();
});

test("failures back off exponentially, and success or forget resets the delays", async () => {
  let failing = true;
  const { env, queue, passes } = observed({ backoff: { initialMs: 1000, maximumMs: 4000 } }, () => {
    if (failing) throw new Error("not yet");
    return settled;
  });
  queue.add("a");
  // Passes of one second, then pauses of 1, 2, 4, 4 seconds.
  await env.clock.advance(16_500);
  expect(passes).toEqual(["0 a", "2 a", "5 a", "10 a", "15 a"]);
  failing = false;
  await env.clock.advance(60_000);
  expect(passes).toHaveLength(6);
  failing = true;
  passes.length = 0;
  queue.add("a");
  await env.clock.advance(1500);
  queue.forget("a");
  await env.clock.advance(60_000);
  expect(passes).toHaveLength(1);
  await queue.stop();
});

test("a terminal error is not retried", async () => {
  const { env, queue, passes } = observed({}, () => {
    throw new TerminalError("never");
  });
  queue.add("a");
  await env.clock.advance(3_600_000);
  expect(passes).toEqual(["0 a"]);
  queue.add("a");
  await env.clock.advance(2000);
  expect(passes).toHaveLength(2);
  await queue.stop();
});

test("thirty minutes of back-off take a moment", async () => {
  const { env, queue, passes } = observed({}, () => {
    throw new Error("down");
  });
  queue.add("a");
  await env.clock.advance(30 * 60_000);
  expect(passes.length).toBeGreaterThan(10);
  await queue.stop();
});

test("stop aborts what runs, starts nothing more, and waits for the end", async () => {
  const { env, queue, passes } = observed();
  queue.add("a");
  queue.add("b");
  queue.addAfter("c", 100);
  await env.clock.settle();
  await queue.stop();
  queue.add("d");
  await env.clock.advance(60_000);
  expect(passes).toEqual(["0 a"]);
});

test("with a time to drain, what runs may end by itself", async () => {
  let ended = false;
  const { env, queue } = observed({ drainMs: 5000 }, () => {
    ended = true;
    return settled;
  });
  queue.add("a");
  await env.clock.settle();
  await env.clock.run(queue.stop());
  expect(ended).toBe(true);
  expect(env.clock.monotonicMs()).toBe(1000);
});

test("a pass that exceeds its time is aborted and retried", async () => {
  const { env, queue, passes } = observed({
    reconcileTimeoutMs: 500,
    backoff: { initialMs: 1000, maximumMs: 1000 },
  });
  queue.add("a");
  await env.clock.advance(2000);
  expect(passes).toEqual(["0 a", "1.5 a"]);
  await queue.stop();
});

test("add never runs the reconcile before it returns", () => {
  const reconcile = vi.fn(async () => settled);
  const queue = startWorkQueue(virtualEnv(), { name: "test", reconcile });
  queue.add("a");
  expect(reconcile).not.toHaveBeenCalled();
  void queue.stop();
});

test("the metrics say how long the passes that run now have run, until the queue is stopped", async () => {
  const base = virtualEnv();
  const meter = recordingMeter();
  const env = { ...base, meter };
  const queue = startWorkQueue(env, {
    name: "test",
    workers: 2,
    async reconcile({ signal }) {
      await env.clock.sleep(60_000, signal);
      return settled;
    },
  });
  const label = { name: "test" };
  const read = () => [
    meter.value("workqueue_unfinished_work_seconds", label),
    meter.value("workqueue_longest_running_processor_seconds", label),
  ];
  expect(read()).toEqual([0, 0]);
  queue.add("a");
  await base.clock.advance(10_000);
  queue.add("b");
  await base.clock.advance(5_000);
  expect(read()).toEqual([20, 15]);
  await base.clock.advance(46_000);
  expect(read()).toEqual([51, 51]);
  await queue.stop();
});
