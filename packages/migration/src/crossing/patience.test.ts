/** What a crossing sits out, and what it does not. */
import { KubeApiError, KubeTransportError } from "@longshore/kube";
import { VirtualClock } from "@longshore/runtime";
import { describe, expect, it, test } from "vitest";
import { isTransient, patiently } from "./patience.ts";
import { type Wait, waitWords } from "./wait.ts";

const answer = (code: number, reason = "") =>
  new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code, reason });

test.each([
  ["a broken connection", new KubeTransportError("the connection broke"), true],
  ["a server that is not up yet", answer(503, "ServiceUnavailable"), true],
  ["a server that asks to wait", answer(429, "TooManyRequests"), true],
  ["a store that does not answer", answer(500, "InternalError"), true],
  ["a refusal", answer(403, "Forbidden"), false],
  ["a conflict", answer(409, "Conflict"), false],
  ["anything else", new TypeError("a mistake of ours"), false],
] as const)("%s", (_name, error, transient) => {
  expect(isTransient(error)).toBe(transient);
});

describe("patiently", () => {
  const failing = (times: number, error: Error) => {
    let calls = 0;
    return {
      calls: () => calls,
      work: async () => {
        if (++calls <= times) throw error;
        return "done";
      },
    };
  };
  const broken = new KubeTransportError("connection refused");
  const never = new AbortController().signal;

  it("begins again, with growing pauses, and says what it waits for", async () => {
    const clock = new VirtualClock();
    const { work, calls } = failing(4, broken);
    const reported: string[] = [];
    const onWaiting = (wait: Wait) => void reported.push(waitWords(wait));
    expect(await clock.run(patiently(clock, onWaiting, never, work))).toBe("done");
    expect(calls()).toBe(5);
    expect(clock.monotonicMs()).toBe(100 + 200 + 400 + 800);
    expect(reported).toEqual(Array(4).fill("API server (does not answer: connection refused)"));
  });

  it("does not wait for what waiting cannot fix", async () => {
    const clock = new VirtualClock();
    const { work, calls } = failing(1, answer(403));
    await expect(clock.run(patiently(clock, () => {}, never, work))).rejects.toMatchObject({ code: 403 });
    expect(calls()).toBe(1);
  });

  it("ends at once when it is interrupted", async () => {
    const clock = new VirtualClock();
    const interrupted = new AbortController();
    const { work, calls } = failing(1000, broken);
    const onWaiting = () => interrupted.abort(new Error("Ctrl-C"));
    await expect(clock.run(patiently(clock, onWaiting, interrupted.signal, work))).rejects.toThrow("Ctrl-C");
    expect(calls()).toBe(1);
  });
});
