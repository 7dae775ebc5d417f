import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type Collector,
  collectBetweenAnswers,
  exposedCollector,
  youngPartInUse,
} from "./collect-between-answers.ts";

/** The collector of this process, which is not started with `--expose-gc`: contexts that are made while the flag is set have it. */
function collectorOfTests(): Collector {
  setFlagsFromString("--expose-gc");
  const collector = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  return collector;
}

const collect = collectorOfTests();

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
    const answered = collectBetweenAnswers(collect);
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
    const answered = collectBetweenAnswers(collect);
    useYoung(0.65);
    for (let answer = 0; answer < 8; answer++) answered();
    vi.runAllTimers();
    expect(youngPartInUse()).toBeLessThan(0.5);
    for (let answer = 0; answer < 16; answer++) answered();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is collected once for many answers", () => {
    const answered = collectBetweenAnswers(collect);
    useYoung(0.65);
    for (let answer = 0; answer < 80; answer++) answered();
    expect(vi.getTimerCount()).toBe(1);
  });

  it("is left to V8 unless Node exposes its collector", () => {
    expect(exposedCollector()).toBeUndefined();
    vi.stubGlobal("gc", collect);
    expect(exposedCollector()).toBe(collect);
    vi.unstubAllGlobals();
  });
});
