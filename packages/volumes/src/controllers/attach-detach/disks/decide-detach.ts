/**
 * What to do about one attachment. Pure; the rules in the order in which they are asked.
 * Source: docs/behaviour/controllers.md A7 (detach); docs/contract.md C1, C2, "Unknown is never detached".
 *
 * Invariants
 *  - Before a detach starts, the node's status no longer lists the volume: its write has succeeded. What then fails is
 *    listed again, unless a pod wants it again: then it is attached again before (decision 0003, row 17).
 *  - A detach that is not forced starts on a live look at the node, never on a cache.
 */
import { missingNodeMs } from "../missing-nodes.ts";
import type { DiskStep, ForceReason } from "./disk-step.ts";
import type { NoEvidence } from "./live-evidence.ts";
import type { ObservedAttachment, ObservedDisk } from "./observe-disk.ts";

/** The next step of an attachment; undefined: nothing. */
export function decideDetach(
  observed: ObservedDisk,
  attachment: ObservedAttachment,
  isPending: boolean,
): DiskStep | undefined {
  const { nodeName, uniqueName, detachRequestedAtMs, disk } = attachment;
  const on = { nodeName, uniqueName };
  // Before what is wanted: the disk is wanted under another key, whose passes wait for this.
  if (disk !== undefined && !isPending) return { step: "identify", ...on, disk };
  if (attachment.isWanted) return keep(attachment, isPending);
  if (isPending) return wait("an operation of the disk is under way");
  // Before the wait for pods: a mere intent needs no detach, so nothing has to be protected from one.
  if (!attachment.isAsked) return { step: "forgetIntent", ...on };
  if (attachment.hasPendingPods) return wait(`pods on node ${nodeName} are not decided`);
  if (attachment.unknown !== undefined) {
    const reason = `it could be a volume that cannot be named: ${attachment.unknown.reason}`;
    return isUnlisted(attachment) ? { step: "list", ...on } : wait(reason);
  }
  if (detachRequestedAtMs === undefined) return { step: "requestDetach", ...on };
  const missingForMs = observed.nowMs - attachment.nodeMissingSinceMs;
  if (attachment.node === undefined && missingForMs < missingNodeMs && !observed.isCompat) {
    return wait(reasonDeleted(nodeName), missingNodeMs - missingForMs);
  }
  const force = forceOf(observed, attachment, detachRequestedAtMs);
  if (attachment.node?.isInUse === true && force === undefined) {
    return isUnlisted(attachment) ? { step: "list", ...on } : waitForUnmount(observed, detachRequestedAtMs);
  }
  return takeAway(observed, attachment, force);
}

/** Nothing speaks against it: off the list first, then the last looks, then the detach. */
function takeAway(
  observed: ObservedDisk,
  attachment: ObservedAttachment,
  force: ForceReason | undefined,
): DiskStep {
  const { nodeName, uniqueName, retryAtMs } = attachment;
  if (retryAtMs > observed.nowMs) return wait("back-off", retryAtMs - observed.nowMs);
  if (attachment.isReported) return { step: "unlist", nodeName, uniqueName };
  // Where there is no node, there is nothing to write to.
  if (!attachment.isWritten && attachment.node !== undefined) {
    return wait(`the status of node ${nodeName} is not written`);
  }
  return onEvidence(observed, attachment, force);
}

/** It was taken off the list for a detach that is not to be. */
function isUnlisted({ isConfirmed, isReported }: ObservedAttachment): boolean {
  return isConfirmed && !isReported;
}

/** It is wanted: it is listed, unless it is not sure that it is attached. */
function keep(attachment: ObservedAttachment, isPending: boolean): DiskStep | undefined {
  const { nodeName, uniqueName } = attachment;
  const on = { nodeName, uniqueName };
  if (attachment.detachRequestedAtMs !== undefined) return { step: "keep", ...on };
  if (isPending) return undefined;
  // The detach that failed may have been done: the node would wait for a device that is gone (decision 0003, row 17).
  if (attachment.isDetachTried) return { step: "doubt", ...on };
  return isUnlisted(attachment) ? { step: "list", ...on } : undefined;
}

