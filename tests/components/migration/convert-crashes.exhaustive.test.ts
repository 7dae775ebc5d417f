/** A conversion that is killed at any of its calls, and resumed or undone, here or on another machine, loses and strands nothing. */
import { expect, test } from "vitest";
import { type CrashStory, crashConversion } from "./convert-crashes.ts";

test.each<CrashStory>([
  { killed: "convert", next: "convert" },
  { killed: "convert", next: "undo" },
  { killed: "undo", next: "undo" },
])("$killed is killed at every call, and then $next", { timeout: 1_800_000 }, async (story) => {
  const { points, failures } = await crashConversion(story);
  console.log(`${story.killed}, then ${story.next}: ${points - failures.length}/${points} crash points`);
  expect(failures).toEqual([]);
  expect(points).toBeGreaterThan(100);
});
