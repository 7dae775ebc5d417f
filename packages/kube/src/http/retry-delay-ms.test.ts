import { expect, test } from "vitest";
import { type FailedAttempt, parseRetryAfter, retryDelayMs } from "./retry-delay-ms.ts";

const answered = (code: number, retryAfterMs?: number): FailedAttempt => ({
  kind: "answered",
  code,
  retryAfterMs,
});

const cases: readonly [string, string, FailedAttempt, number | undefined][] = [
  ["too many requests, with a time", "POST", answered(429, 2000), 2000],
  ["the time is bounded", "POST", answered(429, 3_600_000), 10_000],
  ["unavailable, with a time", "PUT", answered(503, 1000), 1000],
  ["unavailable, without a time", "GET", answered(503), undefined],
  ["conflict", "PUT", answered(409, 1000), undefined],
  ["server error", "GET", answered(500, 1000), undefined],
  ["nothing was sent: a read", "GET", { kind: "notSent" }, 100],
  ["nothing was sent: an update", "PUT", { kind: "notSent" }, 100],
  ["nothing was sent: a create", "POST", { kind: "notSent" }, 100],
  ["broken create: it may have been done", "POST", { kind: "broken" }, undefined],
  ["broken read", "GET", { kind: "broken" }, 0],
  ["broken update: it may have been done", "PUT", { kind: "broken" }, undefined],
];

test.each(cases)("%s", (_, method, failed, delay) => {
  expect(retryDelayMs({ method, tooManyRequestsIsFinal: false }, failed, 1)).toBe(delay);
});

test("an eviction that a budget blocks is an answer", () => {
  expect(
    retryDelayMs({ method: "POST", tooManyRequestsIsFinal: true }, answered(429, 10_000), 1),
  ).toBeUndefined();
});

test("it ends", () => {
  expect(retryDelayMs({ method: "GET", tooManyRequestsIsFinal: false }, answered(429, 1), 4)).toBeUndefined();
});

test.each([
  ["5", 5000],
  ["Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
  ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
  ["soon", undefined],
  [undefined, undefined],
])("Retry-After: %s", (header, expected) => {
  expect(parseRetryAfter(header, new Date("2026-01-01T00:00:00Z"))).toBe(expected);
});
