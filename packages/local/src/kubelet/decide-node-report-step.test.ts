/** The decision of the status reporter, as a table: docs/behaviour/node-agent.md 8. */
import type { Node, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, test } from "vitest";
import { decideNodeReportStep, type NodeObservation } from "./decide-node-report-step.ts";
import { type NodeIdentity, nodeStatusOf, registeredNode } from "./node-object.ts";

const identity: NodeIdentity = {
  nodeName: "n",
  instanceId: "i-1",
  zone: "a",
  region: "r",
  featureGates: "CSIMigration=true",
  volumeLimitsOf: () => ({}),
};
const now = new Date("2026-01-01T00:00:00Z");
const later = (minutes: number) => new Date(now.getTime() + minutes * 60_000);
const volumes = {
  volumesInUse: ["v"],
  volumesFound: ["v"],
  attachmentsFound: [],
  conditions: [],
  error: undefined,
};

const made = registeredNode(identity, undefined);
const registered = { ...made, metadata: { ...made.metadata, uid: "u" }, status: {} } as Stored<Node>;
const posted = {
  ...registered,
  status: nodeStatusOf(identity, registered, { ...volumes, now }),
} as unknown as Stored<Node>;
const ofOtherGates = registeredNode({ ...identity, featureGates: "" }, undefined) as Stored<Node>;
const readyWithOtherGates = { ...ofOtherGates, status: posted.status } as Stored<Node>;

const table: readonly [string, Partial<NodeObservation>, object][] = [
  ["there is no Node", { node: undefined }, { step: "createNode", node: { metadata: { name: "n" } } }],
  // A Node was deleted while its machine ran. Made again, it named no volume for a while: one whose pod ended then was detached mounted.
  [
    "there is no Node any more: it is made with what is mounted, also before all of volumesInUse is known (contract.md C2)",
    { node: undefined, volumes: { ...volumes, volumesInUse: undefined } },
    { step: "createNode", node: { status: { volumesInUse: ["v"] } } },
  ],
  // The Node was the only record of what a Flexvolume driver had attached. A controller that started then did not know of it.
  [
    "there is no Node any more: it is made with a record of what was found (contract.md C8)",
    {
      node: undefined,
      volumes: { ...volumes, volumesFound: [], attachmentsFound: ["v.io/d/b", "v.io/d/a"] },
    },
    {
      step: "createNode",
      node: {
        metadata: {
          annotations: {
            "longshore.dev/feature-gates": "CSIMigration=true",
            "longshore.dev/volumes-uncertain": "v.io/d/a\nv.io/d/b",
          },
        },
        status: { volumesInUse: [] },
      },
    },
  ],
  [
    "there is no Node, and what is mounted is not read back yet (contract.md C2)",
    { node: undefined, volumes: { ...volumes, volumesInUse: undefined, volumesFound: undefined } },
    { step: "waitForVolumes" },
  ],
  [
    "the Node has the gates of another agent",
    { node: ofOtherGates },
    {
      step: "registerNode",
      node: { metadata: { annotations: { "longshore.dev/feature-gates": "CSIMigration=true" } } },
    },
  ],
  [
    "the Node has the gates of another agent, which was Ready, and the CSINode does not have this one's yet",
    { node: readyWithOtherGates, volumes: { ...volumes, error: "CSINode is not yet initialized" } },
    { step: "postStatus", status: { conditions: [{ type: "Ready", status: "False" }] } },
  ],
  [
    "the same, once that is posted",
    {
      node: readyWithOtherGates,
      volumes: { ...volumes, error: "CSINode is not yet initialized" },
      isPosted: true,
    },
    { step: "registerNode" },
  ],
  ["no status yet", { node: registered }, { step: "postStatus", status: { volumesInUse: ["v"] } }],
  ["what is stored is passed on", {}, { step: "markReportedInUse", volumesInUse: ["v"] }],
  [
    "a volume that came in use",
    { volumes: { ...volumes, volumesInUse: ["v", "w"] } },
    { step: "postVolumesInUse", volumesInUse: ["v", "w"] },
  ],
  [
    "a volume that came in use, with the Node as a pass before has left it",
    { isLive: false, volumes: { ...volumes, volumesInUse: ["v", "w"] } },
    { step: "postVolumesInUse", volumesInUse: ["v", "w"] },
  ],
  [
    "an error, with the Node as a pass before has left it",
    { isLive: false, volumes: { ...volumes, error: "not yet" } },
    { step: "readNode" },
  ],
  [
    "a sign of life is due, with the Node as a pass before has left it",
    { isLive: false, now: later(5) },
    { step: "readNode" },
  ],
  ["nothing is new", { isLive: false }, { step: "markReportedInUse", volumesInUse: ["v"] }],
  [
    "after the post, what is stored counts, whatever it is",
    { isPosted: true, volumes: { ...volumes, volumesInUse: ["v", "w"] } },
    { step: "markReportedInUse", volumesInUse: ["v"] },
  ],
  [
    "which volumes are in use is not known",
    { volumes: { ...volumes, volumesInUse: undefined } },
    { step: "markReportedInUse" },
  ],
  ["a sign of life is due", { now: later(5) }, { step: "postStatus" }],
  ["a sign of life is not due yet", { now: later(4) }, { step: "markReportedInUse" }],
  [
    "its Node is the one that the agent has registered",
    { registeredUid: "u" },
    { step: "markReportedInUse" },
  ],
  ["its Node was deleted", { node: undefined, registeredUid: "u" }, { step: "endAgent" }],
  ["its Node was deleted and made again", { registeredUid: "other" }, { step: "endAgent" }],
  ["the volume side has an error", { volumes: { ...volumes, error: "not yet" } }, { step: "postStatus" }],
];

test.each(table)("%s", (_name, more, expected) => {
  const observed: NodeObservation = {
    identity,
    node: posted,
    isLive: true,
    volumes,
    now,
    registeredUid: undefined,
    isPosted: false,
    ...more,
  };
  expect(pureDecision(decideNodeReportStep)(observed)).toMatchObject(expected);
});
