/** Every step of the decision on one disk, and every rule of its sources (docs/behaviour/controllers.md A7, A9). */
import type { Stored, VolumeAttachment } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import type { DiskOperation } from "../disk-operations.ts";
import { decideDisk } from "./decide-disk.ts";
import { volumeAttachmentTimeoutMs } from "./decide-operation.ts";
import type { DiskStep } from "./disk-step.ts";
import type { AttachEvidence, DetachEvidence } from "./live-evidence.ts";
import type { ObservedAttachment, ObservedDemand, ObservedDisk, ObservedOperation } from "./observe-disk.ts";

const decide = pureDecision(decideDisk);
const nowMs = 1_000_000;
const ebs = "kubernetes.io/aws-ebs";
const inTreeName = `${ebs}/vol-a`;
const csiName = "kubernetes.io/csi/ebs.csi.aws.com^vol-a";
const driver = "ebs.csi.aws.com";

/** Confirmed, listed, in-tree, on a node that is there; no pod wants it, and its detach was asked for. */
function attached(fields: Partial<ObservedAttachment> = {}): ObservedAttachment {
  return {
    nodeName: "n1",
    uniqueName: inTreeName,
    isCsi: false,
    isConfirmed: true,
    isReported: true,
    isAsked: true,
    isDetachTried: false,
    detachRequestedAtMs: nowMs - 1_000,
    isShared: false,
    isWanted: false,
    disk: undefined,
    hasPendingPods: false,
    unknown: undefined,
    isWritten: true,
    mayBeMounted: true,
    node: { isOutOfService: false, isReady: false, isInUse: false },
    nodeMissingSinceMs: nowMs - 40_000,
    retryAtMs: 0,
    ...fields,
  };
}

/** Off the list, and that is written: what is left to do is to look and to detach. */
const unlisted = (fields: Partial<ObservedAttachment> = {}) => attached({ isReported: false, ...fields });
/** Wanted, and nothing else to do about it. */
const kept = (fields: Partial<ObservedAttachment> = {}) =>
  attached({ isWanted: true, detachRequestedAtMs: undefined, ...fields });
/** Recorded before an attach. */
const recorded = (fields: Partial<ObservedAttachment> = {}) =>
  kept({ isConfirmed: false, isReported: false, isAsked: false, mayBeMounted: false, ...fields });
const uncertain = (fields: Partial<ObservedAttachment> = {}) => recorded({ isAsked: true, ...fields });

/** A pod on n1 wants it in-tree. */
function wanted(fields: Partial<ObservedDemand> = {}): ObservedDemand {
  return {
    nodeName: "n1",
    uniqueName: inTreeName,
    volumeName: "pv-a",
    isCsi: false,
    isShared: false,
    inTreePlugin: ebs,
    isNodeManaged: true,
    hasPendingPods: false,
    isMultiAttachReported: false,
    isWaitReported: false,
    unlisted: undefined,
    elsewhereByName: [],
    isUnidentified: false,
    isDetachedByName: false,
    retryAtMs: 0,
    ...fields,
  };
}
const wantedByCsi = (fields: Partial<ObservedDemand> = {}) =>
  wanted({ uniqueName: csiName, isCsi: true, ...fields });

function underWay(fields: Partial<DiskOperation>, of: Partial<ObservedOperation> = {}): ObservedOperation {
  return {
    operation: {
      identity: csiName,
      nodeName: "n1",
      isShared: false,
      kind: "attach",
      uniqueName: csiName,
      volume: undefined,
      isMigrated: false,
      isFirst: false,
      startedAtMs: nowMs - 1_000,
      attachmentName: "csi-1",
      sinceVersion: undefined,
      firstVersion: undefined,
      seenAttached: false,
      outcome: undefined,
      ...fields,
    },
    volumeAttachment: undefined,
    isCacheCurrent: true,
    ...of,
  };
}

