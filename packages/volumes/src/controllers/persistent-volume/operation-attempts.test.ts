/** The back-off of operations. */
import { expect, test } from "vitest";
import { OperationAttempts } from "./operation-attempts.ts";

test("failures double the delay, success forgets, and what is not tried again is forgotten", () => {
  let nowMs = 0;
  const attempts = new OperationAttempts({ monotonicMs: () => nowMs });
  expect(attempts.waitMs("a")).toBe(0);
  expect([attempts.failed("a"), attempts.failed("a"), attempts.failed("a")]).toEqual([500, 1_000, 2_000]);
  nowMs = 1_500;
  expect([attempts.waitMs("a"), attempts.waitMs("b")]).toEqual([500, 0]);
  nowMs = 2_500;
  expect(attempts.waitMs("a")).toBe(0);
  attempts.forget("a");
  expect(attempts.failed("a")).toBe(500);
  nowMs = 1_000_000;
  attempts.failed("b");
  expect(attempts.failed("a")).toBe(500);
});

test("calls that hang to their deadline are tried ever more seldom, beside others that fail", () => {
  let nowMs = 0;
  const attempts = new OperationAttempts({ monotonicMs: () => nowMs });
  const delays = [];
  for (let i = 0; i < 10; i++) {
    nowMs += 180_000;
    attempts.failed(`other ${i}`);
    const delayMs = attempts.failed("a");
    delays.push(delayMs);
    nowMs += delayMs;
  }
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000]);
});

test("the longest delay", () => {
  const attempts = new OperationAttempts({ monotonicMs: () => 0 });
  let lastMs = 0;
  for (let i = 0; i < 20; i++) lastMs = attempts.failed("a");
  expect(lastMs).toBe(122_000);
});
