/** The decision of the pod worker, as a table: the order in which containers and volumes come and go. */
import type { Pod, PodStatus, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import type { PodState } from "../containers/pod-runtime.ts";
import { decidePodStep, type NodePod, type PodPass, type PodStep } from "./decide-pod-step.ts";
import { podStatusOf } from "./pod-status.ts";

const now = new Date("2026-01-01T00:00:00Z");
const decide = pureDecision(decidePodStep);

const aPod = (over: { metadata?: object; spec?: object; status?: PodStatus } = {}): Stored<Pod> => ({
  metadata: { name: "p", namespace: "ns", uid: "u", resourceVersion: "1", ...over.metadata },
  spec: { containers: [{ name: "c" }], ...over.spec },
  ...(over.status === undefined ? {} : { status: over.status }),
});
const observedOf = (pod: Stored<Pod>, state: PodState, more: Partial<NodePod> = {}): NodePod => ({
  pod,
  state,
  restarts: 0,
  hasRestarted: false,
  pauseMs: 0,
  now,
  pass: {},
  ...more,
});

const absent: PodState = { kind: "absent" };
const running: PodState = { kind: "running" };
const ended = (exitCode: number): PodState => ({ kind: "ended", exitCode });
const statusOf = (pod: Stored<Pod>, state: PodState, restarts = 0) =>
  podStatusOf(pod, { state, restarts, waitingReason: "ContainerCreating", now });
/** The pod with the status that the state asks for. */
const reported = (state: PodState, over: { metadata?: object; spec?: object } = {}): Stored<Pod> => {
  const pod = aPod(over);
  return { ...pod, status: statusOf(pod, state) };
};
const mounted = new Map([["data", { path: "/n/v", readOnly: false, volumeName: "pv" }]]);
const error = new Error("no");

describe("a pod that is wanted", () => {
  const never = { spec: { restartPolicy: "Never" } };
  const table: readonly [string, Stored<Pod>, PodState, Partial<NodePod>, Partial<PodStep>][] = [
    ["is reported as pending first", aPod(), absent, {}, { step: "reportStatus" }],
    ["waits for its volumes", reported(absent), absent, {}, { step: "waitForVolumes" }],
    [
      "waits for its volumes when the report was refused",
      aPod(),
      absent,
      { pass: { reported: statusOf(aPod(), absent) } },
      { step: "waitForVolumes" },
    ],
    [
      "keeps the phase Running while it is started again",
      reported(running),
      absent,
      {},
      { step: "waitForVolumes" },
    ],
    [
      "reports volumes that do not come",
      reported(absent),
      absent,
      { pass: { mount: { error } } },
      { step: "failMount", error },
    ],
    [
      "starts with the volumes that are mounted",
      reported(absent),
      absent,
      { pass: { mount: { mounted } } },
      { step: "startContainer", mounted },
    ],
    [
      "reports a start that failed",
      reported(absent),
      absent,
      { pass: { mount: { mounted }, start: { kind: "failed", error } } },
      { step: "failStart", error },
    ],
    [
      "reports a start",
      reported(absent),
      absent,
      { pass: { mount: { mounted }, start: { kind: "started" } } },
      { step: "reportStarted" },
    ],
    [
      "is looked at after the start",
      reported(absent),
      absent,
      { pass: { mount: { mounted }, start: { kind: "reported" } } },
      { step: "readState" },
    ],
    [
      "is reported as it is after the start",
      reported(absent),
      running,
      { pass: { mount: { mounted }, start: { kind: "read" } } },
      { step: "reportStatus", status: statusOf(reported(absent), running) },
    ],
    [
      "is looked at again later, also when nothing runs right after the start",
      reported(absent),
      absent,
      { pass: { mount: { mounted }, start: { kind: "read" } } },
      { step: "checkAgain" },
    ],
    ["is found running by an agent that starts", reported(running), running, {}, { step: "checkAgain" }],
    ["is reported as running", reported(absent), running, {}, { step: "reportStatus" }],
    ["is reported when it has ended", reported(running), ended(1), {}, { step: "reportStatus" }],
    ["is restarted by its policy", reported(ended(1)), ended(1), {}, { step: "restartContainer" }],
    [
      "stays ended by its policy",
      aPod(never),
      ended(1),
      { pass: { reported: statusOf(aPod(never), ended(1)) } },
      { step: "settle" },
    ],
    [
      "reports the pause before a restart",
      reported(running),
      absent,
      { pauseMs: 700, hasRestarted: true },
      { step: "reportStatus" },
    ],
    [
      "waits for the pause to end",
      reported(absent),
      absent,
      { pauseMs: 700 },
      { step: "waitForRestart", pauseMs: 700 },
    ],
  ];
  it.each(table)("%s", (_name, pod, state, more, expected) => {
    expect(decide(observedOf(pod, state, more))).toMatchObject(expected);
  });
});

describe("a pod that is being deleted", () => {
  const deleting = { metadata: { deletionTimestamp: "now", deletionGracePeriodSeconds: 3 } };
  const pod = aPod(deleting);
  const final = statusOf(pod, ended(0));
  const order: readonly [PodPass, Partial<PodStep>][] = [
    [{}, { step: "terminate", graceMs: 3000 }],
    [{ isTerminated: true }, { step: "reportStatus", status: final }],
    [{ isTerminated: true, reported: final }, { step: "checkVolumes" }],
    [{ isTerminated: true, reported: final, areVolumesGone: false }, { step: "waitUntilVolumesGone" }],
    [{ isTerminated: true, reported: final, areVolumesGone: true }, { step: "deletePod" }],
  ];
  it.each([absent, running, ended(0)])("ends, is reported, and goes after its volumes: %o", (state) => {
    for (const [pass, expected] of order) {
      expect(decide(observedOf(pod, state, { pass }))).toMatchObject(expected);
    }
  });
  it("is terminated in each pass, whatever was reported before", () => {
    const said = reported(ended(0), deleting);
    expect(decide(observedOf(said, running))).toMatchObject({ step: "terminate" });
    expect(decide(observedOf(said, absent, { pass: { areVolumesGone: true } }))).toMatchObject({
      step: "terminate",
    });
  });
  it("is not started, also with its volumes mounted", () => {
    expect(decide(observedOf(pod, absent, { pass: { mount: { mounted } } }))).toMatchObject({
      step: "terminate",
    });
  });
  it("reports the exit code of a container that had ended", () => {
    const step = decide(observedOf(pod, ended(7), { pass: { isTerminated: true } }));
    expect(step).toMatchObject({ step: "reportStatus", status: { phase: "Failed" } });
  });
});

describe("a pod that has come to its end", () => {
  const failed = aPod({ status: { phase: "Failed" }, metadata: { deletionGracePeriodSeconds: 2 } });
  it.each([
    ["its container is terminated", running, {}, { step: "terminate", graceMs: 2000 }],
    ["once", running, { isTerminated: true }, { step: "settle" }],
    ["nothing is to do when nothing runs", absent, {}, { step: "settle" }],
    ["it is not restarted", ended(1), {}, { step: "settle" }],
  ] as const)("%s", (_name, state, pass, expected) => {
    expect(decide(observedOf(failed, state, { pass }))).toMatchObject(expected);
  });
});

it("a pod whose object is gone leaves nothing behind", () => {
  expect(decide({ pod: undefined })).toEqual({ step: "removeRemnant" });
});

it("a container starts in no state in which this pass has not seen its volumes", () => {
  const passes: PodPass[] = [
    {},
    { isTerminated: true },
    { mount: { error } },
    { reported: statusOf(aPod(), absent) },
  ];
  const pods = [aPod(), reported(running), aPod({ metadata: { deletionTimestamp: "now" } })];
  for (const pod of pods) {
    for (const state of [absent, running, ended(0), ended(1)]) {
      for (const pass of passes) {
        expect(decide(observedOf(pod, state, { pass })).step).not.toBe("startContainer");
      }
    }
  }
});
