/** What `migrate` prints of waits, findings and of what it leaves. */
import { type CrossingEvent, type CrossingResult, type Finding, PreflightError } from "@longshore/migration";
import { expect, test } from "vitest";
import { type Progress, showCrossing } from "../../terminal.ts";
import { crossingRows } from "../crossing-rows.ts";
import {
  crossingWords,
  jsonFailure,
  type Left,
  leftLines,
  preflightJson,
  preflightWords,
} from "./migrate-report.ts";

const finding = (severity: Finding["severity"]): Finding => ({
  severity,
  object: "Node n1",
  field: "spec.unschedulable",
  reason: "it is cordoned",
  remedy: "uncordon it",
});

test("the preflight, for people and for programs", () => {
  expect(preflightWords([])).toBe("preflight found no problem\n");
  expect(preflightWords([finding("warning")])).toBe(
    "warning: Node n1 (spec.unschedulable): it is cordoned; uncordon it\nnothing blocks the crossing\n",
  );
  expect(JSON.parse(preflightJson([finding("blocker"), finding("warning")]))).toMatchObject({
    blockers: [{ object: "Node n1" }],
    warnings: [{ object: "Node n1" }],
  });
});

test("a rollback says that no volume needs the driver, or which the driver has made and keep it", () => {
  const result: CrossingResult = {
    plugin: "kubernetes.io/aws-ebs",
    direction: "rollback",
    resumed: false,
    steps: [],
    elapsedMs: 2500,
    nodesLeft: [],
    driverVolumes: [],
  };
  expect(crossingWords(result, false)).toBe(
    "kubernetes.io/aws-ebs is served in-tree again, after 2.5 s\nno volume needs the driver any more\n",
  );
  const made = Array.from({ length: 12 }, (_, i) => `pv-${i}`);
  expect(crossingWords({ ...result, resumed: true, driverVolumes: made }, false)).toBe(
    "kubernetes.io/aws-ebs is served in-tree again (resumed), after 2.5 s\n" +
      "keep the driver: it has made PersistentVolume pv-0, pv-1, pv-2, pv-3, pv-4, pv-5, pv-6, pv-7, pv-8, pv-9 and 2 more, which cannot go back\n",
  );
  expect(JSON.parse(crossingWords({ ...result, driverVolumes: made }, true))).toMatchObject({
    outcome: "done",
    driverVolumes: made,
  });
  // What was not looked at is not said: a run that pauses is not at its end.
  const paused = crossingWords({ ...result, nodesLeft: made }, false);
  expect(paused).toContain("left: pv-0, pv-1,");
  expect(paused).toContain("pv-9 and 2 more; run it again");
  expect(paused).not.toContain("driver");
  expect(crossingWords({ ...result, direction: "migrate" }, false)).not.toContain("driver any more");
});

test("a finding names the flag that lets it pass", () => {
  const forced = { ...finding("warning"), remedy: "or pass `force` to let it go" };
  expect(preflightWords([forced])).toContain("or pass --force to let it go");
  expect(preflightJson([forced])).toContain("or pass --force to let it go");
  expect(
    jsonFailure(new PreflightError([{ ...forced, severity: "blocker" }]), false, undefined),
  ).not.toContain("`force`");
});

const left: Left = {
  seen: {
    controlPlane: "csi",
    nodes: [
      { name: "n1", served: "csi", cordoned: false, uncordoned: false },
      { name: "n2", served: "in-tree", cordoned: true, uncordoned: false },
      { name: "n3", served: "unknown", cordoned: true, uncordoned: false, kept: "its agent is down" },
      { name: "n4", served: "in-tree", cordoned: false, uncordoned: true },
    ],
  },
  journalFile: "/c/crossing.json",
  journal: {
    version: 1,
    platform: "p",
    plugin: "kubernetes.io/aws-ebs",
    direction: "migrate",
    startedAt: "t",
    nodesDone: ["n1"],
    run: { startedAt: "t", aliveAt: "t", step: { name: "drain", nodeName: "n2", since: "t" } },
  },
  resume: "longshore migrate",
  rollBack: "longshore rollback",
  uncordonAsked: true,
};

