import { describe, expect, it } from "vitest";
import type { CountedCall } from "../cluster/observed-cluster.ts";
import { csiCallsInWindows, gapsInProof, inTreeCallsInWindows, type PlacedMark } from "./call-window.ts";

const plugin = "kubernetes.io/aws-ebs";
const call = (seq: number, path: "in-tree" | "csi", instanceId?: string): CountedCall => ({
  seq,
  path,
  instanceId,
});
const marks: PlacedMark[] = [
  { mark: { kind: "nodeMigrated", plugin, nodeName: "a" }, seq: 10 },
  { mark: { kind: "nodeMigrated", plugin, nodeName: "b" }, seq: 20 },
  { mark: { kind: "clusterMigrated", plugin }, seq: 20 },
  { mark: { kind: "clusterReturning", plugin }, seq: 30 },
  { mark: { kind: "nodeReturning", plugin, nodeName: "b" }, seq: 40 },
  { mark: { kind: "nodeReturning", plugin, nodeName: "a" }, seq: 50 },
];
const wrong = (...calls: CountedCall[]) =>
  inTreeCallsInWindows(calls, marks, (node) => `i-${node}`).map((c) => c.seq);

describe("inTreeCallsInWindows", () => {
  it("counts a node's in-tree calls from its flip until it begins to return", () => {
    expect(wrong(call(10, "in-tree", "i-a"), call(11, "in-tree", "i-a"), call(11, "csi", "i-a"))).toEqual([
      11,
    ]);
    expect(wrong(call(35, "in-tree", "i-b"), call(41, "in-tree", "i-b"), call(45, "in-tree", "i-a"))).toEqual(
      [35, 45],
    );
  });
  it("lets a node that has not flipped go in-tree", () => {
    expect(wrong(call(15, "in-tree", "i-b"), call(15, "in-tree", "i-c"))).toEqual([]);
  });
  it("counts every in-tree call, of any node or none, while the whole cluster is migrated", () => {
    expect(
      wrong(call(25, "in-tree", undefined), call(26, "in-tree", "i-c"), call(31, "in-tree", undefined)),
    ).toEqual([25, 26]);
  });
});

describe("what makes the count a proof", () => {
  const calls = [call(1, "in-tree", "i-a"), call(12, "csi", "i-a"), call(60, "csi", "i-a")];

  it("sees the driver's calls in the windows", () => {
    expect(csiCallsInWindows(calls, marks, (node) => `i-${node}`).map((c) => c.seq)).toEqual([12]);
  });
  it("has no gap when every window was opened and closed and no call was dropped", () => {
    expect(gapsInProof(calls, marks, ["a", "b"])).toEqual([]);
  });
  it("names the marks that were not made", () => {
    expect(gapsInProof(calls, marks, ["a", "c"])).toHaveLength(2);
    expect(gapsInProof(calls, [], [])).toHaveLength(2);
  });
  it("names a log that has dropped its first calls, or holds none", () => {
    expect(gapsInProof(calls.slice(1), marks, ["a", "b"])).toHaveLength(1);
    expect(gapsInProof([], marks, ["a", "b"])).toHaveLength(1);
  });
});
