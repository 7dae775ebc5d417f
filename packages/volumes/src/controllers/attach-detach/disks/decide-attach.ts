/**
 * What to do about one volume that pods on a node want. Pure; the rules in the order in which they are asked.
 * Source: docs/behaviour/controllers.md A7 (attach); docs/contract.md C1 and C2; docs/decisions/0019.
 *
 * Invariants
 *  - Before an in-tree attach starts, it is in the node's record of uncertain volumes, as a CSI attach is in a
 *    VolumeAttachment: a controller that stops during the attach leaves a trace. Of a Flexvolume it is the only one (C8).
 *  - CSI attaches nothing of a plugin while it is not known what the in-tree code has attached.
 *  - C2: a disk that may have one writer is attached to no second node while it is attached to a first, or may be and is
 *    used there.
 */
import type { DiskStep } from "./disk-step.ts";
import type { AttachEvidence } from "./live-evidence.ts";
import type { ObservedAttachment, ObservedDemand, ObservedDisk } from "./observe-disk.ts";

/** Pause before the other nodes are looked at again, in milliseconds: no event of the disk may say that they let it go. */
const otherNodesRetryMs = 5_000;

/** The next step of a wanted volume; undefined: nothing. */
export function decideAttach(
  observed: ObservedDisk,
  demand: ObservedDemand,
  isPending: boolean,
): DiskStep | undefined {
  const { nodeName, uniqueName } = demand;
  const present = observed.attachments.find(
    (attachment) => attachment.nodeName === nodeName && attachment.uniqueName === uniqueName,
  );
  if (present?.isConfirmed === true || !demand.isNodeManaged) return undefined;
  if (demand.isUnidentified) return wait("what is attached under its in-tree name is not identified yet");
  const others = observed.attachments.filter((attachment) => attachment !== present);
  if (others.some((other) => other.nodeName === nodeName)) {
    return wait("it is attached to the node under another name: that attachment is detached first");
  }
  if (isPending) return wait("an operation of the disk is under way");
  if (demand.isDetachedByName) return wait("its VolumeAttachment is being deleted");
  if (demand.hasPendingPods) return wait("its pods are not decided");
  if (demand.elsewhereByName.length > 0 && !demand.isShared) {
    return multiAttach(demand, demand.elsewhereByName, otherNodesRetryMs);
  }
  const rivals = demand.isShared ? [] : others.filter(isRival);
  // Before the back-off: what the attach waits for is reported while an earlier failure still delays it.
  const step = decideRivals(demand, rivals) ?? decideUnlisted(demand);
  if (step !== undefined) return step;
  if (demand.retryAtMs > observed.nowMs) return wait("back-off", demand.retryAtMs - observed.nowMs);
  const refusal = rivals.length > 0 ? decideOnOtherNodes(observed, demand, rivals) : undefined;
  if (refusal !== undefined) return refusal;
  if (demand.isCsi) return { step: "createVolumeAttachment", nodeName, uniqueName };
  return decideInTree(observed, demand, present);
}

/** On a node that is gone or out of service nothing is mounted that counts. What was never listed there is not mounted. */
function isRival({ isConfirmed, mayBeMounted, node }: ObservedAttachment): boolean {
  return isConfirmed || (mayBeMounted && node?.isOutOfService === false);
}

/** A disk that may have one writer has one on another node, or may have. */
function decideRivals(demand: ObservedDemand, rivals: readonly ObservedAttachment[]): DiskStep | undefined {
  const sure = rivals.filter(({ isConfirmed }) => isConfirmed);
  if (sure.length > 0)
    return multiAttach(
      demand,
      sure.map(({ nodeName }) => nodeName),
    );
  const inUse = rivals.filter(({ node }) => node?.isInUse === true);
  if (inUse.length > 0)
    return multiAttach(
      demand,
      inUse.map(({ nodeName }) => nodeName),
    );
  const unwritten = rivals.find(({ isWritten }) => !isWritten);
  if (unwritten !== undefined) return wait(`the status of node ${unwritten.nodeName} is not written`);
  return undefined;
}

