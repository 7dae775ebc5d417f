/** Which pods are removed without their agent, as a table: KEP-2268, pods of nodes that are gone. */
import type { Node, Pod, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { decidePodRemovalStep } from "./decide-pod-removal-step.ts";

const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const pod = (metadata: object = {}, spec: object = { nodeName: "n1" }) =>
  ({
    metadata: { name: "p", namespace: "default", uid: "1", resourceVersion: "1", ...metadata },
    spec: { containers: [], ...spec },
  }) as Stored<Pod>;
const node = (effect: string | undefined, ready = "Unknown") =>
  ({
    metadata: { name: "n1", uid: "1", resourceVersion: "1" },
    spec:
      effect === undefined
        ? {}
        : { taints: [{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect }] },
    status: { conditions: [{ type: "Ready", status: ready }] },
  }) as Stored<Node>;
const tolerating = (more: object) => ({
  nodeName: "n1",
  tolerations: [{ key: "node.kubernetes.io/out-of-service", operator: "Exists", ...more }],
});

it.each<
  [
    string,
    Stored<Pod>,
    Stored<Node> | undefined,
    "removePod" | "settle" | "waitForNode",
    missingForMs?: number,
  ]
>([
  ["a pod of a healthy node", pod(), node(undefined, "True"), "settle"],
  ["one that its agent is ending", pod(deleted), node(undefined, "True"), "settle"],
  ["one of a silent node without the taint", pod(deleted), node(undefined), "settle"],
  ["one of a node that is out of service", pod(), node("NoExecute"), "removePod"],
  ["a deleted one of such a node", pod(deleted), node("NoExecute"), "removePod"],
  ["one of a node with the taint that is Ready", pod(deleted), node("NoExecute", "True"), "settle"],
  ["NoSchedule evicts none", pod(), node("NoSchedule"), "settle"],
  ["and frees what is being deleted", pod(deleted), node("NoSchedule"), "removePod"],
  ["one that tolerates the taint", pod({}, tolerating({})), node("NoExecute"), "settle"],
  ["for a while only", pod({}, tolerating({ tolerationSeconds: 300 })), node("NoExecute"), "removePod"],
  ["another effect", pod({}, tolerating({ effect: "NoSchedule" })), node("NoExecute"), "removePod"],
  ["one that was deleted before it had a node", pod(deleted, {}), undefined, "removePod"],
  ["one that waits for a node", pod({}, {}), undefined, "settle"],
  ["one whose node has just been deleted", pod(), undefined, "waitForNode"],
  ["and is missing a moment before its time", pod(deleted), undefined, "waitForNode", 39_999],
  ["one whose node is gone", pod(), undefined, "removePod", 40_000],
])("%s", (_name, of, on, step, missingForMs = 0) => {
  expect(pureDecision(decidePodRemovalStep)({ pod: of, node: on, missingForMs }).step).toBe(step);
});
