import { CsiCallError } from "@longshore/csi";
import type { CSINode, PersistentVolume, Stored, VolumeAttachment } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { type AttachStep, decideAttachStep } from "./decide-attach-step.ts";
import type { ObservedAttachment } from "./observed-attachment.ts";

const driverName = "ebs.csi.aws.com";
const finalizer = "external-attacher/ebs-csi-aws-com";
const decide = pureDecision(decideAttachStep);

const attachment = (
  given: {
    readonly attached?: boolean;
    readonly deleting?: boolean;
    readonly finalizers?: string[];
    readonly nodeId?: string;
    readonly source?: VolumeAttachment["spec"]["source"];
  } = {},
) =>
  ({
    metadata: {
      name: "va",
      uid: "u",
      resourceVersion: "7",
      ...(given.finalizers === undefined ? {} : { finalizers: given.finalizers }),
      ...(given.nodeId === undefined
        ? {}
        : { annotations: { "csi.alpha.kubernetes.io/node-id": given.nodeId } }),
      ...(given.deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      attacher: driverName,
      nodeName: "node-a",
      source: given.source ?? { persistentVolumeName: "pv-1" },
    },
    ...(given.attached === undefined ? {} : { status: { attached: given.attached } }),
  }) as Stored<VolumeAttachment>;

const secretRef = { name: "cloud", namespace: "kube-system" };
const volume = (
  given: {
    readonly finalizers?: string[];
    readonly deleting?: boolean;
    readonly secret?: boolean;
    readonly spec?: object;
  } = {},
) =>
  ({
    metadata: {
      name: "pv-1",
      uid: "v",
      resourceVersion: "3",
      finalizers: given.finalizers ?? [finalizer],
      ...(given.deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      csi: {
        driver: driverName,
        volumeHandle: "vol-1",
        ...(given.secret ? { controllerPublishSecretRef: secretRef } : {}),
      },
      ...given.spec,
    },
  }) as Stored<PersistentVolume>;

const csiNode: CSINode = {
  metadata: { name: "node-a" },
  spec: { drivers: [{ name: driverName, nodeID: "i-1", topologyKeys: [] }] },
};

const observed = (over: Partial<ObservedAttachment> = {}): ObservedAttachment => ({
  attachment: attachment(),
  volume: volume(),
  isVolumeReleased: false,
  csiNode,
  isForced: false,
  rules: {
    driverName,
    finalizer,
    defaultFsType: "",
    publishesReadonly: false,
    singleNodeMultiWriter: false,
    readsAnnouncedNodeIds: true,
  },
  progress: {},
  ...over,
});

const intended = { finalizers: [finalizer], nodeId: "i-1" };
const deleted = { ...intended, deleting: true };
const inline = { source: { inlineVolumeSpec: volume().spec ?? {} } };
const failure = { error: new CsiCallError("ControllerPublishVolume", "INTERNAL", "no", { answered: true }) };

type Row = readonly [string, Partial<ObservedAttachment>, AttachStep["step"]];

describe("the step for an attachment", () => {
  it.each<Row>([
    // 3.1, 1
    ["an attached one is done", { attachment: attachment({ ...intended, attached: true }) }, "settle"],
    [
      "unless the driver's list says otherwise",
      { attachment: attachment({ ...intended, attached: true }), isForced: true },
      "publish",
    ],
    // 3.1, 2
    ["its volume is held first", { volume: volume({ finalizers: ["other/f"] }) }, "addVolumeFinalizer"],
    [
      "a volume that is being released is not held by its cached finalizer",
      { isVolumeReleased: true },
      "waitForVolumeRelease",
    ],
    [
      "an inline volume has nothing to hold",
      { attachment: attachment(inline), volume: undefined },
      "storeIntent",
    ],
    // 3.1, 3
    ["the secret is read before the intent is stored", { volume: volume({ secret: true }) }, "readSecret"],
    ["once", { volume: volume({ secret: true }), progress: { secrets: { token: "x" } } }, "storeIntent"],
    ["a node without a CSINode may announce its id", { csiNode: undefined }, "readAnnouncedNodeId"],
    [
      "and is attached to by it",
      { csiNode: undefined, progress: { announced: { nodeId: "i-9" } } },
      "storeIntent",
    ],
    [
      "what the attachment remembers does not count for attaching",
      { csiNode: undefined, attachment: attachment(intended) },
      "readAnnouncedNodeId",
    ],
    // 3.1, 4
    ["the intent is stored before the call", {}, "storeIntent"],
    [
      "also where only the node id is missing",
      { attachment: attachment({ finalizers: [finalizer] }) },
      "storeIntent",
    ],
    [
      "also where the node id is another",
      { attachment: attachment({ ...intended, nodeId: "i-0" }) },
      "storeIntent",
    ],
    // 3.1, 5 and 6
    ["the intent is stored", { attachment: attachment(intended) }, "publish"],
    ["also after a failure", { attachment: attachment({ ...intended, attached: false }) }, "publish"],
    [
      "the answer is stored",
      { attachment: attachment(intended), progress: { publishContext: {} } },
      "reportAttached",
    ],
    [
      "and that is all",
      { attachment: attachment(intended), progress: { publishContext: {}, isReported: true } },
      "settle",
    ],
    // 3.2, 1
    [
      "a deleted one without our finalizer was never published",
      { attachment: attachment({ deleting: true, finalizers: ["other/f"] }) },
      "settle",
    ],
    [
      "unless the driver's list says otherwise",
      { attachment: attachment({ deleting: true, finalizers: ["other/f"] }), isForced: true },
      "unpublish",
    ],
    // 3.2, 2 and 3
    ["a deleted one is unpublished", { attachment: attachment(deleted) }, "unpublish"],
    [
      "also when it never said attached",
      { attachment: attachment({ ...deleted, attached: false }) },
      "unpublish",
    ],
    [
      "also when its volume is being deleted",
      { attachment: attachment(deleted), volume: volume({ deleting: true }) },
      "unpublish",
    ],
    ["with the secret", { attachment: attachment(deleted), volume: volume({ secret: true }) }, "readSecret"],
    ["by the id it remembers", { attachment: attachment(deleted), csiNode: undefined }, "unpublish"],
    [
      "or the announced one",
      { attachment: attachment({ finalizers: [finalizer], deleting: true }), csiNode: undefined },
      "readAnnouncedNodeId",
    ],
    // 3.2, 4
    [
      "the finalizer goes before the status is cleared",
      { attachment: attachment(deleted), progress: { isUnpublished: true } },
      "removeFinalizer",
    ],
    [
      "the status is cleared where others hold it",
      {
        attachment: attachment({ deleting: true, finalizers: ["other/f"] }),
        progress: { isUnpublished: true },
      },
      "reportDetached",
    ],
    [
      "what nothing holds is gone",
      { attachment: attachment({ deleting: true }), progress: { isUnpublished: true } },
      "settle",
    ],
    [
      "and that is all",
      { attachment: attachment(deleted), progress: { isUnpublished: true, isReported: true } },
      "settle",
    ],
    // 3.1, 6 and 3.2, 5
    ["a failure is emitted", { progress: { failure } }, "emitError"],
    ["then stored", { progress: { failure: { ...failure, isEmitted: true } } }, "reportError"],
    ["then retried", { progress: { failure: { ...failure, isEmitted: true, isReported: true } } }, "fail"],
    [
      "also one after the driver's answer",
      { attachment: attachment(deleted), progress: { isUnpublished: true, failure } },
      "emitError",
    ],
  ])("%s", (_, over, step) => {
    expect(decide(observed(over)).step).toBe(step);
  });

  it.each<readonly [string, Partial<ObservedAttachment>, string]>([
    ["no source", { attachment: attachment({ source: {} }) }, "spec.source is empty"],
    [
      "two sources",
      { attachment: attachment({ source: { persistentVolumeName: "pv-1", ...inline.source } }) },
      "it may have one only",
    ],
    ["no volume", { volume: undefined }, 'PersistentVolume "pv-1" not found'],
    [
      "no volume to detach",
      { attachment: attachment(deleted), volume: undefined },
      'PersistentVolume "pv-1" not found',
    ],
    ["a volume that is being deleted", { volume: volume({ deleting: true }) }, "is marked for deletion"],
    ["access modes that CSI does not have", { volume: volume({ spec: { accessModes: [] } }) }, "access mode"],
    ["a volume without a CSI source", { volume: volume({ spec: { csi: null } }) }, "has no CSI source"],
    [
      "a CSINode without the driver",
      { csiNode: { metadata: { name: "node-a" }, spec: { drivers: [] } } },
      'CSINode "node-a" does not contain driver',
    ],
    [
      "a Node that announces nothing",
      { csiNode: undefined, progress: { announced: { nodeId: undefined } } },
      'CSINode "node-a" not found',
    ],
  ])("is a reported error for %s", (_, over, message) => {
    const step = decide(observed(over));
    expect(step.step).toBe("emitError");
    expect("error" in step && step.error).toMatchObject({ message: expect.stringContaining(message) });
  });

  it("reads nothing from a Node where the reference does not", () => {
    const { rules } = observed();
    const step = decide(observed({ csiNode: undefined, rules: { ...rules, readsAnnouncedNodeIds: false } }));
    expect(step).toMatchObject({ step: "emitError", goal: "attach" });
  });

  it("carries no secret value", () => {
    const progress = { secrets: { token: "hidden" } };
    const over = { attachment: attachment(intended), volume: volume({ secret: true }), progress };
    expect(JSON.stringify(decide(observed(over)))).not.toContain("hidden");
  });
});
