/** What a ReplicaSet does with its pods, as a table. */
import type { Pod, ReplicaSet, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideReplicaSetStep, deletionOrder, type ObservedReplicaSet } from "./plan-replica-set.ts";

const decide = pureDecision(decideReplicaSetStep);
const now = new Date("2026-01-01T00:00:10Z");
const labels = { app: "a" };
const aSet = (replicas: number, more: object = {}): Stored<ReplicaSet> =>
  ({
    metadata: { name: "s", namespace: "ns", uid: "s", generation: 3, ...more },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels } } },
  }) as unknown as Stored<ReplicaSet>;
const aPod = (name: string, { ready = true, ...more }: { ready?: boolean; [field: string]: unknown } = {}) =>
  ({
    metadata: {
      name,
      uid: name,
      labels,
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...(more.metadata as object),
    },
    spec: { nodeName: "n", ...(more.spec as object) },
    status: {
      phase: "Running",
      conditions: [
        { type: "Ready", status: ready ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:08Z" },
      ],
      ...(more.status as object),
    },
  }) as unknown as Stored<Pod>;

/** The steps of a whole pass. */
function passOf(over: Partial<ObservedReplicaSet>): string[] {
  const observed: ObservedReplicaSet = { set: aSet(1), pods: [], orphans: [], now, done: 0, ...over };
  for (let done = 0, steps: string[] = []; ; done++) {
    const step = decide({ ...observed, done });
    if (step.step === "settle") return [...steps, "settle"];
    if (step.step === "reportStatus") {
      const { replicas, readyReplicas, availableReplicas } = step.status;
      return [...steps, `report ${replicas} ${readyReplicas} ${availableReplicas}`];
    }
    steps.push(step.step === "createPod" ? "create" : `${step.step} ${step.pod.metadata.name}`);
  }
}

describe("a pass", () => {
  const others = { metadata: { labels: { app: "b" } } };
  const gone = { status: { phase: "Failed" } };
  const going = { metadata: { labels, deletionTimestamp: "now" } };
  it.each<[string, Partial<ObservedReplicaSet>, string[]]>([
    ["makes what is missing", { set: aSet(2) }, ["create", "create", "report 0 0 0"]],
    [
      "deletes what is too much",
      { set: aSet(1), pods: [aPod("a"), aPod("b")] },
      ["deletePod a", "report 2 2 2"],
    ],
    ["replaces a pod that has come to its end", { pods: [aPod("a", gone)] }, ["create", "report 0 0 0"]],
    ["and one that is being deleted", { pods: [aPod("a", going)] }, ["create", "report 0 0 0"]],
    ["adopts a pod that nothing owns", { orphans: [aPod("o")] }, ["adoptPod o", "report 1 1 1"]],
    ["but none that has ended", { orphans: [aPod("o", gone)] }, ["create", "report 0 0 0"]],
    ["nor one with other labels", { orphans: [aPod("o", others)] }, ["create", "report 0 0 0"]],
    [
      "releases a pod whose labels have changed",
      { pods: [aPod("a", others)] },
      ["releasePod a", "create", "report 0 0 0"],
    ],
    [
      "makes nothing while it is being deleted",
      { set: aSet(2, { deletionTimestamp: "now" }) },
      ["report 0 0 0"],
    ],
  ])("%s", (_name, over, expected) => expect(passOf(over)).toEqual(expected));

  it("counts a pod as available after its time, and looks again then", () => {
    const set = { ...aSet(1), spec: { ...aSet(1).spec, minReadySeconds: 5 } } as Stored<ReplicaSet>;
    const observed = { set, pods: [aPod("a")], orphans: [], now, done: 0 };
    expect(decide(observed)).toMatchObject({
      step: "reportStatus",
      status: { availableReplicas: 0 },
      nextMs: 3000,
    });
  });
});

it("what serves least is deleted first", () => {
  const pods = [
    aPod("old"),
    aPod("new", { metadata: { creationTimestamp: "2026-01-01T00:00:05Z" } }),
    aPod("costly", { metadata: { annotations: { "controller.kubernetes.io/pod-deletion-cost": "5" } } }),
    aPod("unready", { ready: false }),
    aPod("pending", { ready: false, status: { phase: "Pending" } }),
    aPod("nowhere", { ready: false, status: { phase: "Pending" }, spec: { nodeName: undefined } }),
  ];
  expect(deletionOrder(pods).map(({ metadata }) => metadata.name)).toEqual([
    "nowhere",
    "pending",
    "unready",
    "new",
    "old",
    "costly",
  ]);
});
