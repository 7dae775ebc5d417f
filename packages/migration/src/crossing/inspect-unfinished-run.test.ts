/** What a run leaves that did not come to its end, and which nodes may be uncordoned. */
import type { CSINode, KubeObject } from "@longshore/kube";
import { expect, test } from "vitest";
import { inspectUnfinishedRun, whyKeptCordoned } from "./inspect-unfinished-run.ts";
import type { GateValues } from "./platform.ts";
import { aCluster, fakePlatform, subject } from "./testing/fake-cluster.ts";

const on: GateValues = { CSIMigration: true, CSIMigrationAWS: true };
const off: GateValues = { CSIMigration: true, CSIMigrationAWS: false };
const listing = { "storage.alpha.kubernetes.io/migrated-plugins": subject.inTreeName };
const csiNode = (annotations: Record<string, string>): CSINode => ({
  metadata: { name: "n1", annotations },
  spec: { drivers: [{ name: subject.driverName, nodeID: "i" }] },
});

test.each<
  readonly [string, GateValues | undefined, GateValues | undefined, CSINode | undefined, RegExp | undefined]
>([
  ["a node that was not flipped yet", {}, {}, csiNode({}), undefined],
  ["a node that has crossed", on, on, csiNode(listing), undefined],
  ["a node that is down", undefined, on, csiNode({}), /does not say/],
  ["a node whose next start flips it", {}, on, csiNode({}), /about to run with other/],
  [
    "a node that is flipped, and its CSINode does not agree",
    on,
    on,
    csiNode({}),
    /migrated-plugins annotation/,
  ],
  ["a node that went back, and its CSINode does not agree", off, off, csiNode(listing), /to leave/],
  ["a node without a CSINode that is flipped", on, on, undefined, /the CSINode/],
])("%s", (_what, running, configured, csi, words) => {
  const kept = whyKeptCordoned(subject, { running, configured, csiNode: csi });
  if (words === undefined) expect(kept).toBeUndefined();
  else expect(kept).toMatch(words);
});

/** Three nodes: one cordoned by a crossing and safe, one that is about to flip, one of an administrator. */
function aBrokenOffCluster() {
  const { kube, cluster } = aCluster(() => {});
  const node = (name: string, mark: object) =>
    ({ metadata: { name, annotations: mark }, spec: { unschedulable: true } }) as unknown as KubeObject;
  const mark = { "longshore.dev/cordoned-for-crossing": "aws-ebs" };
  cluster.objects.set("nodes", [node("n1", mark), node("n2", mark), node("n3", {})]);
  cluster.objects.set(
    "csinodes",
    ["n1", "n2", "n3"].map((name) => ({ ...csiNode({}), metadata: { name } }) as unknown as KubeObject),
  );
  const platform = {
    ...fakePlatform(),
    controlPlaneGates: async () => on,
    configuredNodeGates: async (name: string) => (name === "n2" ? on : {}),
  };
  return { env: { kube, platform }, cluster };
}

test("without being asked, nothing is changed", async () => {
  const { env, cluster } = aBrokenOffCluster();
  const before = JSON.stringify([...cluster.objects]);
  const left = await inspectUnfinishedRun(env, subject, { uncordon: false }, new AbortController().signal);
  expect(left).toEqual({
    controlPlane: "csi",
    nodes: [
      { name: "n1", served: "in-tree", cordoned: true, uncordoned: false },
      { name: "n2", served: "in-tree", cordoned: true, uncordoned: false },
      { name: "n3", served: "in-tree", cordoned: false, uncordoned: false },
    ],
  });
  expect(JSON.stringify([...cluster.objects])).toBe(before);
});

test("with the option set, it uncordons what is safe, and an administrator's cordon stays", async () => {
  const { env, cluster } = aBrokenOffCluster();
  const left = await inspectUnfinishedRun(env, subject, { uncordon: true }, new AbortController().signal);
  expect(left.nodes).toEqual([
    { name: "n1", served: "in-tree", cordoned: false, uncordoned: true },
    {
      name: "n2",
      served: "in-tree",
      cordoned: true,
      uncordoned: false,
      kept: "its agent is about to run with other feature gates",
    },
    { name: "n3", served: "in-tree", cordoned: false, uncordoned: false },
  ]);
  const unschedulable = cluster.objects
    .get("nodes")
    ?.map((n) => (n as { spec?: { unschedulable?: boolean } }).spec?.unschedulable);
  expect(unschedulable).toEqual([undefined, true, true]);
});
