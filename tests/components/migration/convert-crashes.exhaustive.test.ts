/** A conversion that is killed at any of its calls, and resumed or undone, here or on another machine, loses and strands nothing. */
import { cloudProviders } from "@longshore/volumes";
import { expect, test } from "vitest";
import { type CrashStory, crashConversion, crashConversionTwice, isChange } from "./convert-crashes.ts";

test.each<CrashStory>([
  { killed: "convert", next: "convert" },
  { killed: "convert", next: "undo" },
  { killed: "undo", next: "undo" },
])("$killed is killed at every call, and then $next", async (story) => {
  const { played, failures, summary } = await crashConversion(story);
  console.log(summary);
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(100);
});

test.each<CrashStory>([
  { killed: "convert", next: "convert", replicas: 2 },
  { killed: "convert", next: "undo", replicas: 2 },
])(
  "$killed of two volumes of one StatefulSet is killed at every third call, and then $next",
  async (story) => {
    const { played, failures, summary } = await crashConversion(story, (call) => call % 3 === 0);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(50);
  },
);

test.each<CrashStory>([
  { killed: "convert", next: "convert", plugins: ["gce-pd", "vsphere-volume", "rbd"], parallel: 3 },
  { killed: "convert", next: "undo", plugins: ["cinder", "portworx-volume", "azure-file"], parallel: 3 },
  { killed: "undo", next: "undo", plugins: ["aws-ebs", "azure-disk", "rbd"], parallel: 3 },
])(
  "$killed of $plugins at the same time is killed after some of its changes, and then $next",
  async (story) => {
    let change = 0;
    const every = 3;
    const { played, failures, summary } = await crashConversion(
      story,
      (call, what) => isChange(call, what) && ++change % every === 0,
    );
    console.log(summary);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(5);
  },
);

test.each<CrashStory>(
  cloudProviders
    .filter((plugin) => plugin !== "aws-ebs")
    .map((plugin) => ({ killed: "convert", next: "convert", plugins: [plugin] })),
)("a conversion of $plugins is killed after each of its changes, and goes on", async (story) => {
  const { played, failures, summary } = await crashConversion(story, isChange);
  console.log(summary);
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(7);
});

test.each<CrashStory>([
  { killed: "convert", next: "convert", objects: "beside" },
  { killed: "convert", next: "undo", objects: "beside" },
  { killed: "undo", next: "undo", objects: "beside" },
  { killed: "convert", next: "convert", objects: "in place" },
  { killed: "convert", next: "undo", objects: "in place" },
])(
  "$killed of a StatefulSet's template and its class, $objects, is killed at its calls, and then $next",
  async (story) => {
    // In place, the class alone changes.
    const every = story.objects === "beside" ? 1 : 2;
    const { played, failures, summary } = await crashConversion(story, (call) => call % every === 0);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(20);
  },
);

test.each<CrashStory>([
  { killed: "convert", next: "convert", objects: "beside", volumes: true },
  { killed: "convert", next: "undo", objects: "beside", volumes: true },
])(
  "$killed of a volume, its StatefulSet's template and its class is killed at every ninth call, and then $next",
  async (story) => {
    const { played, failures, summary } = await crashConversion(story, (call) => call % 9 === 0);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(15);
  },
);

test.each<CrashStory>([
  { killed: "convert", next: "convert", inline: true },
  { killed: "convert", next: "undo", inline: true },
  { killed: "undo", next: "undo", inline: true },
])("$killed of the inline volume of a template is killed at every call, and then $next", async (story) => {
  const { played, failures, summary } = await crashConversion(story);
  console.log(summary);
  expect(failures).toEqual([]);
  expect(played).toBeGreaterThan(60);
});

test.each<CrashStory>([
  { killed: "convert", next: "convert" },
  { killed: "convert", next: "undo" },
  { killed: "undo", next: "undo" },
  { killed: "convert", next: "convert", objects: "beside" },
  { killed: "convert", next: "undo", objects: "in place" },
  { killed: "convert", next: "convert", inline: true },
  { killed: "undo", next: "undo", inline: true },
])(
  "$killed is killed, then $next, and a third process ends it ($objects, $inline)",
  { timeout: 3_600_000 },
  async (story) => {
    const { failures, summary } = await crashConversionTwice(story, 4);
    console.log(summary);
    expect(failures).toEqual([]);
  },
);
