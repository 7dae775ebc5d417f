/** Which container comes next, as a table: init containers, sidecars, restart policies and pauses. */
import type { Container, Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { ContainerState } from "../containers/pod-runtime.ts";
import { type ContainerPlan, planContainers } from "./container-plan.ts";
import { podStatusOf } from "./pod-status.ts";

const now = new Date("2026-01-01T01:00:00Z");
const ago = (seconds: number) => new Date(now.getTime() - 1000 * seconds).toISOString();
const running: ContainerState = { kind: "running", attempt: 0, quickRestarts: 0, startedAt: ago(5) };
const ended = (exitCode: number, more: Partial<ContainerState> = {}): ContainerState =>
  ({
    kind: "ended",
    attempt: 0,
    quickRestarts: 0,
    startedAt: ago(2),
    finishedAt: ago(1),
    exitCode,
    ...more,
  }) as ContainerState;

interface Case {
  readonly init?: readonly Container[];
  readonly main?: readonly Container[];
  readonly policy?: string;
  readonly states?: Readonly<Record<string, ContainerState>>;
  readonly verdicts?: Readonly<Record<string, boolean>>;
}

function seen({ init = [], main = [{ name: "m" }], policy = "Always", states = {}, verdicts = {} }: Case) {
  const pod: Stored<Pod> = {
    metadata: { name: "p", uid: "u", resourceVersion: "1" },
    spec: { initContainers: [...init], containers: [...main], restartPolicy: policy },
  };
  return {
    pod,
    containers: new Map(Object.entries(states)),
    verdicts: new Map(Object.entries(verdicts)),
    now,
  };
}

const sidecar: Container = { name: "s", restartPolicy: "Always" };
const two: readonly Container[] = [{ name: "m" }, { name: "n" }];
const start = (name: string, attempt = 0) => ({ next: "start", container: { name }, attempt });
const wait = { next: "wait", pauseMs: undefined };

describe("planContainers", () => {
  const table: readonly [string, Case, Partial<ContainerPlan> | object, string][] = [
    ["all containers are started", { main: two, states: { m: running } }, start("n"), "Pending"],
    ["and then looked at", { main: two, states: { m: running, n: running } }, wait, "Running"],
    ["init containers come first", { init: [{ name: "i" }, { name: "j" }] }, start("i"), "Pending"],
    ["one after another", { init: [{ name: "i" }, { name: "j" }], states: { i: running } }, wait, "Pending"],
    [
      "the next once one has succeeded",
      { init: [{ name: "i" }, { name: "j" }], states: { i: ended(0) } },
      start("j"),
      "Pending",
    ],
    [
      "then the others",
      { init: [{ name: "i" }, { name: "j" }], states: { i: ended(0), j: ended(0) } },
      start("m"),
      "Pending",
    ],
    [
      "an init container that fails is started again",
      { init: [{ name: "i" }], states: { i: ended(1) } },
      start("i", 1),
      "Pending",
    ],
    [
      "but not with the policy Never: the pod has failed",
      { init: [{ name: "i" }], policy: "Never", states: { i: ended(1) } },
      { next: "finish" },
      "Failed",
    ],
    [
      "an init container whose record is lost does not run again beside the others",
      { init: [{ name: "i" }], states: { m: running } },
      wait,
      "Running",
    ],
    ["a sidecar starts before the others", { init: [sidecar] }, start("s"), "Pending"],
    ["which do not wait for its end", { init: [sidecar], states: { s: running } }, start("m"), "Pending"],
    [
      "but for its startup probe",
      { init: [{ ...sidecar, startupProbe: {} }], states: { s: running } },
      wait,
      "Pending",
    ],
    [
      "and go on once that has succeeded",
      { init: [{ ...sidecar, startupProbe: {} }], states: { s: running }, verdicts: { "s/0/startup": true } },
      start("m"),
      "Pending",
    ],
    [
      "a sidecar that ends is started again, whatever the pod's policy",
      { init: [sidecar], policy: "Never", states: { s: ended(0), m: running } },
      start("s", 1),
      "Running",
    ],
    [
      "a sidecar is ended when the others have ended for good",
      { init: [sidecar], policy: "Never", states: { s: running, m: ended(0) } },
      { next: "stop", container: sidecar },
      "Running",
    ],
    [
      "and then the pod has succeeded, however the sidecar has ended",
      { init: [sidecar], policy: "Never", states: { s: ended(143), m: ended(0) } },
      { next: "finish" },
      "Succeeded",
    ],
    [
      "OnFailure: a failure is repeated",
      { policy: "OnFailure", states: { m: ended(2) } },
      start("m", 1),
      "Running",
    ],
    [
      "OnFailure: a success is not",
      { policy: "OnFailure", main: two, states: { m: ended(0), n: running } },
      wait,
      "Running",
    ],
    [
      "the pod ends when its last container has",
      { policy: "OnFailure", main: two, states: { m: ended(0), n: ended(0) } },
      { next: "finish" },
      "Succeeded",
    ],
    [
      "and fails when one has failed",
      { policy: "Never", main: two, states: { m: ended(3), n: ended(0) } },
      { next: "finish" },
      "Failed",
    ],
    [
      "the second restart in a row waits 10 seconds",
      { states: { m: ended(1, { quickRestarts: 1 }) } },
      { next: "wait", pauseMs: 9000, paused: "m" },
      "Running",
    ],
    [
      "the third 20",
      { states: { m: ended(1, { quickRestarts: 2 }) } },
      { next: "wait", pauseMs: 19_000, paused: "m" },
      "Running",
    ],
    [
      "and none more than 5 minutes",
      { states: { m: ended(1, { quickRestarts: 40 }) } },
      { next: "wait", pauseMs: 299_000, paused: "m" },
      "Running",
    ],
    [
      "a run of ten minutes ends the series",
      { states: { m: ended(1, { quickRestarts: 40, startedAt: ago(601) }) } },
      { next: "start", quickRestarts: 1 },
      "Running",
    ],
    [
      "a startup probe that has failed stops the container",
      { main: [{ name: "m", startupProbe: {} }], states: { m: running }, verdicts: { "m/0/startup": false } },
      { next: "stop", graceMs: 30_000 },
      "Running",
    ],
    [
      "in the time that the probe sets",
      {
        main: [{ name: "m", livenessProbe: { terminationGracePeriodSeconds: 4 } }],
        states: { m: running },
        verdicts: { "m/0/liveness": false },
      },
      { next: "stop", graceMs: 4000 },
      "Running",
    ],
  ];
  it.each(table)("%s", (_name, given, expected, phase) => {
    const observed = seen(given);
    expect(planContainers(observed)).toMatchObject(expected);
    expect(podStatusOf(observed.pod, observed).phase).toBe(phase);
  });
});

describe("readiness", () => {
  const probe = { readinessProbe: {} };
  const readyOf = (given: Case) => {
    const observed = seen(given);
    return podStatusOf(observed.pod, observed).conditions?.find((c) => c.type === "Ready")?.status;
  };
  const table: readonly [string, Case, string][] = [
    ["a container without probes is ready while it runs", { states: { m: running } }, "True"],
    [
      "one with a probe is not before it has succeeded",
      { main: [{ name: "m", ...probe }], states: { m: running } },
      "False",
    ],
    [
      "but then",
      { main: [{ name: "m", ...probe }], states: { m: running }, verdicts: { "m/0/readiness": true } },
      "True",
    ],
    [
      "not while its startup probe has not",
      {
        main: [{ name: "m", ...probe, startupProbe: {} }],
        states: { m: running },
        verdicts: { "m/0/readiness": true },
      },
      "False",
    ],
    ["a pod is ready when all containers are", { main: two, states: { m: running } }, "False"],
    ["sidecars too", { init: [{ ...sidecar, ...probe }], states: { s: running, m: running } }, "False"],
  ];
  it.each(table)("%s", (_name, given, expected) => expect(readyOf(given)).toBe(expected));
});
