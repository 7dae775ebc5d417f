/** A request ends when its time is over, and only then, and never behind its commit. */
import { describe, expect, it } from "vitest";
import { SlowClock } from "../testing/slow-clock.ts";
import { betweenCommits, commitWork, spendTime, uninterrupted, withinWorkTime } from "./work-time.ts";

const timeout = expect.objectContaining({ code: 504, reason: "Timeout" });

/** A clock that jumps at the first check. */
function late(): SlowClock {
  const clock = new SlowClock();
  clock.jumpAfter(1);
  return clock;
}

function thrown(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe("the time of a request", () => {
  it("ends it with the answer of the reference", () => {
    const error = thrown(() => withinWorkTime(late(), 10, () => spendTime(5000)));
    expect(error).toMatchObject({
      status: {
        kind: "Status",
        status: "Failure",
        code: 504,
        reason: "Timeout",
        message: "Timeout: request did not complete within the allotted timeout",
      },
    });
  });

  it("lets work go on that is in time, and reads the clock once in a thousand steps", () => {
    const clock = new SlowClock();
    const steps = 100_000;
    const done = withinWorkTime(clock, 10, () => {
      for (let i = 0; i < steps; i++) spendTime();
      return "done";
    });
    expect(done).toBe("done");
    expect(clock.readings).toBeGreaterThan(steps / 2000);
    expect(clock.readings).toBeLessThan(steps / 500);
  });

  it("does nothing outside of a request", () => {
    expect(thrown(() => spendTime(1_000_000))).toBeUndefined();
    expect(thrown(betweenCommits)).toBeUndefined();
    expect(thrown(commitWork)).toBeUndefined();
  });

  it("begins with each request, and the steps of one are not those of the next", () => {
    const clock = new SlowClock();
    withinWorkTime(clock, 10, () => spendTime(1000));
    clock.jumpAfter(1);
    // A check would be due here, were the steps counted on.
    expect(thrown(() => withinWorkTime(clock, 10, () => spendTime(1000)))).toBeUndefined();
    clock.jumpAfter(1);
    expect(thrown(() => withinWorkTime(clock, 10, () => spendTime(1024)))).toEqual(timeout);
    expect(thrown(() => withinWorkTime(clock, 10, () => spendTime(1024)))).toBeUndefined();
  });

  it("is shared by work within work", () => {
    const clock = new SlowClock();
    clock.jumpAfter(1);
    const error = thrown(() =>
      withinWorkTime(clock, 10, () => {
        thrown(() => withinWorkTime(clock, 10, () => thrown(() => spendTime(5000))));
        return withinWorkTime(clock, 10, () => spendTime(5000));
      }),
    );
    expect(error).toEqual(timeout);
  });

  it("is over with the request, however that ends", () => {
    const clock = new SlowClock();
    const inner = thrown(() =>
      withinWorkTime(clock, 10, () => {
        throw new Error("refused");
      }),
    );
    expect(inner).toEqual(new Error("refused"));
    clock.jumpAfter(0);
    expect(thrown(() => spendTime(1_000_000))).toBeUndefined();
  });
});

describe("the commit of a request", () => {
  it("is the end of all checks", () => {
    const clock = late();
    const answer = withinWorkTime(clock, 10, () => {
      commitWork();
      spendTime(1_000_000);
      return withinWorkTime(new SlowClock(), 10, () => "answer");
    });
    expect(answer).toBe("answer");
    // Not even the clock is read.
    expect(clock.readings).toBe(1);
  });

  it("starts work with a separate time limit, and leaves the request as it was", () => {
    const answer = withinWorkTime(new SlowClock(), 10, () => {
      commitWork();
      expect(thrown(() => withinWorkTime(late(), 10, () => spendTime(5000)))).toEqual(timeout);
      spendTime(1_000_000);
      return "answer";
    });
    expect(answer).toBe("answer");
  });

  it("is refused when time was over before, even if the error was caught", () => {
    const error = thrown(() =>
      withinWorkTime(late(), 10, () => {
        expect(thrown(() => spendTime(5000))).toEqual(timeout);
        commitWork();
      }),
    );
    expect(error).toEqual(timeout);
  });

  it("may be followed by another one, or by the end between the two", () => {
    const clock = new SlowClock();
    clock.jumpAfter(3);
    const done: number[] = [];
    const error = thrown(() =>
      withinWorkTime(clock, 10, () => {
        for (let i = 0; i < 10; i++) {
          betweenCommits();
          commitWork();
          spendTime(5000);
          done.push(i);
        }
      }),
    );
    expect(error).toEqual(timeout);
    expect(done).toEqual([0, 1]);
  });
});

it("what keeps something for all requests is not ended halfway", () => {
  const clock = late();
  const error = thrown(() =>
    withinWorkTime(clock, 10, () => {
      expect(thrown(() => uninterrupted(() => spendTime(1_000_000)))).toBeUndefined();
      spendTime(5000);
    }),
  );
  expect(error).toEqual(timeout);
});
