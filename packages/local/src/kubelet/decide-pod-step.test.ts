/** The decision of the pod worker, as a table: the order in which containers and volumes come and go. */
import type { Pod, PodStatus, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import type { ContainerState } from "../containers/pod-runtime.ts";
import {
  decidePodStep,
  type NodePod,
  type PodPass,
  type PodStep,
  type StartOfContainer,
} from "./decide-pod-step.ts";
import { podStatusOf } from "./pod-status.ts";

const now = new Date("2026-01-01T00:10:00Z");
const earlier = "2026-01-01T00:09:59.000Z";
const decide = pureDecision(decidePodStep);

const aPod = (over: { metadata?: object; spec?: object; status?: PodStatus } = {}): Stored<Pod> => ({
  metadata: { name: "p", namespace: "ns", uid: "u", resourceVersion: "1", ...over.metadata },
  spec: { containers: [{ name: "c" }], ...over.spec },
  ...(over.status === undefined ? {} : { status: over.status }),
});

const run = { attempt: 0, quickRestarts: 0, startedAt: earlier };
const absent = undefined;
const running: ContainerState = { kind: "running", ...run };
const ended = (exitCode: number, quickRestarts = 0): ContainerState => ({
  kind: "ended",
  ...run,
  quickRestarts,
  exitCode,
  finishedAt: earlier,
});
const statesOf = (state: ContainerState | undefined) => new Map(state === undefined ? [] : [["c", state]]);
const observedOf = (
  pod: Stored<Pod>,
  state: ContainerState | undefined,
  more: Partial<NodePod> = {},
): NodePod => ({ pod, containers: statesOf(state), verdicts: new Map(), now, pass: {}, ...more });
const statusOf = (pod: Stored<Pod>, state: ContainerState | undefined, isEnded = false) =>
  podStatusOf(pod, { containers: statesOf(state), verdicts: new Map(), now, isEnded });
/** The pod with the status that the state asks for. */
const reported = (
  state: ContainerState | undefined,
  over: { metadata?: object; spec?: object } = {},
): Stored<Pod> => {
  const pod = aPod(over);
  return { ...pod, status: statusOf(pod, state) };
};
const mounted = new Map([["data", { path: "/n/v", readOnly: false, volumeName: "pv" }]]);
const error = new Error("no");
const first = { container: { name: "c" }, attempt: 0, quickRestarts: 0 };
const started = (start: object): Partial<NodePod> => ({
  pass: { mount: { mounted }, start: { ...start, run: first } as unknown as StartOfContainer },
});

describe("a pod that has more in an emptyDir than it may", () => {
  const excess = "too much";
  it("is ended, then reported as evicted, and stays as it is", () => {
    const pod = reported(running);
    expect(decide(observedOf(pod, running, { excess }))).toEqual({ step: "terminate", pod, graceMs: 1000 });
    const failed = { phase: "Failed", reason: "Evicted", message: excess };
    expect(decide(observedOf(pod, ended(137), { excess, pass: { isTerminated: true } }))).toMatchObject({
      step: "reportStatus",
      status: failed,
    });
    const after = { ...pod, status: { ...pod.status, ...failed } };
    expect(decide(observedOf(after, ended(137), { excess }))).toEqual({ step: "settle" });
  });
});

describe("a pod that is wanted", () => {
  const never = { spec: { restartPolicy: "Never" } };
  const table: readonly [
    string,
    Stored<Pod>,
    ContainerState | undefined,
    Partial<NodePod>,
    Partial<PodStep>,
  ][] = [
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
      { step: "startContainer", mounted, run: first },
    ],
    [
      "reports why it cannot start",
      reported(absent),
      absent,
      started({ kind: "failed", reason: "RunContainerError", error }),
      { step: "reportStatus" },
    ],
    [
      "looks for its hook after the start",
      reported(absent),
      absent,
      started({ kind: "started" }),
      { step: "runPostStart" },
    ],
    ["reports a start", reported(absent), absent, started({ kind: "hooked" }), { step: "reportStarted" }],
    [
      "is looked at after the start",
      reported(absent),
      absent,
      started({ kind: "reported" }),
      { step: "readState" },
    ],
    ["is found running by an agent that starts", reported(running), running, {}, { step: "checkAgain" }],
    ["is reported as running", reported(absent), running, {}, { step: "reportStatus" }],
    [
      "is started again at once the first time that it ends",
      reported(running),
      ended(1),
      { pass: { mount: { mounted } } },
      { step: "startContainer", run: { container: { name: "c" }, attempt: 1, quickRestarts: 1 } },
    ],
    ["reports the pause before the next", reported(running), ended(1, 1), {}, { step: "reportStatus" }],
    [
      "waits for the pause to end",
      reported(ended(1, 1)),
      ended(1, 1),
      {},
      { step: "waitForRestart", pauseMs: 9000, isNew: false },
    ],
    [
      "counts the runs that the node has lost",
      reported(running),
      absent,
      { pass: { mount: { mounted } } },
      { step: "startContainer", run: { container: { name: "c" }, attempt: 1, quickRestarts: 0 } },
    ],
    [
      "stays ended by its policy",
      aPod(never),
      ended(1),
      { pass: { reported: statusOf(aPod(never), ended(1)) } },
      { step: "settle" },
    ],
    [
      "is stopped by a probe that has failed",
      reported(running),
      running,
      { verdicts: new Map([["c/0/liveness", false]]) },
      { step: "stopContainer", graceMs: 30_000 },
    ],
    [
      "is not stopped for what a probe has found in an earlier run",
      reported({ ...running, attempt: 1 }),
      { ...running, attempt: 1 },
      { verdicts: new Map([["c/0/liveness", false]]) },
      { step: "checkAgain" },
    ],
  ];
  it.each(table)("%s", (_name, pod, state, more, expected) => {
    expect(decide(observedOf(pod, state, more))).toMatchObject(expected);
  });

  it("reports why it cannot start once, and fails the pass", () => {
    const start = started({ kind: "failed", reason: "CreateContainerConfigError", error, isLasting: true });
    const step = decide(observedOf(reported(absent), absent, start));
    if (step.step !== "reportStatus") throw new Error(step.step);
    expect(step.status.containerStatuses?.[0]?.state).toEqual({
      waiting: { reason: "CreateContainerConfigError", message: "no" },
    });
    const pod = { ...aPod(), status: step.status };
    expect(decide(observedOf(pod, absent))).toMatchObject({ step: "waitForVolumes" });
    expect(decide(observedOf(pod, absent, start))).toMatchObject({ step: "failStart", error, isKnown: true });
    const another = started({ kind: "failed", reason: "RunContainerError", error, isLasting: false });
    const shown = decide(observedOf(pod, absent, another));
    if (shown.step !== "reportStatus") throw new Error(shown.step);
    const after = { ...aPod(), status: shown.status };
    expect(decide(observedOf(after, absent, another))).toMatchObject({ step: "failStart", isKnown: false });
  });

  it("ends when its deadline has passed", () => {
    const spec = { activeDeadlineSeconds: 60, terminationGracePeriodSeconds: 7 };
    const pod = {
      ...aPod({ spec }),
      status: { ...statusOf(aPod({ spec }), running), startTime: "2026-01-01T00:09:00Z" },
    };
    expect(decide(observedOf(pod, running))).toMatchObject({ step: "terminate", graceMs: 7000 });
    expect(decide(observedOf(pod, ended(143), { pass: { isTerminated: true } }))).toMatchObject({
      step: "reportStatus",
      status: { phase: "Failed", reason: "DeadlineExceeded" },
    });
    const before = new Date(now.getTime() - 1000);
    expect(decide(observedOf(pod, running, { now: before }))).toMatchObject({ step: "checkAgain" });
  });
});

