/** What every form of the Clock seam does alike. Run by the tests of the forms. */
import { describe, expect, test, vi } from "vitest";
import { abortable, type Clock, DeadlineError, withDeadline } from "./clock.ts";

/** A clock under test; `drive` lets time go on until the work settles. */
export interface ClockUnderTest {
  readonly clock: Clock;
  drive<T>(work: Promise<T>): Promise<T>;
}

const never = new AbortController().signal;

/** Declares the contract's tests for one form. */
export function clockContract(form: string, make: () => ClockUnderTest): void {
  describe(`clock contract: ${form}`, () => {
    test("a sleep takes its time, by both clocks", async () => {
      const { clock, drive } = make();
      const [wall, monotonic] = [clock.now().getTime(), clock.monotonicMs()];
      await drive(clock.sleep(20, never));
      // Real timers may fire up to a millisecond early by the other clock.
      expect(clock.monotonicMs() - monotonic).toBeGreaterThanOrEqual(19);
      expect(clock.now().getTime() - wall).toBeGreaterThanOrEqual(19);
    });

    test("timers fire in the order of their due time, those of one instant in the order they were set", async () => {
      const { clock, drive } = make();
      const fired: string[] = [];
      clock.timer(20, () => fired.push("late"));
      clock.timer(5, () => fired.push("first"));
      clock.timer(5, () => fired.push("second"));
      clock.timer(-1, () => fired.push("at once"));
      await drive(clock.sleep(40, never));
      expect(fired).toEqual(["at once", "first", "second", "late"]);
    });

    test("a timer never fires before its setter has gone on", async () => {
      const { clock, drive } = make();
      let isSet = false;
      const fired = new Promise<boolean>((resolve) => clock.timer(0, () => resolve(isSet)));
      isSet = true;
      expect(await drive(fired)).toBe(true);
    });

    test("a cancelled timer does not fire; cancelling again is harmless", async () => {
      const { clock, drive } = make();
      const fire = vi.fn();
      const timer = clock.timer(5, fire);
      timer.cancel();
      timer.cancel();
      const fired = vi.fn();
      const done = clock.timer(1, fired);
      await drive(clock.sleep(20, never));
      done.cancel();
      expect(fire).not.toHaveBeenCalled();
      expect(fired).toHaveBeenCalledOnce();
    });

    test("a sleep rejects with the signal's reason, at once when it has aborted before", async () => {
      const { clock } = make();
      const controller = new AbortController();
      const reason = new Error("stop");
      const sleeping = clock.sleep(3_600_000, controller.signal);
      controller.abort(reason);
      await expect(sleeping).rejects.toBe(reason);
      await expect(clock.sleep(0, controller.signal)).rejects.toBe(reason);
    });

    test("a deadline aborts in time, and with its parent's reason if that comes first", async () => {
      const { clock, drive } = make();
      const parent = new AbortController();
      const short = clock.deadline(5, parent.signal);
      const long = clock.deadline(3_600_000, parent.signal);
      await drive(clock.sleep(20, never));
      expect(short.reason).toEqual(new DeadlineError(5));
      expect(long.aborted).toBe(false);
      const reason = new Error("parent");
      parent.abort(reason);
      expect(long.reason).toBe(reason);
      expect(clock.deadline(5, parent.signal).reason).toBe(reason);
    });

    test("withDeadline gives the result, or fails at the deadline", async () => {
      const { clock, drive } = make();
      expect(await withDeadline(clock, 3_600_000, never, async () => "done")).toBe("done");
      const slow = withDeadline(clock, 5, never, (signal) => clock.sleep(3_600_000, signal));
      await expect(drive(slow.catch((error: unknown) => error))).resolves.toEqual(new DeadlineError(5));
    });
  });
}

describe("abortable", () => {
  test("settles like the promise, or rejects with the signal's reason", async () => {
    const controller = new AbortController();
    expect(await abortable(Promise.resolve(1), controller.signal)).toBe(1);
    const failure = new Error("failed");
    await expect(abortable(Promise.reject(failure), controller.signal)).rejects.toBe(failure);
    const pending = abortable(new Promise(() => {}), controller.signal);
    const reason = new Error("stop");
    controller.abort(reason);
    await expect(pending).rejects.toBe(reason);
    await expect(abortable(Promise.reject(failure), controller.signal)).rejects.toBe(reason);
  });
});
