/** Each rule of docs/behaviour/controllers.md Part C, as a row of a table. */
import { parseQuantity } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { asksForMore, decideExpandStep, type ExpandObservation } from "./decide-expand-step.ts";

const decide = pureDecision(decideExpandStep);
const now = "2026-01-01T00:00:00Z";
const resizer = "volume.kubernetes.io/storage-resizer";
const ebs = "kubernetes.io/aws-ebs";

function claim(given: { annotations?: Record<string, string>; status?: object; request?: string } = {}) {
  return {
    metadata: {
      name: "a",
      namespace: "default",
      uid: "claim-uid",
      resourceVersion: "1",
      ...(given.annotations === undefined ? {} : { annotations: given.annotations }),
    },
    spec: { volumeName: "pv-a", resources: { requests: { storage: given.request ?? "8Gi" } } },
    status: { phase: "Bound" as const, capacity: { storage: "5Gi" }, ...given.status },
  };
}

function volume(spec: object = {}) {
  return {
    metadata: { name: "pv-a", uid: "pv-uid", resourceVersion: "1" },
    spec: { claimRef: { uid: "claim-uid" }, capacity: { storage: "5Gi" }, ...spec },
  };
}

const plugin = (requiresFSResize = true) => ({
  kind: "in-tree" as const,
  plugin: {
    pluginName: ebs,
    requiresFSResize: () => requiresFSResize,
    expandVolumeDevice: async () => 0n,
  },
});
const external = { kind: "external" as const, inTreePlugin: ebs, driver: "ebs.csi.aws.com" };
const resizing = { type: "Resizing", status: "True", lastTransitionTime: now };
const other = { type: "Other", status: "True", lastTransitionTime: "2025-01-01T00:00:00Z" };
const marked = claim({ annotations: { [resizer]: ebs }, status: { conditions: [resizing] } });
const grown = volume({ capacity: { storage: "8Gi" } });

function observed(given: Partial<ExpandObservation>): ExpandObservation {
  return { claim: claim(), volume: volume(), expander: plugin(), now, ...given };
}

describe("the objects do not fit together", () => {
  it.each([
    ["no volume", { volume: undefined }, "claim default/a: volume pv-a does not exist"],
    [
      "a volume of another claim",
      { volume: volume({ claimRef: { uid: "another" } }) },
      "claim default/a: volume pv-a is not bound to it (claimRef differs)",
    ],
    [
      "a volume of no claim, migrated or not",
      { volume: volume({ claimRef: undefined }), expander: external },
      "claim default/a: volume pv-a is not bound to it (claimRef differs)",
    ],
  ])("%s", (_name, given, message) => {
    expect(decide(observed(given))).toEqual({ step: "refuse", message });
  });
});

describe("an external expander", () => {
  const annotated = claim({ annotations: { [resizer]: "ebs.csi.aws.com" } });
  it.each([
    ["is reported first", {}, { step: "report", type: "Normal", reason: "ExternalExpanding" }],
    ["is then named", { isReported: true }, { step: "annotateResizer", resizer: "ebs.csi.aws.com" }],
    ["is named once", { isReported: true, claim: annotated }, { step: "settle" }],
    [
      "takes over from the in-tree plugin",
      { isReported: true, claim: marked },
      { step: "annotateResizer", resizer: "ebs.csi.aws.com" },
    ],
    [
      "could not be named: that is reported",
      { failure: { error: new Error("refused") } },
      {
        step: "report",
        type: "Warning",
        reason: "ExternalExpanding",
        message: "Error setting resizer annotation to pvc default/a, with error refused",
      },
    ],
    [
      "could not be named: the pass fails",
      { failure: { error: "refused" }, isReported: true },
      { step: "fail", error: "refused" },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(observed({ expander: external, ...given }))).toMatchObject(step);
  });
});

it.each(["Normal", "Warning"] as const)("without an expander there is only an event (%s)", (eventType) => {
  const without = observed({ expander: { kind: "none", eventType } });
  expect(decide(without)).toMatchObject({ step: "report", type: eventType, reason: "ExternalExpanding" });
  expect(decide({ ...without, isReported: true })).toEqual({ step: "settle" });
});

describe("in-tree", () => {
  it.each([
    [
      "annotation and condition are stored before the device grows",
      {},
      { step: "markResizing", resizer: ebs, conditions: [resizing] },
    ],
    [
      "conditions of others stay",
      { claim: claim({ annotations: { [resizer]: ebs }, status: { conditions: [other] } }) },
      { step: "markResizing", conditions: [other, resizing] },
    ],
    [
      "a mark of another expander is replaced",
      { claim: claim({ annotations: { [resizer]: "x" }, status: { conditions: [resizing] } }) },
      { step: "markResizing", resizer: ebs },
    ],
    ["a marked claim is not marked again", { claim: marked }, { step: "expandDevice" }],
    ["nor one that this pass has marked", { isMarked: true }, { step: "expandDevice" }],
    [
      "a device that could not grow is reported",
      { claim: marked, failure: { error: new Error("quota") } },
      {
        step: "report",
        type: "Warning",
        reason: "VolumeResizeFailed",
        message: `error expanding volume "default/a" of plugin "${ebs}": quota`,
      },
    ],
    [
      "and tried again",
      { claim: marked, failure: { error: "quota" }, isReported: true },
      { step: "fail", error: "quota" },
    ],
    [
      "the size of the device goes into the volume first",
      { claim: marked, grownTo: "8Gi" },
      { step: "storeCapacity", storage: "8Gi" },
    ],
    [
      "the size may be more than was asked for",
      { claim: marked, grownTo: "10Gi", volume: grown },
      { step: "storeCapacity", storage: "10Gi" },
    ],
    [
      "a device that grew less than asked is not asked again in this pass",
      { claim: marked, grownTo: "6Gi", volume: volume({ capacity: { storage: "6Gi" } }) },
      { step: "markFileSystemResizePending" },
    ],
    [
      "a grown device waits for its file system",
      { claim: marked, volume: grown },
      { step: "markFileSystemResizePending", conditions: [{ type: "FileSystemResizePending" }] },
    ],
    [
      "a block volume is done",
      { claim: marked, volume: volume({ capacity: { storage: "8Gi" }, volumeMode: "Block" }) },
      { step: "storeClaimCapacity", storage: "8Gi", conditions: [] },
    ],
    [
      "so is a volume whose plugin grows no file system",
      { claim: marked, volume: grown, expander: plugin(false) },
      { step: "storeClaimCapacity", storage: "8Gi", conditions: [] },
    ],
    [
      "what is done is reported",
      { isFinished: true },
      { step: "report", type: "Normal", reason: "VolumeResizeSuccessful" },
    ],
    ["once", { isFinished: true, isReported: true }, { step: "settle" }],
  ])("%s", (_name, given, step) => {
    expect(decide(observed(given))).toMatchObject(step);
  });

  it("the device is asked for what the claim asks for", () => {
    const step = decide(observed({ claim: marked }));
    if (step.step !== "expandDevice") throw new Error(step.step);
    expect([step.from.toBytes(), step.to.toBytes()]).toEqual([
      parseQuantity("5Gi").toBytes(),
      parseQuantity("8Gi").toBytes(),
    ]);
  });
});

it.each([
  ["bound, more than it has", claim(), true],
  ["bound, as much as it has", claim({ request: "5Gi" }), false],
  ["not bound", claim({ status: { phase: "Pending" } }), false],
])("a claim asks for more: %s", (_name, given, asks) => {
  expect(asksForMore(given)).toBe(asks);
});
