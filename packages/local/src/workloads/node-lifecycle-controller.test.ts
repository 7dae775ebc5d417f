import type { Node, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideNodeLeaseStep } from "./decide-node-lease-step.ts";
import { decideNodeTaintStep } from "./decide-node-taint-step.ts";
import { lapsedCondition } from "./lapsed-condition.ts";
import { wantedTaints } from "./wanted-taints.ts";

const aNode = (ready: string, spec: object = {}): Stored<Node> =>
  ({
    spec,
    status: { conditions: [{ type: "Ready", status: ready, lastHeartbeatTime: "2026-01-01T00:00:00Z" }] },
  }) as unknown as Stored<Node>;
const keys = (node: Node) => wantedTaints(node).map((t) => t.key.split("/")[1]);

describe("wantedTaints", () => {
  it("follows the condition and the cordon", () => {
    expect(keys(aNode("True"))).toEqual([]);
    expect(keys(aNode("False"))).toEqual(["not-ready"]);
    expect(keys(aNode("Unknown", { unschedulable: true }))).toEqual(["unreachable", "unschedulable"]);
  });
  it("takes its own taints away and leaves those of others", () => {
    const taints = [
      { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" },
      { key: "example.com/mine", effect: "NoSchedule" },
      { key: "node.kubernetes.io/not-ready", effect: "NoExecute" },
    ];
    expect(wantedTaints(aNode("True", { taints }))).toEqual(taints.slice(1));
  });
});

describe("lapsedCondition", () => {
  const now = new Date("2026-01-01T00:01:00Z");
  it("is Unknown once the node has been silent for 40 s", () => {
    expect(lapsedCondition(aNode("True"), 39_999, now)).toBeUndefined();
    expect(lapsedCondition(aNode("True"), 40_000, now)?.status).toBe("Unknown");
    expect(lapsedCondition(aNode("Unknown"), 60_000, now)).toBeUndefined();
  });
});

describe("decideNodeTaintStep", () => {
  const decide = pureDecision(decideNodeTaintStep);
  const taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
  const cordoned = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
  it.each([
    ["a node that is ready", aNode("True"), { step: "settle" }],
    ["a node that is not", aNode("False"), { step: "writeTaints", taints: [taint] }],
    ["a node that shows it", aNode("False", { taints: [taint] }), { step: "settle" }],
    ["a node that has recovered", aNode("True", { taints: [taint] }), { step: "writeTaints", taints: [] }],
    ["a cordoned node", aNode("True", { unschedulable: true }), { step: "writeTaints", taints: [cordoned] }],
  ])("%s", (_name, node, expected) => {
    expect(decide({ node })).toEqual(expected);
  });
});

describe("decideNodeLeaseStep", () => {
  const decide = pureDecision(decideNodeLeaseStep);
  const now = new Date("2026-01-01T00:01:00Z");
  it.each([
    ["a lease that holds", aNode("True"), 39_000, { step: "checkLater" }],
    [
      "a lease that has run out",
      aNode("False"),
      40_000,
      { step: "markUnknown", conditions: [{ type: "Ready", status: "Unknown" }] },
    ],
    ["a node that is Unknown already", aNode("Unknown"), 49_000, { step: "checkLater" }],
  ])("%s", (_name, node, silentMs, expected) => {
    expect(decide({ node, silentMs, now })).toMatchObject(expected);
  });
});
