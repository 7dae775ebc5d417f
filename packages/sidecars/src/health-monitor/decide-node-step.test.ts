import type { Node } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideNodeStep, lookAtNode, type NodeMemory, notReadyMs } from "./decide-node-step.ts";

const node = (ready?: string, phase?: string): Node => ({
  metadata: { name: "n" },
  status: {
    ...(ready === undefined ? {} : { conditions: [{ type: "Ready", status: ready }] }),
    ...(phase === undefined ? {} : { phase }),
  },
});

describe("a look at a node", () => {
  it.each([
    ["ready: nothing", node("True"), undefined, 0, undefined, { failed: false }],
    [
      "not ready just now: waited for",
      node("False"),
      { failed: false },
      7,
      undefined,
      { notReadySinceMs: 7, failed: false },
    ],
    [
      "not ready for just as long as allowed: still waited for",
      node("Unknown"),
      { notReadySinceMs: 7, failed: false },
      7 + notReadyMs,
      undefined,
      { notReadySinceMs: 7, failed: false },
    ],
    [
      "not ready for longer: failed",
      node("Unknown"),
      { notReadySinceMs: 7, failed: false },
      8 + notReadyMs,
      "failed",
      { notReadySinceMs: 7, failed: true },
    ],
    [
      "reported once only",
      node("False"),
      { notReadySinceMs: 7, failed: true },
      10 * notReadyMs,
      undefined,
      { notReadySinceMs: 7, failed: true },
    ],
    [
      "ready again: recovered",
      node("True"),
      { notReadySinceMs: 7, failed: true },
      0,
      "recovered",
      { failed: false },
    ],
    [
      "ready again in time: nothing",
      node("True"),
      { notReadySinceMs: 7, failed: false },
      0,
      undefined,
      { failed: false },
    ],
    ["deleted: failed at once", undefined, { failed: false }, 0, "failed", { failed: true }],
    [
      "deleted after it failed: reported already",
      undefined,
      { failed: true },
      0,
      undefined,
      { failed: true },
    ],
    ["terminated: failed at once", node("True", "Terminated"), undefined, 0, "failed", { failed: true }],
    ["says nothing yet: nothing", node(), undefined, 0, undefined, { failed: false }],
  ])("%s", (_, given, memory, nowMs, report, after) => {
    expect(lookAtNode(given, memory, nowMs)).toEqual({ report, memory: after });
  });
});

describe("what comes next for a node", () => {
  const decide = pureDecision(decideNodeStep);
  const long = 2 * notReadyMs;
  it.each<[string, Node | undefined, NodeMemory | undefined, object]>([
    ["ready: remembered as ready", node("True"), undefined, { step: "remember", memory: { failed: false } }],
    [
      "not ready just now: remembered since when",
      node("False"),
      { failed: false },
      { step: "remember", memory: { notReadySinceMs: long, failed: false } },
    ],
    [
      "not ready for long: reported",
      node("Unknown"),
      { notReadySinceMs: 0, failed: false },
      { step: "reportFailed", memory: { notReadySinceMs: 0, failed: true } },
    ],
    [
      "reported: not again",
      node("Unknown"),
      { notReadySinceMs: 0, failed: true },
      { step: "remember", memory: { notReadySinceMs: 0, failed: true } },
    ],
    [
      "ready again: reported",
      node("True"),
      { notReadySinceMs: 0, failed: true },
      { step: "reportRecovered", memory: { failed: false } },
    ],
    [
      "deleted: reported, and forgotten",
      undefined,
      { failed: false },
      { step: "reportFailed", memory: undefined },
    ],
    [
      "deleted after it was reported: forgotten",
      undefined,
      { failed: true },
      { step: "remember", memory: undefined },
    ],
  ])("%s", (_name, given, memory, step) => {
    expect(decide({ node: given, memory, nowMs: long })).toEqual(step);
  });
});