describe("a pod that is being deleted", () => {
  const deleting = { metadata: { deletionTimestamp: "now", deletionGracePeriodSeconds: 3 } };
  const pod = aPod(deleting);
  const final = statusOf(pod, absent, true);
  const order: readonly [PodPass, Partial<PodStep>][] = [
    [{}, { step: "terminate", graceMs: 3000 }],
    [{ isTerminated: true }, { step: "reportStatus", status: final }],
    [{ isTerminated: true, reported: final }, { step: "checkVolumes" }],
    [{ isTerminated: true, reported: final, areVolumesGone: false }, { step: "waitUntilVolumesGone" }],
    [{ isTerminated: true, reported: final, areVolumesGone: true }, { step: "deletePod" }],
  ];
  it("ends, is reported, and goes after its volumes", () => {
    for (const [pass, expected] of order) {
      expect(decide(observedOf(pod, absent, { pass }))).toMatchObject(expected);
    }
  });
  it.each([absent, running, ended(0)])("is terminated in each pass, whatever was reported: %o", (state) => {
    const said = reported(ended(0), deleting);
    expect(decide(observedOf(said, state))).toMatchObject({ step: "terminate" });
    expect(decide(observedOf(said, state, { pass: { areVolumesGone: true } }))).toMatchObject({
      step: "terminate",
    });
  });
  it("is not started, also with its volumes mounted", () => {
    expect(decide(observedOf(pod, absent, { pass: { mount: { mounted } } }))).toMatchObject({
      step: "terminate",
    });
  });
  it("reports how its container has ended", () => {
    const step = decide(observedOf(pod, ended(7), { pass: { isTerminated: true } }));
    expect(step).toMatchObject({
      step: "reportStatus",
      status: { phase: "Failed", containerStatuses: [{ state: { terminated: { exitCode: 7 } } }] },
    });
  });
});

