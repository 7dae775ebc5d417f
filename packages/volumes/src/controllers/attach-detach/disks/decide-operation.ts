/**
 * What comes of an operation that is under way. Pure. Source: docs/behaviour/csi-plugin.md 4-7 (the verdict on a
 * VolumeAttachment); docs/behaviour/controllers.md A7, A9.
 */
import { isDeleting } from "@longshore/kube";
import { attachVerdict, detachVerdict } from "../../../plugins/csi/attachment-status.ts";
import { csiPluginName } from "../../../plugins/csi/csi-names.ts";
import type { DiskOperation } from "../disk-operations.ts";
import type { DiskStep } from "./disk-step.ts";
import type { ObservedDisk, ObservedOperation } from "./observe-disk.ts";

/** An attach or a detach by CSI that has not ended after this time has failed, in milliseconds. */
export const volumeAttachmentTimeoutMs = 120_000;

/** The next step of an operation. */
export function decideOperation({ nowMs }: ObservedDisk, observed: ObservedOperation): DiskStep {
  const { operation } = observed;
  if (operation.outcome !== undefined) return ofOutcome(operation, operation.outcome);
  if (operation.attachmentName === undefined) {
    return { step: "wait", reason: "a call to the provider is under way", retryInMs: undefined };
  }
  const step = operation.kind === "attach" ? ofAttach(observed) : ofDetach(observed);
  if (step !== undefined) return step;
  const leftMs = operation.startedAtMs + volumeAttachmentTimeoutMs - nowMs;
  if (leftMs <= 0) return failed(operation, `attachdetachment timeout for volume ${volumeOf(operation)}`);
  return { step: "wait", reason: `VolumeAttachment ${operation.attachmentName}`, retryInMs: leftMs };
}

function ofOutcome(operation: DiskOperation, outcome: NonNullable<DiskOperation["outcome"]>): DiskStep {
  if (outcome.kind === "failed") return failed(operation, outcome.message);
  if (outcome.kind === "not-asked") {
    return { step: "abandonAttach", operation, message: outcome.message };
  }
  if (outcome.kind === "dangling") {
    const { message, currentNode, devicePath } = outcome;
    return { step: "recordDangling", operation, message, currentNode, devicePath };
  }
  if (operation.kind === "attach") {
    return { step: "confirmAttach", operation, devicePath: outcome.devicePath };
  }
  const isInTree = !operation.uniqueName.startsWith(`${csiPluginName}/`);
  return { step: isInTree ? "deleteMigratedAttachment" : "forgetAttachment", operation };
}

function ofAttach({ operation, volumeAttachment, isCacheCurrent }: ObservedOperation): DiskStep | undefined {
  if (!isCacheCurrent) return undefined;
  const verdict = attachVerdict(volumeAttachment);
  if (verdict.kind === "done") return { step: "confirmAttach", operation, devicePath: "" };
  return verdict.kind === "failed" ? failed(operation, textOf(operation, verdict.message)) : undefined;
}

/** Only a change that is seen after the DELETE says something about this detach: an earlier error does not. */
function ofDetach({ operation, volumeAttachment, isCacheCurrent }: ObservedOperation): DiskStep | undefined {
  if (!isCacheCurrent) return undefined;
  if (volumeAttachment === undefined) return { step: "forgetAttachment", operation };
  // The cache is behind the DELETE: what it shows is the earlier state.
  if (!isDeleting(volumeAttachment)) return undefined;
  const version = volumeAttachment.metadata.resourceVersion;
  const firstVersion = operation.firstVersion ?? version;
  const seenAttached = operation.seenAttached || volumeAttachment.status?.attached === true;
  if (operation.firstVersion === undefined || seenAttached !== operation.seenAttached) {
    return { step: "noteDetaching", operation, firstVersion, seenAttached };
  }
  const verdict = detachVerdict(volumeAttachment, seenAttached);
  if (verdict.kind === "done") return { step: "forgetAttachment", operation };
  if (verdict.kind === "wait" || version === firstVersion) return undefined;
  return failed(operation, textOf(operation, verdict.message));
}

function failed(operation: DiskOperation, message: string): DiskStep {
  return { step: operation.kind === "attach" ? "failAttach" : "failDetach", operation, message };
}

function textOf(operation: DiskOperation, message: string): string {
  return `volume ${volumeOf(operation)}, VolumeAttachment ${operation.attachmentName}: ${message}`;
}

/** What the messages call the volume: its handle in those of an attach, the plugin's name of it in those of a detach. */
function volumeOf({ kind, uniqueName, volume }: DiskOperation): string {
  const handle = volume?.spec.persistentVolume?.spec?.csi?.volumeHandle;
  return kind === "attach" && handle !== undefined ? handle : uniqueName.slice(csiPluginName.length + 1);
}
