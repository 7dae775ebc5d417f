/** What a DaemonSet does with its pods, as a table. */
import type { DaemonSet, Node, Pod, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { templateHash } from "../pod-sets/pod-from-template.ts";
import { decideDaemonSetStep, type ObservedDaemonSet } from "./decide-daemon-set-step.ts";

const decide = pureDecision(decideDaemonSetStep);
const now = new Date("2026-01-01T00:00:00Z");
const labels = { app: "a" };
const aSet = (spec: object = {}): Stored<DaemonSet> =>
  ({
    metadata: { name: "s", namespace: "ns", uid: "s" },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels } }, ...spec },
  }) as unknown as Stored<DaemonSet>;
const hash = templateHash(aSet().spec?.template);
const aNode = (name: string, spec: object = {}, nodeLabels: object = {}): Stored<Node> =>
  ({ metadata: { name, uid: name, labels: nodeLabels }, spec }) as unknown as Stored<Node>;
const aPod = (
  name: string,
  nodeName: string,
  more: { revision?: string; ready?: boolean; phase?: string; going?: boolean } = {},
) =>
  ({
    metadata: {
      name,
      uid: name,
      labels: { ...labels, "controller-revision-hash": more.revision ?? hash },
      ...(more.going === true ? { deletionTimestamp: "now" } : {}),
    },
    spec: { nodeName },
    status: {
      phase: more.phase ?? "Running",
      conditions: [{ type: "Ready", status: more.ready === false ? "False" : "True" }],
    },
  }) as unknown as Stored<Pod>;

function passOf(over: Partial<ObservedDaemonSet>): string[] {
  const nodes = [aNode("x"), aNode("y")];
  const observed: ObservedDaemonSet = { set: aSet(), pods: [], orphans: [], nodes, now, done: 0, ...over };
  for (let done = 0, steps: string[] = []; ; done++) {
    const step = decide({ ...observed, done });
    if (step.step === "settle" || step.step === "reportStatus") return steps;
    if (step.step === "createPod") {
      const required = step.pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
      steps.push(`create on ${required?.nodeSelectorTerms[0]?.matchFields?.[0]?.values?.[0]}`);
    } else steps.push(`${step.step} ${step.pod.metadata.name}`);
  }
}

describe("a pass", () => {
  const noSchedule = { taints: [{ key: "k", effect: "NoSchedule" }] };
  const cordoned = {
    unschedulable: true,
    taints: [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }],
  };
  const selective = { template: { metadata: { labels }, spec: { nodeSelector: { disk: "ssd" } } } };
  it.each<[string, Partial<ObservedDaemonSet>, string[]]>([
    ["makes a pod on each node", {}, ["create on x", "create on y"]],
    ["that has none", { pods: [aPod("a", "x")] }, ["create on y"]],
    ["not on one with a taint", { nodes: [aNode("x", noSchedule), aNode("y")] }, ["create on y"]],
    ["but on one that is cordoned", { nodes: [aNode("x", cordoned)] }, ["create on x"]],
    [
      "where the selector matches",
      { set: aSet(selective), nodes: [aNode("x"), aNode("y", {}, { disk: "ssd" })] },
      ["create on y"],
    ],
    [
      "takes the pod from a node that it left",
      { nodes: [aNode("y")], pods: [aPod("a", "x"), aPod("b", "y")] },
      ["deletePod a"],
    ],
    [
      "replaces one that has failed",
      { pods: [aPod("a", "x", { phase: "Failed" }), aPod("b", "y")] },
      ["deletePod a"],
    ],
    ["once it is gone", { pods: [aPod("a", "x", { going: true }), aPod("b", "y")] }, []],
    ["keeps one of two", { pods: [aPod("a", "x"), aPod("c", "x"), aPod("b", "y")] }, ["deletePod c"]],
    [
      "replaces old ones one by one",
      { pods: [aPod("a", "x", { revision: "1" }), aPod("b", "y", { revision: "1" })] },
      ["deletePod a"],
    ],
    [
      "waits for the one that was replaced",
      { pods: [aPod("a", "x", { ready: false }), aPod("b", "y", { revision: "1" })] },
      [],
    ],
    [
      "first those that serve nothing",
      { pods: [aPod("a", "x", { revision: "1" }), aPod("b", "y", { revision: "1", ready: false })] },
      ["deletePod b"],
    ],
    [
      "as many as may be missing",
      {
        set: aSet({ updateStrategy: { rollingUpdate: { maxUnavailable: "100%" } } }),
        pods: [aPod("a", "x", { revision: "1" }), aPod("b", "y", { revision: "1" })],
      },
      ["deletePod a", "deletePod b"],
    ],
    [
      "none with OnDelete",
      {
        set: aSet({ updateStrategy: { type: "OnDelete" } }),
        pods: [aPod("a", "x", { revision: "1" }), aPod("b", "y")],
      },
      [],
    ],
  ])("%s", (_name, over, expected) => expect(passOf(over)).toEqual(expected));
});
