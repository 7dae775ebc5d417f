/** The decision of the operator, as a table. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, test } from "vitest";
import { decideWorkspaceStep, type WorkspaceStep } from "./decide-workspace-step.ts";
import type { Workspace } from "./workspace.ts";

const workspace = (more: Pick<Workspace, "status"> = {}, metadata: object = {}): Stored<Workspace> => ({
  metadata: { name: "ada", namespace: "default", uid: "w", resourceVersion: "1", generation: 2, ...metadata },
  spec: { size: "2Gi" },
  ...more,
});
const claim = (size: string, phase: string, owner = "w"): Stored<PersistentVolumeClaim> => ({
  metadata: {
    name: "ada",
    namespace: "default",
    uid: "c",
    resourceVersion: "1",
    ownerReferences: [{ apiVersion: "example.longshore.dev/v1", kind: "Workspace", name: "ada", uid: owner }],
  },
  spec: { resources: { requests: { storage: size } } },
  status: { phase },
});
const status = (phase: "Pending" | "Ready") => ({ phase, claimName: "ada", observedGeneration: 2 });

const table: readonly [
  string,
  Stored<Workspace>,
  Stored<PersistentVolumeClaim> | undefined,
  WorkspaceStep | WorkspaceStep["step"],
][] = [
  ["no claim yet", workspace(), undefined, "createClaim"],
  ["being deleted, no claim", workspace({}, { deletionTimestamp: "now" }), undefined, "done"],
  ["a claim of another owner", workspace(), claim("2Gi", "Bound", "other"), "refuseForeignClaim"],
  ["a claim that is too small", workspace(), claim("1Gi", "Bound"), { step: "growClaim", size: "2Gi" }],
  ["a larger claim stays", workspace({ status: status("Ready") }), claim("3Gi", "Bound"), "done"],
  [
    "a claim that waits",
    workspace(),
    claim("2Gi", "Pending"),
    { step: "reportStatus", status: status("Pending") },
  ],
  [
    "a claim that is bound",
    workspace(),
    claim("2Gi", "Bound"),
    { step: "reportStatus", status: status("Ready") },
  ],
  ["all is said", workspace({ status: status("Ready") }), claim("2Gi", "Bound"), "done"],
];

test.each(table)("%s", (_name, observedWorkspace, observedClaim, expected) => {
  const step = pureDecision(decideWorkspaceStep)({ workspace: observedWorkspace, claim: observedClaim });
  expect(typeof expected === "string" ? step.step : step).toEqual(expected);
});
