import { afterEach, expect, test, vi } from "vitest";
import { InterruptedError, interruptible, reportFailure, UsageError, untilAborted } from "./exit.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test.each([
  ["a failure", new Error("the cluster does not answer", { cause: new Error("refused") }), 1],
  ["wrong usage", new UsageError("--nodes: no number"), 2],
  ["a step that took too long", Object.assign(new Error("still waits"), { name: "StepTimeoutError" }), 3],
] as const)("%s is one line with its causes", (_name, error, code) => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  expect(reportFailure(error)).toBe(code);
  expect(write.mock.calls).toHaveLength(1);
  expect(String(write.mock.calls[0]?.[0])).toMatch(/^longshore: [^\n]*\n$/);
});

test("the text of a failure sends no control characters to the terminal", () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  reportFailure(new Error("first\nsecond", { cause: new Error("driver\x1b]0;title\x07 says \u202eno") }));
  expect(write.mock.calls[0]?.[0]).toBe(
    "longshore: first\nsecond: driver\\x1b]0;title\\x07 says \\u202eno\n",
  );
});

test("an interrupted command says nothing more", () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  expect(reportFailure(new InterruptedError())).toBe(130);
  expect(write).not.toHaveBeenCalled();
});

test("Ctrl-C lets the work clean up; the same signal passed on twice changes nothing", async () => {
  const exit = vi.spyOn(process, "exit").mockImplementation((() => {}) as never);
  let cleaned = false;
  const work = interruptible(async (signal) => {
    await untilAborted(signal);
    await Promise.resolve();
    cleaned = true;
    throw new Error("ended early");
  });
  process.emit("SIGINT");
  process.emit("SIGINT");
  await expect(work).rejects.toBeInstanceOf(InterruptedError);
  expect(cleaned).toBe(true);
  expect(exit).not.toHaveBeenCalled();
});

test("a second Ctrl-C, later, ends the process", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const exit = vi.spyOn(process, "exit").mockImplementation((() => {}) as never);
  let release = () => {};
  const work = interruptible(
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  process.emit("SIGINT");
  vi.advanceTimersByTime(1500);
  process.emit("SIGINT");
  expect(exit).toHaveBeenCalledWith(130);
  release();
  await work;
});