function forceOf(
  { nowMs, isCompat, forceDetachAfterMs }: ObservedDisk,
  { node }: ObservedAttachment,
  requestedAtMs: number,
): ForceReason | undefined {
  // A node that is Ready contradicts the taint.
  if (node?.isOutOfService === true && (!node.isReady || isCompat)) return "out-of-service";
  // A node that is Ready is slow, not dead: its next change of state is looked at (A10).
  if (node?.isReady === true && !isCompat) return undefined;
  const isOver = forceDetachAfterMs !== undefined && nowMs - requestedAtMs > forceDetachAfterMs;
  return isOver ? "timeout" : undefined;
}

/** Time alone forces nothing, unless that is switched on. */
function waitForUnmount({ nowMs, forceDetachAfterMs }: ObservedDisk, requestedAtMs: number): DiskStep {
  const leftMs =
    forceDetachAfterMs === undefined ? undefined : requestedAtMs + forceDetachAfterMs - nowMs + 1;
  return wait("the node uses it", leftMs !== undefined && leftMs > 0 ? leftMs : undefined);
}

function onEvidence(
  { evidence, isCompat }: ObservedDisk,
  { nodeName, uniqueName, isCsi, isConfirmed, node }: ObservedAttachment,
  force: ForceReason | undefined,
): DiskStep {
  const on = { nodeName, uniqueName };
  const asksNode = force === undefined;
  // What is only presumed to be in-tree may be CSI's by now (docs/decisions/0019).
  const asksVolumeAttachment = !isConfirmed && !isCsi;
  const live = evidence?.detach;
  const isOfThis = live?.nodeName === nodeName && live.uniqueName === uniqueName;
  if ((asksNode || asksVolumeAttachment) && (live === undefined || !isOfThis)) {
    return { step: "readBeforeDetach", ...on, asksNode, asksVolumeAttachment };
  }
  if (isOfThis) {
    // A cache that lags still has the Node: from when it sees the deletion, the node is missing.
    const isJustDeleted = node !== undefined && !isCompat;
    const refusal = refusalOf(live, isJustDeleted);
    if (refusal !== undefined) return { step: "refuseDetach", ...on, ...refusal };
    if (live.kind !== "failed" && live.hasVolumeAttachment) return { step: "leaveToCsi", ...on };
  }
  return { step: isCsi ? "deleteVolumeAttachment" : "detachInTree", ...on, force };
}

function refusalOf(
  live: NonNullable<NonNullable<ObservedDisk["evidence"]>["detach"]> | NoEvidence,
  isJustDeleted: boolean,
): { readonly message: string; readonly isNodeEvent: boolean } | undefined {
  if (live.kind === "failed") return { message: live.message, isNodeEvent: false };
  const { nodeName, uniqueName, isNodeMissing, isInUse, activeDriver } = live;
  if (isNodeMissing && isJustDeleted) return { message: reasonDeleted(nodeName), isNodeEvent: false };
  if (isInUse) {
    return { message: `volume ${uniqueName} is still in use by node ${nodeName}`, isNodeEvent: false };
  }
  if (activeDriver === undefined) return undefined;
  const message =
    `Volume ${uniqueName} is not detached from node ${nodeName}: its CSINode is missing although driver ` +
    `${activeDriver} has VolumeAttachments there, so who is responsible is unknown; restart the kubelet to write it again`;
  return { message, isNodeEvent: true };
}

function reasonDeleted(nodeName: string): string {
  return `node ${nodeName} was deleted: its agent may make it again`;
}

function wait(reason: string, retryInMs?: number): DiskStep {
  return { step: "wait", reason, retryInMs };
}
