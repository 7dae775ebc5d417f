import { describe, expect, it } from "vitest";
import type { CountedCall } from "../cluster/observed-cluster.ts";
import {
  csiCallsInWindows,
  gapsInProof,
  inTreeCallsInWindows,
  isListingOfRestart,
  type PlacedMark,
} from "./call-window.ts";

const plugin = "kubernetes.io/aws-ebs";
const call = (seq: number, path: "in-tree" | "csi", instanceId?: string): CountedCall => ({
  seq,
  path,
  instanceId,
  component: "test",
  op: "attachDisk",
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
  it("counts no call at another plugin's provider, whose crossing is its own", () => {
    const gce = (seq: number, instanceId?: string) => ({
      ...call(seq, "in-tree", instanceId),
      provider: "gce-pd" as const,
    });
    expect(wrong(gce(11, "i-a"), gce(25), { ...call(25, "in-tree"), provider: "aws-ebs" })).toEqual([25]);
    const both: PlacedMark[] = [
      { mark: { kind: "nodeMigrated", plugin: "kubernetes.io/gce-pd", nodeName: "a" }, seq: 10 },
      { mark: { kind: "nodeReturning", plugin, nodeName: "a" }, seq: 20 },
      { mark: { kind: "nodeReturning", plugin: "kubernetes.io/gce-pd", nodeName: "a" }, seq: 30 },
    ];
    const counted = inTreeCallsInWindows(
      [gce(15, "i-a"), gce(25, "i-a"), gce(35, "i-a")],
      both,
      (n) => `i-${n}`,
    );
    expect(counted.map(({ seq }) => seq)).toEqual([15, 25]);
  });
  it("counts every in-tree call, of any node or none, while the whole cluster is migrated", () => {
    expect(
      wrong(call(25, "in-tree", undefined), call(26, "in-tree", "i-c"), call(31, "in-tree", undefined)),
    ).toEqual([25, 26]);
  });
});

it("knows the listings of a restarted controller from calls that do something", () => {
  const of = (component: string, op: string) => ({ ...call(1, "in-tree"), component, op });
  expect(isListingOfRestart(of("attach-detach-controller", "listDisks"))).toBe(true);
  expect(isListingOfRestart(of("attach-detach-controller", "detachDisk"))).toBe(false);
  expect(isListingOfRestart(of("expand-controller", "listDisks"))).toBe(false);
});

describe("what makes the count a proof", () => {
  const calls = [call(1, "in-tree", "i-a"), call(12, "csi", "i-a"), call(60, "csi", "i-a")];

  it("sees the driver's calls in the windows", () => {
    expect(csiCallsInWindows(calls, marks, (node) => `i-${node}`).map((c) => c.seq)).toEqual([12]);
  });
  it("has no gap when every window was opened and closed and no call was dropped", () => {
    expect(gapsInProof(calls, marks, ["a", "b"], [plugin])).toEqual([]);
  });
  it("names the marks that were not made", () => {
    expect(gapsInProof(calls, marks, ["a", "c"], [plugin])).toHaveLength(2);
    expect(gapsInProof(calls, [], [], [plugin])).toHaveLength(2);
    expect(gapsInProof(calls, marks, ["a", "b"], [plugin, "kubernetes.io/rbd"])).toHaveLength(6);
  });
  it("names a log that has dropped its first calls, or holds none", () => {
    expect(gapsInProof(calls.slice(1), marks, ["a", "b"], [plugin])).toHaveLength(1);
    expect(gapsInProof([], marks, ["a", "b"], [plugin])).toHaveLength(1);
  });
});
