import type { PersistentVolumeClaim } from "@longshore/kube";
import { storageResizerAnnotation } from "@longshore/storage";
import { expect, it } from "vitest";
import { shouldLook } from "./resize-triggers.ts";

const claim = (
  over: {
    request?: string;
    has?: string;
    phase?: string;
    resizer?: string;
    state?: string;
    label?: string;
  } = {},
): PersistentVolumeClaim => ({
  metadata: {
    labels: { label: over.label ?? "" },
    annotations: over.resizer === undefined ? {} : { [storageResizerAnnotation]: over.resizer },
  },
  spec: { volumeName: "pv-1", resources: { requests: { storage: over.request ?? "5Gi" } } },
  status: {
    phase: over.phase ?? "Bound",
    capacity: { storage: over.has ?? "1Gi" },
    ...(over.state === undefined ? {} : { allocatedResourceStatuses: { storage: over.state } }),
  },
});

it.each<[string, PersistentVolumeClaim, PersistentVolumeClaim, boolean]>([
  ["more is asked for", claim({ request: "1Gi" }), claim(), true],
  ["less is asked for, but more than there is", claim({ request: "9Gi" }), claim(), true],
  ["the request is taken back", claim(), claim({ request: "1Gi" }), false],
  ["a resizer is named", claim(), claim({ resizer: "d" }), true],
  ["it is bound", claim({ phase: "Pending" }), claim(), true],
  ["it has grown, but not enough", claim(), claim({ has: "2Gi" }), true],
  ["it has grown", claim(), claim({ has: "5Gi" }), false],
  [
    "a node has given up",
    claim({ state: "NodeResizeInProgress" }),
    claim({ state: "NodeResizeInfeasible" }),
    true,
  ],
  ["we have begun", claim(), claim({ state: "ControllerResizeInProgress" }), false],
  [
    "we have failed",
    claim({ state: "ControllerResizeInProgress" }),
    claim({ state: "ControllerResizeInfeasible" }),
    false,
  ],
  ["something else has changed", claim(), claim({ label: "new" }), false],
])("a claim is looked at when %s: %#", (_, before, after, looked) => {
  expect(shouldLook(before, after)).toBe(looked);
});