test("what is left: gates, cordons, the journal and the commands", () => {
  expect(leftLines(left)).toEqual([
    'stopped in step "n2: drain"',
    "feature gates: control plane csi, n1 csi, n2 in-tree, n3 unknown, n4 in-tree",
    "uncordoned: n4",
    "n2 stays cordoned; it is uncordoned when the crossing of it ends",
    "n3 stays cordoned, although --uncordon-on-abort was given: its agent is down",
    "journal /c/crossing.json: migrate begun, nodes done: n1",
    "go on:     longshore migrate",
    "go back:   longshore rollback",
  ]);
  expect(leftLines({ ...left, seen: new Error("connection refused") })[1]).toBe(
    "what is left cannot be seen (connection refused): the node of this step may be cordoned",
  );
});

test("a run that failed, for programs", () => {
  const blocked = new PreflightError([finding("blocker")]);
  expect(JSON.parse(jsonFailure(blocked, false, undefined))).toMatchObject({
    outcome: "blocked",
    findings: [{ field: "spec.unschedulable" }],
  });
  expect(JSON.parse(jsonFailure(new Error("x"), true, left))).toMatchObject({
    outcome: "interrupted",
    left: { controlPlane: "csi", nodesDone: ["n1"], resume: "longshore migrate" },
  });
});

/** What is shown of a wait that is reported after these times, in milliseconds. */
function shown(live: boolean, ...times: readonly number[]): string[] {
  const said: string[] = [];
  const progress: Progress = {
    live,
    line: (text) => said.push(`line ${text.trim()}`),
    status: (text) => said.push(`status ${text.trim()}`),
    clear() {},
  };
  const show = showCrossing(progress);
  const subjects = [{ kind: "Pod", namespace: "d", name: "w-0", why: "to end" }];
  for (const waitedMs of times) {
    const event: CrossingEvent = {
      kind: "waiting",
      step: "drain",
      nodeName: "n1",
      wait: { subjects },
      waitedMs,
      leftMs: 600_000 - waitedMs,
    };
    show(event);
  }
  return said;
}

test("without a terminal each report of a wait is a line; on one, only those of a wait that lasts", () => {
  const words = "… n1: drain waits for Pod d/w-0 (to end)";
  const later = `line ${words}, for 30 s now; given up in 570 s`;
  expect(shown(false, 0, 30_000).filter((text) => text.startsWith("line"))).toEqual([`line ${words}`, later]);
  expect(shown(true, 0, 30_000)).toEqual([`status ${words}`, later, `status ${words}`]);
});

test("the crossing in `cluster status`", () => {
  const facts = {
    plugin: "kubernetes.io/aws-ebs",
    direction: "migrate",
    startedAt: "t0",
    nodesDone: ["n1"],
  } as const;
  const by = { user: "u", host: "h", pid: 7, processStartedAt: "1" };
  const step = { name: "drain", nodeName: "n2", since: "t1" };
  const waiting = { since: "t2", subjects: [{ kind: "Pod", namespace: "d", name: "w-0", why: "to end" }] };
  expect(crossingRows({ state: "running", ...facts, by, step, waiting }, 3)).toEqual([
    ["CROSSING", "migrate kubernetes.io/aws-ebs: running, 1 of 3 nodes done"],
    ["STEP", "n2: drain, since t1"],
    ["WAITING FOR", "Pod d/w-0 (to end), since t2"],
    ["BY", "u@h, process 7"],
  ]);
  const interruption = { how: "gone", at: "t3" } as const;
  expect(crossingRows({ state: "interrupted", ...facts, interruption }, 3)).toEqual([
    ["CROSSING", "migrate kubernetes.io/aws-ebs: interrupted, 1 of 3 nodes done"],
    ["INTERRUPTED", "its process is gone, t3; run it again to go on"],
  ]);
  expect(crossingRows({ state: "finished", ...facts, finishedAt: "t9" }, 3)).toEqual([
    ["CROSSING", "migrate kubernetes.io/aws-ebs: finished t9"],
  ]);
});
