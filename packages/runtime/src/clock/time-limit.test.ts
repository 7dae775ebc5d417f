import { expect, test } from "vitest";
import { DeadlineError, VirtualClock } from "../index.ts";
import { TimeLimit } from "./time-limit.ts";

const unused = new AbortController().signal;

test("what is left of the time goes down to nothing", async () => {
  const clock = new VirtualClock();
  const limit = new TimeLimit(clock, 1000, unused);
  expect(limit.leftMs).toBe(1000);
  await clock.advance(400);
  expect(limit.leftMs).toBe(600);
  expect(() => limit.throwIfEnded()).not.toThrow();
  await clock.advance(4000);
  expect(limit.leftMs).toBe(0);
  expect(() => limit.throwIfEnded()).toThrow(new DeadlineError(1000));
});

test("the end is reported once, with the whole time, unless it was cancelled", async () => {
  const clock = new VirtualClock();
  const limit = new TimeLimit(clock, 1000, unused);
  await clock.advance(400);
  const ended: number[] = [];
  limit.onEnd((error) => ended.push(error.afterMs, clock.monotonicMs()));
  limit.onEnd(() => ended.push(-1)).cancel();
  await clock.advance(5000);
  expect(ended).toEqual([1000, 1000]);
});

test("work ends with the time or with the signal, whichever is first", async () => {
  const clock = new VirtualClock();
  const leaving = new AbortController();
  const limit = new TimeLimit(clock, 1000, leaving.signal);
  const sleep = () => limit.within((signal) => clock.sleep(5000, signal));
  expect(await clock.run(limit.within(async () => "done"))).toBe("done");
  await expect(clock.run(sleep())).rejects.toEqual(new DeadlineError(1000));
  expect(clock.monotonicMs()).toBe(1000);
  leaving.abort(new Error("gone"));
  await expect(sleep()).rejects.toThrow("gone");
});

test("a limit knows its own end from that of others", async () => {
  const clock = new VirtualClock();
  const [limit, other] = [new TimeLimit(clock, 1000, unused), new TimeLimit(clock, 1000, unused)];
  const endOf = (one: TimeLimit) =>
    clock.run(one.within((signal) => clock.sleep(5000, signal)).catch((error: unknown) => error));
  expect(limit.hasEnded(undefined)).toBe(false);
  const end = await endOf(limit);
  expect([limit.hasEnded(end), other.hasEnded(end)]).toEqual([true, false]);
  const late = await endOf(other);
  expect([limit.hasEnded(late), other.hasEnded(late)]).toEqual([false, true]);
  expect([end, late]).toEqual([new DeadlineError(1000), new DeadlineError(1000)]);
});
