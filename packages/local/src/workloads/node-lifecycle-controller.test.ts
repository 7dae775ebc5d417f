import type { Node } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { lapsedCondition, wantedTaints } from "./node-lifecycle-controller.ts";

const aNode = (ready: string, spec: object = {}): Node =>
  ({
    spec,
    status: { conditions: [{ type: "Ready", status: ready, lastHeartbeatTime: "2026-01-01T00:00:00Z" }] },
  }) as unknown as Node;
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
  const lease = (renewTime: string) => ({ spec: { renewTime } });
  const now = new Date("2026-01-01T00:01:00Z");
  it("is Unknown once the lease is 40 s old", () => {
    expect(lapsedCondition(aNode("True"), lease("2026-01-01T00:00:30.000000Z"), now)).toBeUndefined();
    expect(lapsedCondition(aNode("True"), lease("2026-01-01T00:00:20.000000Z"), now)?.status).toBe("Unknown");
    expect(lapsedCondition(aNode("Unknown"), lease("2026-01-01T00:00:00.000000Z"), now)).toBeUndefined();
    expect(lapsedCondition(aNode("True"), undefined, now)?.status).toBe("Unknown");
  });
});
