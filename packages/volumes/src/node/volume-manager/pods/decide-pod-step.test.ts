/** What comes next for a pod, as a table. Source: docs/behaviour/node-agent.md 4.1. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decidePodStep, type ObservedPod, runtimeRecheckMs } from "./decide-pod-step.ts";
import type { NodePod } from "./node-pods.ts";

const decide = pureDecision(decidePodStep);
const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", uid: "u" } } as never;
const known: NodePod = { pod, isResolved: false, failures: 0, retryAtMs: 0, errors: [], requests: 0 };
const resolved = { ...known, isResolved: true };
const resolution = { volumes: [], errors: [] };

const live: ObservedPod = {
  nowMs: 1000,
  mayBegin: true,
  known,
  hasEnded: false,
  isOver: false,
  hasVolumes: false,
  hasContainers: undefined,
  resolution: undefined,
};
const ended: ObservedPod = { ...live, hasEnded: true, hasVolumes: true, known: resolved };
const gone: ObservedPod = { ...ended, known: undefined };

describe("the step of a pod", () => {
  it.each<[string, ObservedPod, object]>([
    ["nothing is decided before all pods are known", { ...live, mayBegin: false }, { step: "awaitStart" }],
    ["nor is an ended pod released", { ...gone, mayBegin: false }, { step: "awaitStart" }],
    ["a new pod's claims are read", live, { step: "resolve" }],
    ["what was read is adopted", { ...live, resolution }, { step: "adopt", resolution }],
    ["a resolved pod is left alone", { ...live, known: resolved }, { step: "settle" }],
    [
      "a pod that could not be resolved waits for its retry",
      { ...live, known: { ...known, retryAtMs: 1300 } },
      { step: "awaitRetry", ms: 300 },
    ],
    [
      "and is tried again once that is due",
      { ...live, known: { ...known, retryAtMs: 1000 } },
      { step: "resolve" },
    ],
    ["of an ended pod the runtime is asked", ended, { step: "askRuntime" }],
    ["and of one that the API server forgot", gone, { step: "askRuntime" }],
    [
      "while containers run, nothing is released",
      { ...ended, hasContainers: true },
      { step: "awaitContainers", ms: runtimeRecheckMs },
    ],
    [
      "nor for a pod that the API server forgot",
      { ...gone, hasContainers: true },
      { step: "awaitContainers", ms: runtimeRecheckMs },
    ],
    [
      "what containers of an ended pod use is resolved after a restart",
      { ...ended, known, hasContainers: true },
      { step: "resolve" },
    ],
    [
      "unless that has to wait",
      { ...ended, known: { ...known, retryAtMs: 9000 }, hasContainers: true },
      { step: "awaitContainers", ms: runtimeRecheckMs },
    ],
    ["without containers it is released", { ...ended, hasContainers: false }, { step: "release" }],
    ["also when it could not be resolved", { ...ended, known, hasContainers: false }, { step: "release" }],
    ["once", { ...ended, isOver: true }, { step: "settle" }],
    [
      "one that is gone with its volumes is forgotten",
      { ...gone, isOver: true, hasVolumes: false },
      { step: "forget" },
    ],
    ["not before", { ...gone, isOver: true }, { step: "settle" }],
  ])("%s", (_name, observed, step) => {
    expect(decide(observed)).toEqual(step);
  });
});
