/** A sample of the crash points that the exhaustive test goes through. */
import { expect, test } from "vitest";
import { type CrashStory, crashConversion, isChange } from "./convert-crashes.ts";

test.each<CrashStory>([
  { killed: "convert", next: "convert" },
  { killed: "convert", next: "undo" },
  { killed: "undo", next: "undo" },
])("$killed is killed at some of its calls, and then $next", { timeout: 120_000 }, async (story) => {
  const { played, failures } = await crashConversion(story, (call) => call % 13 === 0);
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(4);
});

test("a conversion of two volumes of one StatefulSet is killed at some of its calls, and goes on", {
  timeout: 120_000,
}, async () => {
  const story: CrashStory = { killed: "convert", next: "convert", replicas: 2 };
  const { played, failures } = await crashConversion(story, (call) => call % 17 === 0);
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(8);
});

test("a conversion of a template and its class is killed at some of its calls, and goes on", {
  timeout: 120_000,
}, async () => {
  const story: CrashStory = { killed: "convert", next: "convert", objects: "beside" };
  const { played, failures } = await crashConversion(story, (call) => call % 19 === 0);
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(3);
});

test("a conversion of two plugins' volumes at the same time is killed after some of its changes, and goes on", {
  timeout: 120_000,
}, async () => {
  const story: CrashStory = {
    killed: "convert",
    next: "convert",
    plugins: ["gce-pd", "rbd"],
    parallel: 2,
  };
  let change = 0;
  const { played, failures } = await crashConversion(
    story,
    (call, what) => isChange(call, what) && ++change % 5 === 0,
  );
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(2);
});