/** What the cache has of the other nodes may be old: they are asked before the disk goes to a second one. */
function decideOnOtherNodes(
  { evidence }: ObservedDisk,
  demand: ObservedDemand,
  rivals: readonly ObservedAttachment[],
): DiskStep | undefined {
  const { nodeName, uniqueName } = demand;
  const live = evidence?.otherNodes;
  if (live === undefined || live.nodeName !== nodeName || live.uniqueName !== uniqueName) {
    const otherNodes = rivals.map((rival) => rival.nodeName);
    return { step: "readOtherNodes", nodeName, uniqueName, otherNodes };
  }
  if (live.kind === "failed") {
    const { message } = live;
    return {
      step: "refuseAttach",
      nodeName,
      uniqueName,
      part: "Attach",
      message,
      volumeAttachment: undefined,
    };
  }
  return live.inUseOn.length > 0 ? multiAttach(demand, live.inUseOn, otherNodesRetryMs) : undefined;
}

/** The pods get one event. */
function multiAttach(
  { nodeName, uniqueName, isMultiAttachReported }: ObservedDemand,
  otherNodes: readonly string[],
  retryInMs?: number,
): DiskStep {
  if (isMultiAttachReported) return wait(`it is attached to ${otherNodes.join(", ")}`, retryInMs);
  return { step: "reportMultiAttach", nodeName, uniqueName, otherNodes };
}

/**
 * Whether the in-tree code may have attached the disk without a trace: then CSI does not attach it, unless
 * it has a VolumeAttachment already. The pods get one event that says what the attach waits for.
 */
function decideUnlisted(demand: ObservedDemand): DiskStep | undefined {
  const { nodeName, uniqueName, unlisted, volumeName, inTreePlugin } = demand;
  if (unlisted === undefined || unlisted.hasVolumeAttachment) return undefined;
  if (unlisted.why === "" || demand.isWaitReported) {
    return wait(`the provider of ${inTreePlugin} has not listed what is attached`);
  }
  const message =
    `Volume "${volumeName}" is not attached to node ${nodeName} yet: what the in-tree code of ${inTreePlugin} ` +
    `has attached is not known until its provider lists it; asked again with back-off (${unlisted.why})`;
  return { step: "reportUnlisted", nodeName, uniqueName, message };
}

function decideInTree(
  { isCompat, evidence }: ObservedDisk,
  { nodeName, uniqueName, inTreePlugin }: ObservedDemand,
  present: ObservedAttachment | undefined,
): DiskStep {
  const on = { nodeName, uniqueName };
  if (present === undefined) return { step: "recordIntent", ...on };
  if (!present.isWritten) return wait(`the status of node ${nodeName} is not written`);
  if (isCompat) return { step: "attachInTree", ...on };
  // CSI never has the disk of a plugin that cannot migrate.
  if (inTreePlugin === undefined) return { step: "attachInTree", ...on };
  const live = evidence?.attach;
  if (live === undefined || live.nodeName !== nodeName || live.uniqueName !== uniqueName) {
    return { step: "readBeforeAttach", ...on };
  }
  if (live.kind === "failed") {
    const { message } = live;
    return { step: "refuseAttach", ...on, part: "NewAttacher", message, volumeAttachment: undefined };
  }
  const refusal = refusalOf(live, inTreePlugin);
  if (refusal === undefined) return { step: "attachInTree", ...on };
  return { step: "refuseAttach", ...on, part: "Attach", ...refusal };
}

function refusalOf(
  { nodeName, uniqueName, volumeAttachment, isRecorded, isChangingOver, hasChangedOver }: AttachEvidence,
  inTreePlugin: string,
): Pick<Extract<DiskStep, { step: "refuseAttach" }>, "message" | "volumeAttachment"> | undefined {
  const refuse = (message: string) => ({ message, volumeAttachment: undefined });
  if (!isRecorded) return refuse(`the record of node ${nodeName} does not name ${uniqueName} yet`);
  if (isChangingOver) return refuse(`node ${nodeName} is about to hand ${inTreePlugin} over to CSI`);
  if (hasChangedOver) return refuse(`node ${nodeName} has handed ${inTreePlugin} over to CSI meanwhile`);
  if (volumeAttachment === undefined) return undefined;
  const message = `VolumeAttachment ${volumeAttachment.metadata.name} says that CSI has the disk on node ${nodeName}`;
  return { message, volumeAttachment };
}

function wait(reason: string, retryInMs?: number): DiskStep {
  return { step: "wait", reason, retryInMs };
}