function aVolumeAttachment(
  status: VolumeAttachment["status"],
  { version = "5", isDeleting = false } = {},
): Stored<VolumeAttachment> {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: {
      name: "csi-1",
      uid: "u",
      resourceVersion: version,
      ...(isDeleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
    ...(status === undefined ? {} : { status }),
  } as Stored<VolumeAttachment>;
}

function disk(fields: Partial<ObservedDisk>): ObservedDisk {
  return {
    identity: csiName,
    nowMs,
    isCompat: false,
    forceDetachAfterMs: undefined,
    attachments: [],
    demands: [],
    operations: [],
    evidence: undefined,
    ...fields,
  };
}

const detachEvidence = (fields: Partial<DetachEvidence> = {}): DetachEvidence => ({
  kind: "before detach",
  nodeName: "n1",
  uniqueName: inTreeName,
  isNodeMissing: false,
  isInUse: false,
  activeDriver: undefined,
  hasVolumeAttachment: false,
  ...fields,
});
const attachEvidence = (fields: Partial<AttachEvidence> = {}): AttachEvidence => ({
  kind: "before attach",
  nodeName: "n1",
  uniqueName: inTreeName,
  isRecorded: true,
  isChangingOver: false,
  hasChangedOver: false,
  volumeAttachment: undefined,
  ...fields,
});
const failedRead = (of: "before detach" | "before attach" | "other nodes", nodeName = "n1") => ({
  kind: "failed" as const,
  of,
  nodeName,
  uniqueName: inTreeName,
  message: "no answer",
});

type Case = readonly [rule: string, observed: Partial<ObservedDisk>, step: Partial<DiskStep>];
const waits = (reason: string, retryInMs?: number) =>
  ({ step: "wait", reason: expect.stringContaining(reason), retryInMs }) as Partial<DiskStep>;
const undecidedVolume = { kind: "undecided", reason: "PVC missing" } as ObservedAttachment["unknown"];
const sixMinutesMs = 360_000;

const detaches: readonly Case[] = [
  ["nothing known, nothing wanted", {}, { step: "forgetDisk" }],
  ["wanted and listed", { attachments: [kept()] }, waits("nothing to do")],
  [
    "wanted again before its detach began",
    { attachments: [kept({ detachRequestedAtMs: 1 })] },
    { step: "keep" },
  ],
  [
    "wanted again after a detach was tried",
    { attachments: [kept({ isDetachTried: true })] },
    { step: "doubt" },
  ],
  [
    "wanted again after it was taken off the list",
    { attachments: [kept({ isReported: false })] },
    { step: "list" },
  ],
  ["uncertain and wanted is not listed", { attachments: [uncertain()] }, waits("nothing to do")],
  [
    "wanted again while its detach is under way",
    {
      attachments: [kept({ isDetachTried: true })],
      operations: [underWay({ kind: "detach", attachmentName: undefined })],
    },
    waits("provider is under way"),
  ],
  [
    "an intent whose pod is gone was asked of no provider",
    { attachments: [recorded({ isWanted: false })] },
    { step: "forgetIntent" },
  ],
  [
    "A7 detach 1: an operation is pending",
    { attachments: [attached()], operations: [underWay({ nodeName: "n2", attachmentName: undefined })] },
    waits("provider is under way"),
  ],
  [
    "of a shared disk an operation on another node is not in the way",
    {
      attachments: [attached({ isShared: true })],
      operations: [underWay({ nodeName: "n2", isShared: true, attachmentName: undefined })],
    },
    { step: "unlist" },
  ],
  [
    "known by its VolumeAttachment alone, and a pod refers to the disk",
    { attachments: [uncertain({ isWanted: false, disk: csiName, hasPendingPods: true })] },
    { step: "identify", disk: csiName },
  ],
  [
    "and not while that is being deleted",
    {
      attachments: [uncertain({ isWanted: false, disk: csiName })],
      operations: [underWay({ kind: "detach" }, { volumeAttachment: aVolumeAttachment(undefined) })],
    },
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "A2: pods of the node are not decided",
    { attachments: [attached({ hasPendingPods: true })] },
    waits("pods on node n1 are not decided"),
  ],
  [
    "unknown is never detached",
    { attachments: [attached({ unknown: undecidedVolume })] },
    waits("PVC missing"),
  ],
  [
    "A7 detach 2: notes since when",
    { attachments: [attached({ detachRequestedAtMs: undefined })] },
    { step: "requestDetach" },
  ],
  [
    "A7 detach 3: the node uses it, for as long as it takes",
    {
      attachments: [attached({ node: { isOutOfService: false, isReady: false, isInUse: true } })],
      nowMs: nowMs + 1e9,
    },
    waits("the node uses it"),
  ],
  [
    "A7 detach 3: until six minutes are over, where that is switched on",
    {
      attachments: [
        attached({
          node: { isOutOfService: false, isReady: false, isInUse: true },
          detachRequestedAtMs: nowMs - sixMinutesMs,
        }),
      ],
      forceDetachAfterMs: sixMinutesMs,
    },
    waits("the node uses it", 1),
  ],
  [
    "A7 detach 2: more than six minutes force it",
    {
      attachments: [
        unlisted({
          node: { isOutOfService: false, isReady: false, isInUse: true },
          detachRequestedAtMs: nowMs - sixMinutesMs - 1,
        }),
      ],
      forceDetachAfterMs: sixMinutesMs,
    },
    { step: "detachInTree", force: "timeout" },
  ],
  [
    "A10: time forces nothing on a node that is Ready",
    {
      attachments: [
        attached({
          node: { isOutOfService: false, isReady: true, isInUse: true },
          detachRequestedAtMs: nowMs - sixMinutesMs - 1,
        }),
      ],
      forceDetachAfterMs: sixMinutesMs,
    },
    waits("the node uses it"),
  ],
  [
    "A10: but under 1.20's behaviour",
    {
      attachments: [
        unlisted({
          node: { isOutOfService: false, isReady: true, isInUse: true },
          detachRequestedAtMs: nowMs - sixMinutesMs - 1,
        }),
      ],
      forceDetachAfterMs: sixMinutesMs,
      isCompat: true,
    },
    { step: "detachInTree", force: "timeout" },
  ],
  [
    "A10: the out-of-service taint forces it",
    { attachments: [unlisted({ node: { isOutOfService: true, isReady: false, isInUse: true } })] },
    { step: "detachInTree", force: "out-of-service" },
  ],
  [
    "A10: on a node that is Ready the taint forces nothing: an agent has come back on a machine that was given up too early",
    { attachments: [unlisted({ node: { isOutOfService: true, isReady: true, isInUse: true } })] },
    { step: "list" },
  ],
  [
    "where the Node was deleted, nothing waits for its status: a controller that starts has none to write",
    { attachments: [unlisted({ isWritten: false, node: undefined })] },
    { step: "readBeforeDetach" },
  ],
  [
    "C2: a Node that was just deleted may be made again by its agent, so nothing is taken from it yet",
    { attachments: [unlisted({ node: undefined, nodeMissingSinceMs: nowMs - 30_000 })] },
    { step: "wait", retryInMs: 10_000 },
  ],
  [
    "compat does not wait for it",
    { attachments: [unlisted({ node: undefined, nodeMissingSinceMs: nowMs })], isCompat: true },
    { step: "readBeforeDetach" },
  ],
  [
    "what was only presumed in-tree is looked up also when forced",
    {
      attachments: [
        unlisted({ isConfirmed: false, node: { isOutOfService: true, isReady: false, isInUse: true } }),
      ],
    },
    { step: "readBeforeDetach", asksNode: false, asksVolumeAttachment: true },
  ],
  [
    "the node uses it since it was taken off the list: it is listed again",
    { attachments: [unlisted({ node: { isOutOfService: false, isReady: false, isInUse: true } })] },
    { step: "list" },
  ],
  [
    "it could be an unknown volume since it was taken off the list",
    { attachments: [unlisted({ unknown: undecidedVolume })] },
    { step: "list" },
  ],
  ["a failed detach waits", { attachments: [attached({ retryAtMs: nowMs + 500 })] }, waits("back-off", 500)],
  ["A7 detach 4: off the list", { attachments: [attached()] }, { step: "unlist" }],
  [
    "A7 detach 5: not before the status is written",
    { attachments: [unlisted({ isWritten: false })] },
    waits("the status of node n1 is not written"),
  ],
  [
    "A7 detach 6: the node is asked, live",
    { attachments: [unlisted()] },
    { step: "readBeforeDetach", asksNode: true, asksVolumeAttachment: false },
  ],
  [
    "evidence of another attachment is none",
    { attachments: [unlisted()], evidence: { detach: detachEvidence({ nodeName: "n2" }) } },
    { step: "readBeforeDetach" },
  ],
  [
    "the node uses it, by the live look",
    { attachments: [unlisted()], evidence: { detach: detachEvidence({ isInUse: true }) } },
    { step: "refuseDetach", message: `volume ${inTreeName} is still in use by node n1`, isNodeEvent: false },
  ],
  [
    "the CSINode is missing although the driver is at work",
    { attachments: [unlisted()], evidence: { detach: detachEvidence({ activeDriver: driver }) } },
    {
      step: "refuseDetach",
      message: expect.stringContaining("its CSINode is missing") as string,
      isNodeEvent: true,
    },
  ],
  [
    "the API server does not answer",
    { attachments: [unlisted()], evidence: { detach: failedRead("before detach") } },
    { step: "refuseDetach", message: "no answer", isNodeEvent: false },
  ],
  [
    "0019: CSI has the disk that was only presumed in-tree",
    {
      attachments: [unlisted({ isConfirmed: false })],
      evidence: { detach: detachEvidence({ hasVolumeAttachment: true }) },
    },
    { step: "leaveToCsi" },
  ],
  [
    "in-tree is detached in-tree (C1)",
    { attachments: [unlisted()], evidence: { detach: detachEvidence() } },
    { step: "detachInTree", force: undefined },
  ],
  [
    "CSI is detached by CSI (C1)",
    {
      attachments: [unlisted({ uniqueName: csiName, isCsi: true })],
      evidence: { detach: detachEvidence({ uniqueName: csiName }) },
    },
    { step: "deleteVolumeAttachment", force: undefined },
  ],
  [
    "a node that is gone holds nothing",
    {
      attachments: [unlisted({ node: undefined })],
      evidence: { detach: detachEvidence({ isNodeMissing: true }) },
    },
    { step: "detachInTree" },
  ],
  [
    "C2: of a Node whose deletion the cache has not seen yet, it is not known for how long it has been missing",
    { attachments: [unlisted()], evidence: { detach: detachEvidence({ isNodeMissing: true }) } },
    { step: "refuseDetach", message: "node n1 was deleted: its agent may make it again" },
  ],
  [
    "compat takes it as gone",
    {
      attachments: [unlisted()],
      evidence: { detach: detachEvidence({ isNodeMissing: true }) },
      isCompat: true,
    },
    { step: "detachInTree" },
  ],
  [
    "what waits on one node holds up no other",
    { attachments: [attached({ retryAtMs: nowMs + 9 }), attached({ nodeName: "n2" })] },
    { step: "unlist", nodeName: "n2" },
  ],
  [
    "of several waits the first counts",
    { attachments: [attached({ retryAtMs: nowMs + 9 }), attached({ nodeName: "n2", retryAtMs: nowMs + 3 })] },
    waits("back-off", 3),
  ],
];

const onSecondNode = (fields: Partial<ObservedAttachment>) =>
  uncertain({ nodeName: "n2", mayBeMounted: true, ...fields });
const attaches: readonly Case[] = [
  ["attached already", { attachments: [kept()], demands: [wanted()] }, waits("nothing to do")],
  [
    "a node that attaches for itself",
    { demands: [wanted({ isNodeManaged: false })] },
    waits("nothing to do"),
  ],
  [
    "the other form is detached first",
    { attachments: [unlisted({ retryAtMs: nowMs + 9 })], demands: [wantedByCsi()] },
    waits("back-off", 9),
  ],
  [
    "A7 attach: an operation is pending",
    { demands: [wanted()], operations: [underWay({ nodeName: "n2", attachmentName: undefined })] },
    waits("under way"),
  ],
  [
    "A6: what is attached under its in-tree name is not identified yet",
    { demands: [wanted({ isUnidentified: true })] },
    waits("is not identified yet"),
  ],
  [
    "its VolumeAttachment is being deleted by name",
    { demands: [wantedByCsi({ isDetachedByName: true })] },
    waits("is being deleted"),
  ],
  [
    "C2: another node has a VolumeAttachment that was recovered without its volume",
    { demands: [wantedByCsi({ elsewhereByName: ["n2"] })] },
    { step: "reportMultiAttach", otherNodes: ["n2"] },
  ],
  [
    "C2: and is looked at again, since no event of the disk says that it is gone",
    { demands: [wantedByCsi({ elsewhereByName: ["n2"], isMultiAttachReported: true })] },
    waits("it is attached to n2", 5_000),
  ],
  [
    "of a shared disk another node may have one",
    { demands: [wantedByCsi({ elsewhereByName: ["n2"], isShared: true })] },
    { step: "createVolumeAttachment" },
  ],
  [
    "its pod is not decided as it is now",
    { demands: [wanted({ hasPendingPods: true })] },
    waits("pods are not decided"),
  ],
  [
    "A7 attach 3: Multi-Attach, once",
    { attachments: [kept({ nodeName: "n2" })], demands: [wanted()] },
    { step: "reportMultiAttach", otherNodes: ["n2"] },
  ],
  [
    "A7 attach 3: and then silently",
    { attachments: [kept({ nodeName: "n2" })], demands: [wanted({ isMultiAttachReported: true })] },
    waits("it is attached to n2"),
  ],
  [
    "a shared disk goes to a second node",
    { attachments: [kept({ nodeName: "n2" })], demands: [wantedByCsi({ isShared: true })] },
    { step: "createVolumeAttachment" },
  ],
  [
    "C2: uncertain elsewhere, and used there",
    {
      attachments: [onSecondNode({ node: { isOutOfService: false, isReady: false, isInUse: true } })],
      demands: [wanted()],
    },
    { step: "reportMultiAttach", otherNodes: ["n2"] },
  ],
  [
    "C2: uncertain elsewhere, and the node could still mount it by its list",
    { attachments: [onSecondNode({ isWritten: false })], demands: [wanted()] },
    waits("the status of node n2 is not written"),
  ],
  [
    "C2: uncertain elsewhere, and not used by the cache: the node is asked",
    { attachments: [onSecondNode({})], demands: [wanted()] },
    { step: "readOtherNodes", otherNodes: ["n2"] },
  ],
  [
    "C2: uncertain elsewhere, and used by the live look",
    {
      attachments: [onSecondNode({})],
      demands: [wanted()],
      evidence: {
        otherNodes: { kind: "other nodes", nodeName: "n1", uniqueName: inTreeName, inUseOn: ["n2"] },
      },
    },
    { step: "reportMultiAttach", otherNodes: ["n2"] },
  ],
  [
    "C2: the live look is repeated: the cache may never show what it showed",
    {
      attachments: [onSecondNode({})],
      demands: [wanted({ isMultiAttachReported: true })],
      evidence: {
        otherNodes: { kind: "other nodes", nodeName: "n1", uniqueName: inTreeName, inUseOn: ["n2"] },
      },
    },
    waits("it is attached to n2", 5_000),
  ],
  [
    "C2: uncertain elsewhere, and the API server does not answer",
    {
      attachments: [onSecondNode({})],
      demands: [wanted()],
      evidence: { otherNodes: failedRead("other nodes") },
    },
    { step: "refuseAttach", part: "Attach", message: "no answer" },
  ],
  [
    "uncertain elsewhere, and not used",
    {
      attachments: [onSecondNode({})],
      demands: [wanted()],
      evidence: { otherNodes: { kind: "other nodes", nodeName: "n1", uniqueName: inTreeName, inUseOn: [] } },
    },
    { step: "recordIntent" },
  ],
  [
    "uncertain elsewhere, and never listed there: it cannot be mounted",
    {
      attachments: [
        onSecondNode({ mayBeMounted: false, node: { isOutOfService: false, isReady: false, isInUse: true } }),
      ],
      demands: [wanted()],
    },
    { step: "recordIntent" },
  ],
  [
    "uncertain on a node that is out of service or gone",
    {
      attachments: [
        onSecondNode({ node: { isOutOfService: true, isReady: false, isInUse: true } }),
        onSecondNode({ nodeName: "n3", node: undefined }),
      ],
      demands: [wanted()],
    },
    { step: "recordIntent" },
  ],
  [
    "0019: the provider is being asked",
    { demands: [wantedByCsi({ unlisted: { why: "", hasVolumeAttachment: false } })] },
    waits("has not listed"),
  ],
  [
    "0019: the provider does not answer, said once",
    { demands: [wantedByCsi({ unlisted: { why: "slow down", hasVolumeAttachment: false } })] },
    { step: "reportUnlisted", message: expect.stringContaining("(slow down)") as string },
  ],
  [
    "0019: and then silently",
    {
      demands: [
        wantedByCsi({ unlisted: { why: "slow down", hasVolumeAttachment: false }, isWaitReported: true }),
      ],
    },
    waits("has not listed"),
  ],
  [
    "0019: CSI keeps what it has a VolumeAttachment for",
    { demands: [wantedByCsi({ unlisted: { why: "slow down", hasVolumeAttachment: true } })] },
    { step: "createVolumeAttachment" },
  ],
  ["a failed attach waits", { demands: [wanted({ retryAtMs: nowMs + 500 })] }, waits("back-off", 500)],
  ["CSI creates a VolumeAttachment", { demands: [wantedByCsi()] }, { step: "createVolumeAttachment" }],
  [
    "C8: a plugin that cannot migrate is recorded first, too: a controller that stops during the attach leaves no other trace",
    { demands: [wanted({ inTreePlugin: undefined })] },
    { step: "recordIntent" },
  ],
  [
    "C8: and the record is written",
    { attachments: [recorded({ isWritten: false })], demands: [wanted({ inTreePlugin: undefined })] },
    waits("the status of node n1 is not written"),
  ],
  [
    "then a plugin that cannot migrate attaches: CSI never has its disks",
    { attachments: [recorded()], demands: [wanted({ inTreePlugin: undefined })] },
    { step: "attachInTree" },
  ],
  ["0003.18: in-tree is recorded first", { demands: [wanted()] }, { step: "recordIntent" }],
  [
    "0003.18: and the record is written",
    { attachments: [recorded({ isWritten: false })], demands: [wanted()] },
    waits("the status of node n1 is not written"),
  ],
  [
    "0003.19: then the node is asked",
    { attachments: [recorded()], demands: [wanted()] },
    { step: "readBeforeAttach" },
  ],
  [
    "compat does not ask",
    { attachments: [recorded()], demands: [wanted()], isCompat: true },
    { step: "attachInTree" },
  ],
  [
    "0003.19: all is well",
    { attachments: [recorded()], demands: [wanted()], evidence: { attach: attachEvidence() } },
    { step: "attachInTree" },
  ],
  [
    "0019: the node was created again, and its record lacks the volume",
    {
      attachments: [recorded()],
      demands: [wanted()],
      evidence: { attach: attachEvidence({ isRecorded: false }) },
    },
    {
      step: "refuseAttach",
      part: "Attach",
      message: expect.stringContaining("does not name") as string,
      volumeAttachment: undefined,
    },
  ],
  [
    "0019: the node's agent has announced the change",
    {
      attachments: [recorded()],
      demands: [wanted()],
      evidence: {
        attach: attachEvidence({ isChangingOver: true, volumeAttachment: aVolumeAttachment(undefined) }),
      },
    },
    {
      step: "refuseAttach",
      part: "Attach",
      message: expect.stringContaining("is about to hand") as string,
      volumeAttachment: undefined,
    },
  ],
  [
    "0019: the node has changed over",
    {
      attachments: [recorded()],
      demands: [wanted()],
      evidence: { attach: attachEvidence({ hasChangedOver: true }) },
    },
    { step: "refuseAttach", part: "Attach", message: expect.stringContaining("has handed") as string },
  ],
  [
    "0019: CSI has the disk there",
    {
      attachments: [recorded()],
      demands: [wanted()],
      evidence: { attach: attachEvidence({ volumeAttachment: aVolumeAttachment(undefined) }) },
    },
    { step: "refuseAttach", part: "Attach", volumeAttachment: aVolumeAttachment(undefined) },
  ],
  [
    "the API server does not answer before an attach",
    { attachments: [recorded()], demands: [wanted()], evidence: { attach: failedRead("before attach") } },
    { step: "refuseAttach", part: "NewAttacher", message: "no answer" },
  ],
  [
    "detach comes first",
    { attachments: [attached({ nodeName: "n2" })], demands: [wanted()] },
    { step: "unlist", nodeName: "n2" },
  ],
];

const timedOut = { startedAtMs: nowMs - volumeAttachmentTimeoutMs };
const detaching = (fields: Partial<DiskOperation> = {}) => ({ kind: "detach", ...fields }) as const;
const deleting = (status: VolumeAttachment["status"], version = "5") => ({
  volumeAttachment: aVolumeAttachment(status, { version, isDeleting: true }),
});
const withError = { attached: true, detachError: { message: "busy" } };
const outcomeOf = (outcome: NonNullable<DiskOperation["outcome"]>, fields: Partial<DiskOperation> = {}) =>
  underWay({ attachmentName: undefined, uniqueName: inTreeName, ...fields, outcome });
const operations: readonly (readonly [string, ObservedOperation, Partial<DiskStep>])[] = [
  ["an in-tree call under way", underWay({ attachmentName: undefined }), waits("provider is under way")],
  [
    "an in-tree attach is done",
    outcomeOf({ kind: "done", devicePath: "/dev/x" }),
    { step: "confirmAttach", devicePath: "/dev/x" },
  ],
  [
    "an in-tree attach has failed",
    outcomeOf({ kind: "failed", message: "m" }),
    { step: "failAttach", message: "m" },
  ],
  [
    "nothing was asked",
    outcomeOf({ kind: "not-asked", message: "m" }),
    { step: "abandonAttach", message: "m" },
  ],
  [
    "the disk is elsewhere",
    outcomeOf({ kind: "dangling", message: "m", currentNode: "n2", devicePath: "/dev/y" }),
    { step: "recordDangling", message: "m", currentNode: "n2", devicePath: "/dev/y" },
  ],
  [
    "A9: an in-tree detach is done",
    outcomeOf({ kind: "done", devicePath: "" }, { kind: "detach" }),
    { step: "deleteMigratedAttachment" },
  ],
  [
    "a detach has failed",
    outcomeOf({ kind: "failed", message: "m" }, { kind: "detach" }),
    { step: "failDetach", message: "m" },
  ],
  [
    "there was no VolumeAttachment to delete",
    outcomeOf({ kind: "done", devicePath: "" }, { kind: "detach", uniqueName: csiName }),
    { step: "forgetAttachment" },
  ],
  [
    "the cache is older than the VolumeAttachment",
    underWay({}, { isCacheCurrent: false, volumeAttachment: aVolumeAttachment({ attached: true }) }),
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "its attacher is at work",
    underWay({}, { volumeAttachment: aVolumeAttachment(undefined) }),
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "CSI has attached",
    underWay({}, { volumeAttachment: aVolumeAttachment({ attached: true }) }),
    { step: "confirmAttach", devicePath: "" },
  ],
  [
    "CSI could not attach",
    underWay(
      {},
      { volumeAttachment: aVolumeAttachment({ attached: false, attachError: { message: "full" } }) },
    ),
    { step: "failAttach", message: "volume ebs.csi.aws.com^vol-a, VolumeAttachment csi-1: full" },
  ],
  [
    "the VolumeAttachment is gone",
    underWay({}),
    { step: "failAttach", message: expect.stringContaining("has been deleted") as string },
  ],
  [
    "what is being deleted is not trusted, even attached",
    underWay({}, { volumeAttachment: aVolumeAttachment({ attached: true }, { isDeleting: true }) }),
    { step: "failAttach", message: expect.stringContaining("is being deleted") as string },
  ],
  [
    "two minutes are over",
    underWay(timedOut, { volumeAttachment: aVolumeAttachment(undefined) }),
    { step: "failAttach", message: expect.stringContaining("attachdetachment timeout") as string },
  ],
  ["a CSI detach is done", underWay(detaching()), { step: "forgetAttachment" }],
  [
    "a CSI detach, and the cache never had the VolumeAttachment",
    underWay(detaching(), { isCacheCurrent: false }),
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "another VolumeAttachment has come under the name",
    underWay(detaching(), { volumeAttachment: aVolumeAttachment(undefined) }),
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "the first look after the DELETE",
    underWay(detaching(), deleting(withError)),
    { step: "noteDetaching", firstVersion: "5", seenAttached: true },
  ],
  [
    "an error from before the DELETE does not count",
    underWay(detaching({ firstVersion: "5", seenAttached: true }), deleting(withError)),
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "an error of after the DELETE counts",
    underWay(detaching({ firstVersion: "4", seenAttached: true }), deleting(withError)),
    { step: "failDetach", message: "volume ebs.csi.aws.com^vol-a, VolumeAttachment csi-1: busy" },
  ],
  [
    "attached: false counts only after attached: true",
    underWay(detaching({ firstVersion: "4" }), deleting({ attached: false })),
    waits("VolumeAttachment csi-1", volumeAttachmentTimeoutMs - 1_000),
  ],
  [
    "attached: false after attached: true",
    underWay(detaching({ firstVersion: "4", seenAttached: true }), deleting({ attached: false })),
    { step: "forgetAttachment" },
  ],
  [
    "two minutes of a detach are over",
    underWay(detaching({ ...timedOut, firstVersion: "5" }), deleting(undefined)),
    { step: "failDetach", message: "attachdetachment timeout for volume ebs.csi.aws.com^vol-a" },
  ],
];

const all: readonly Case[] = [
  ...detaches,
  ...attaches,
  ...operations.map(([rule, operation, step]): Case => [rule, { operations: [operation] }, step]),
];

describe("the decision on one disk", () => {
  it.each(all)("%s", (_rule, observed, step) => {
    expect(decide(disk(observed))).toMatchObject(step);
  });

  it("reaches every step", () => {
    const every: Record<DiskStep["step"], true> = {
      keep: true,
      doubt: true,
      list: true,
      forgetIntent: true,
      identify: true,
      requestDetach: true,
      unlist: true,
      readBeforeDetach: true,
      refuseDetach: true,
      leaveToCsi: true,
      detachInTree: true,
      deleteVolumeAttachment: true,
      reportMultiAttach: true,
      reportUnlisted: true,
      readOtherNodes: true,
      recordIntent: true,
      readBeforeAttach: true,
      refuseAttach: true,
      attachInTree: true,
      createVolumeAttachment: true,
      confirmAttach: true,
      failAttach: true,
      abandonAttach: true,
      recordDangling: true,
      noteDetaching: true,
      deleteMigratedAttachment: true,
      forgetAttachment: true,
      failDetach: true,
      wait: true,
      forgetDisk: true,
    };
    const reached = new Set(all.map(([, observed]) => decide(disk(observed)).step));
    expect([...reached].sort()).toEqual(Object.keys(every).sort());
  });
});

/** All combinations of what affects a detach: the rules that no combination may break. */
describe("no combination of facts", () => {
  const either = [false, true];
  const combinations = either.flatMap((isWanted) =>
    either.flatMap((hasPendingPods) =>
      either.flatMap((isInUse) =>
        either.flatMap((isReported) =>
          either.flatMap((isWritten) =>
            either.flatMap((isUnknown) =>
              either.flatMap((isOutOfService) =>
                either.flatMap((isLiveInUse) =>
                  either.map((isConfirmed) => ({
                    isLiveInUse,
                    attachment: attached({
                      isWanted,
                      hasPendingPods,
                      isReported,
                      isWritten,
                      isConfirmed,
                      unknown: isUnknown ? undecidedVolume : undefined,
                      node: { isOutOfService, isReady: false, isInUse },
                    }),
                  })),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );

  it("detaches what is wanted, unknown, undecided, listed, not written or in use", () => {
    let detached = 0;
    for (const { attachment, isLiveInUse } of combinations) {
      const evidence = { detach: detachEvidence({ isInUse: isLiveInUse }) };
      const { step } = decide(disk({ attachments: [attachment], evidence }));
      if (step !== "detachInTree") continue;
      detached++;
      const { isWanted, hasPendingPods, unknown, isReported, isWritten, node } = attachment;
      expect([isWanted, hasPendingPods, unknown, isReported, isWritten]).toEqual([
        false,
        false,
        undefined,
        false,
        true,
      ]);
      if (node?.isOutOfService !== true) expect([node?.isInUse, isLiveInUse]).toEqual([false, false]);
    }
    expect(detached).toBeGreaterThan(0);
  });

  it("attaches a disk of one writer to a second node while it may be used on the first", () => {
    let attachedAll = 0;
    for (const { attachment, isLiveInUse } of combinations) {
      const rival = { ...attachment, nodeName: "n2", retryAtMs: nowMs + 1 };
      const otherNodes = {
        kind: "other nodes" as const,
        nodeName: "n1",
        uniqueName: csiName,
        inUseOn: isLiveInUse ? ["n2"] : [],
      };
      const observed = disk({ attachments: [rival], demands: [wantedByCsi()], evidence: { otherNodes } });
      if (decide(observed).step !== "createVolumeAttachment") continue;
      attachedAll++;
      expect(rival.isConfirmed).toBe(false);
      if (rival.node?.isOutOfService === true) continue;
      expect([rival.node?.isInUse, isLiveInUse, rival.isWritten]).toEqual([false, false, true]);
    }
    expect(attachedAll).toBeGreaterThan(0);
  });
});
