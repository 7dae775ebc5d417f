import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { collectBetweenAnswers, youngPartInUse } from "./between-answers.ts";

/** Makes garbage until the young generation is used so far. */
function useYoung(part: number): void {
  const garbage = { last: [] as unknown[] };
  while (youngPartInUse() < part) garbage.last = new Array(500).fill(0);
}

describe("the garbage of a server", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is collected a moment after an answer once there is much of it", () => {
    const answered = collectBetweenAnswers();
    for (let round = 0; round < 3; round++) {
      useYoung(0.65);
      const before = youngPartInUse();
      for (let answer = 0; answer < 8; answer++) answered();
      expect(vi.getTimerCount()).toBe(1);
      vi.runAllTimers();
      expect(youngPartInUse()).toBeLessThan(before - 0.1);
    }
  });

  it("is left alone while there is little", () => {
    const answered = collectBetweenAnswers();
    useYoung(0.65);
    for (let answer = 0; answer < 8; answer++) answered();
    vi.runAllTimers();
    expect(youngPartInUse()).toBeLessThan(0.5);
    for (let answer = 0; answer < 16; answer++) answered();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is collected once for many answers", () => {
    const answered = collectBetweenAnswers();
    useYoung(0.65);
    for (let answer = 0; answer < 80; answer++) answered();
    expect(vi.getTimerCount()).toBe(1);
  });

  it("can be collected by nobody else", () => {
    expect("gc" in globalThis).toBe(false);
  });
});