describe("a pod of a node that shuts down", () => {
  const shutdown = { group: "regular", leftMs: 9000 } as const;
  const critical = { spec: { priority: 2_000_000_000 } };
  it("ends within its own time and that of its group, and has failed", () => {
    const pod = reported(running);
    expect(decide(observedOf(pod, running, { shutdown }))).toMatchObject({
      step: "terminate",
      graceMs: 9000,
    });
    const quick = reported(running, { spec: { terminationGracePeriodSeconds: 4 } });
    expect(decide(observedOf(quick, running, { shutdown }))).toMatchObject({ graceMs: 4000 });
    const step = decide(observedOf(pod, ended(0), { shutdown, pass: { isTerminated: true } }));
    if (step.step !== "reportStatus") throw new Error(step.step);
    expect(step.status).toMatchObject({ phase: "Failed", reason: "Terminated" });
    const pass = { isTerminated: true, reported: step.status };
    expect(decide(observedOf(pod, ended(0), { shutdown, pass }))).toEqual({ step: "settle" });
  });
  it("runs on while it is not its turn", () => {
    const pod = reported(running, critical);
    expect(decide(observedOf(pod, running, { shutdown }))).toMatchObject({ step: "checkAgain" });
    const later = { group: "critical", leftMs: 9000 } as const;
    expect(decide(observedOf(pod, running, { shutdown: later }))).toMatchObject({ step: "terminate" });
  });
  it.each([{}, critical])("is refused when it has just come: %o", (over) => {
    const step = decide(observedOf(aPod(over), absent, { shutdown }));
    expect(step).toMatchObject({
      step: "reportStatus",
      status: { phase: "Failed", reason: "NodeShutdown" },
    });
  });
  it("is not given more time by its deletion", () => {
    const metadata = { deletionTimestamp: "now", deletionGracePeriodSeconds: 300 };
    const pod = reported(running, { metadata, spec: { terminationGracePeriodSeconds: 300 } });
    expect(decide(observedOf(pod, running, { shutdown }))).toMatchObject({
      step: "terminate",
      graceMs: 9000,
    });
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
