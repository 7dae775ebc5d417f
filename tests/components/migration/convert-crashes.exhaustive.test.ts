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

test.each<CrashStory>([
  { killed: "convert", next: "convert", replicas: 2 },
  { killed: "convert", next: "undo", replicas: 2 },
])(
  "$killed of two volumes of one StatefulSet is killed at every third call, and then $next",
  {
    timeout: 1_800_000,
  },
  async (story) => {
    const { points, failures } = await crashConversion(story, (call) => call % 3 === 0);
    console.log(
      `${story.killed} of two volumes, then ${story.next}: ${points - failures.length}/${points} crash points`,
    );
    expect(failures).toEqual([]);
    expect(points).toBeGreaterThan(60);
  },
);

test.each<CrashStory>([
  { killed: "convert", next: "convert", objects: "beside" },
  { killed: "convert", next: "undo", objects: "beside" },
  { killed: "undo", next: "undo", objects: "beside" },
  { killed: "convert", next: "convert", objects: "in place" },
  { killed: "convert", next: "undo", objects: "in place" },
])(
  "$killed of a StatefulSet's template and its class, $objects, is killed at its calls, and then $next",
  {
    timeout: 1_800_000,
  },
  async (story) => {
    // In place, the class alone changes.
    const every = story.objects === "beside" ? 1 : 2;
    const { points, failures } = await crashConversion(story, (call) => call % every === 0);
    console.log(
      `${story.killed} ${story.objects}, then ${story.next}: ${points - failures.length}/${points} crash points`,
    );
    expect(failures).toEqual([]);
    expect(points).toBeGreaterThan(20);
  },
);

test.each<CrashStory>([
  { killed: "convert", next: "convert", objects: "beside", volumes: true },
  { killed: "convert", next: "undo", objects: "beside", volumes: true },
])(
  "$killed of a volume, its StatefulSet's template and its class is killed at every ninth call, and then $next",
  {
    timeout: 1_800_000,
  },
  async (story) => {
    const { points, failures } = await crashConversion(story, (call) => call % 9 === 0);
    console.log(
      `${story.killed} of all, then ${story.next}: ${points - failures.length}/${points} crash points`,
    );
    expect(failures).toEqual([]);
    expect(points).toBeGreaterThan(15);
  },
);

test.each<CrashStory>([
  { killed: "convert", next: "convert", inline: true },
  { killed: "convert", next: "undo", inline: true },
  { killed: "undo", next: "undo", inline: true },
])(
  "$killed of the inline volume of a template is killed at every call, and then $next",
  {
    timeout: 1_800_000,
  },
  async (story) => {
    const { points, failures } = await crashConversion(story);
    console.log(
      `${story.killed} of an inline volume, then ${story.next}: ${points - failures.length}/${points} crash points`,
    );
    expect(failures).toEqual([]);
    expect(points).toBeGreaterThan(60);
  },
);
