/** What a Job does with its pods, as a table. */
import type { Job, Pod, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { completedIndexesText } from "./completion-index.ts";
import { decideJobStep, type ObservedJob } from "./decide-job-step.ts";

const decide = pureDecision(decideJobStep);
const now = new Date("2026-01-01T01:00:00Z");
const labels = { job: "j" };
const aJob = (spec: object = {}, status: object = {}): Stored<Job> =>
  ({
    metadata: { name: "j", namespace: "ns", uid: "j" },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels } }, completions: 1, ...spec },
    status,
  }) as unknown as Stored<Job>;
const aPod = (name: string, phase: string, more: object = {}, annotations: object = {}) =>
  ({
    metadata: { name, uid: name, labels, annotations, creationTimestamp: "2026-01-01T00:59:58Z" },
    status: { phase, ...more },
  }) as unknown as Stored<Pod>;
const ended = (at: string) => ({ containerStatuses: [{ state: { terminated: { finishedAt: at } } }] });
const longAgo = ended("2026-01-01T00:00:00Z");
const index = (n: number) => ({ "batch.kubernetes.io/job-completion-index": String(n) });

function passOf(over: Partial<ObservedJob>): string[] {
  const observed: ObservedJob = { job: aJob(), pods: [], orphans: [], now, done: 0, ...over };
  for (let done = 0, steps: string[] = []; ; done++) {
    const step = decide({ ...observed, done });
    if (step.step === "settle" || step.step === "deleteJob") return [...steps, step.step];
    if (step.step === "reportStatus") {
      const { active = 0, succeeded = 0, failed = 0, conditions = [] } = step.status;
      const last = conditions.at(-1);
      const end = last === undefined ? "" : ` ${last.reason ?? last.type}`;
      return [...steps, `report ${active} ${succeeded} ${failed}${end}`];
    }
    steps.push(
      step.step === "createPod"
        ? `create ${step.pod.metadata?.generateName}`
        : `${step.step} ${step.pod.metadata.name}`,
    );
  }
}

describe("a pass", () => {
  const running = aPod("r", "Running");
  const done = aPod("d", "Succeeded");
  const failed = aPod("f", "Failed", longAgo);
  it.each<[string, Partial<ObservedJob>, string[]]>([
    ["makes the first pod", {}, ["create j-", "report 0 0 0"]],
    [
      "no more than are to run at once",
      { job: aJob({ completions: 5, parallelism: 2 }), pods: [running] },
      ["create j-", "report 1 0 0"],
    ],
    [
      "no more than are missing",
      { job: aJob({ completions: 3, parallelism: 3 }), pods: [done, aPod("e", "Succeeded")] },
      ["create j-", "report 0 2 0"],
    ],
    [
      "deletes what is too much",
      { job: aJob({ parallelism: 0 }), pods: [running] },
      ["deletePod r", "report 1 0 0"],
    ],
    ["is complete", { pods: [done] }, ["report 0 1 0 Complete"]],
    ["repeats what has failed", { pods: [failed] }, ["create j-", "report 0 0 1"]],
    ["after a pause", { pods: [aPod("f", "Failed", ended("2026-01-01T00:59:55Z"))] }, ["report 0 0 1"]],
    [
      "but not too often",
      { job: aJob({ backoffLimit: 0 }), pods: [failed, running] },
      ["deletePod r", "report 0 0 1 BackoffLimitExceeded"],
    ],
    [
      "counting restarts of containers where they are restarted",
      {
        job: aJob({
          backoffLimit: 2,
          template: { metadata: { labels }, spec: { restartPolicy: "OnFailure" } },
        }),
        pods: [aPod("r", "Running", { containerStatuses: [{ restartCount: 2 }] })],
      },
      ["deletePod r", "report 0 0 0 BackoffLimitExceeded"],
    ],
    [
      "fails after its deadline",
      { job: aJob({ activeDeadlineSeconds: 60 }, { startTime: "2026-01-01T00:59:00Z" }), pods: [running] },
      ["deletePod r", "report 0 0 0 DeadlineExceeded"],
    ],
    [
      "makes nothing while it is suspended",
      { job: aJob({ suspend: true }), pods: [running] },
      ["deletePod r", "report 0 0 0 JobSuspended"],
    ],
    [
      "without a number: one success is enough",
      { job: aJob({ completions: undefined, parallelism: 3 }), pods: [done, running] },
      ["report 1 1 0"],
    ],
    [
      "and all others come to their end",
      { job: aJob({ completions: undefined, parallelism: 3 }), pods: [done] },
      ["report 0 1 0 Complete"],
    ],
    [
      "indexed: makes the indexes that are missing",
      {
        job: aJob({ completionMode: "Indexed", completions: 4, parallelism: 4 }),
        pods: [aPod("a", "Succeeded", {}, index(0)), aPod("b", "Running", {}, index(2))],
      },
      ["create j-1-", "create j-3-", "report 1 1 0"],
    ],
    [
      "indexed: an index counts once",
      {
        job: aJob({ completionMode: "Indexed", completions: 2, parallelism: 1 }),
        pods: [aPod("a", "Succeeded", {}, index(0)), aPod("b", "Succeeded", {}, index(0))],
      },
      ["create j-1-", "report 0 1 0"],
    ],
  ])("%s", (_name, over, expected) => expect(passOf(over)).toEqual(expected));

  it("looks at a Job that has ended once its time is over, and deletes it", () => {
    const conditions = [{ type: "Complete", status: "True" }];
    const completionTime = "2026-01-01T00:59:30Z";
    const status = { startTime: completionTime, completionTime, succeeded: 1, conditions };
    const at = (ttlSecondsAfterFinished: number) =>
      decide({ job: aJob({ ttlSecondsAfterFinished }, status), pods: [done], orphans: [], now, done: 0 });
    expect(at(40)).toEqual({ step: "settle", nextMs: 10_000 });
    expect(at(30)).toEqual({ step: "deleteJob" });
  });
});

it.each([
  [[], ""],
  [[3], "3"],
  [[0, 1], "0,1"],
  [[5, 0, 1, 2], "0-2,5"],
])("completed indexes %j are written as %s", (indexes, text) => {
  expect(completedIndexesText(new Set(indexes))).toBe(text);
});
