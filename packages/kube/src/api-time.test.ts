import { expect, test } from "vitest";
import { apiTime, microTime } from "./api-time.ts";

test("a time has whole seconds, rounded down, before 1970 too", () => {
  expect(apiTime(new Date("2021-01-13T10:00:00.999Z"))).toBe("2021-01-13T10:00:00Z");
  expect(apiTime(new Date("2021-01-13T10:00:00.001Z"))).toBe("2021-01-13T10:00:00Z");
  expect(apiTime(new Date("2021-01-13T10:00:01.000Z"))).toBe("2021-01-13T10:00:01Z");
  expect(apiTime(new Date("1969-12-31T23:59:59.500Z"))).toBe("1969-12-31T23:59:59Z");
});

test("a time of a lease has microseconds", () => {
  expect(microTime(new Date("2021-01-13T10:00:00.123Z"))).toBe("2021-01-13T10:00:00.123000Z");
});
