import { VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { resources } from "../resources.ts";
import { type ApiResource, Discovery } from "./discovery.ts";

test("one caller's end does not fail the others who wait for the same answer", async () => {
  const asked: { end(error: Error): void; answer(found: readonly ApiResource[]): void }[] = [];
  const discovery = new Discovery(new VirtualClock(), (_path, signal) => {
    return new Promise((resolve, reject) => {
      asked.push({ end: reject, answer: resolve });
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  });
  const [first, second] = [new AbortController(), new AbortController()];
  const gone = discovery.servedVersion(resources.pods, first.signal);
  const waits = discovery.servedVersion(resources.pods, second.signal);
  expect(asked).toHaveLength(1);
  first.abort(new Error("the first caller's deadline"));
  await expect(gone).rejects.toThrow("the first caller's deadline");
  await expect.poll(() => asked.length).toBe(2);
  asked[1]?.answer([{ name: "pods" }]);
  expect(await waits).toBe("v1");
});

test("what the server refuses, it refuses to all who wait", async () => {
  let calls = 0;
  const discovery = new Discovery(new VirtualClock(), async () => {
    calls++;
    throw new Error("forbidden");
  });
  const answers = await Promise.allSettled(
    [1, 2].map(() => discovery.servedVersion(resources.pods, new AbortController().signal)),
  );
  expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(calls).toBe(1);
});
