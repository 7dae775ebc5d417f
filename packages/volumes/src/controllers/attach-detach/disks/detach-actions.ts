/** The actions of the steps that detach, or keep what is attached. Source: docs/behaviour/controllers.md A7 (detach), A9. */
import { type Actions, observeAgain, resources } from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import { attachmentOfVolume } from "../../../plugins/csi/csi-names.ts";
import type { Attachment } from "../actual-state.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import { diskReferredTo, isWanted } from "../detach-guards.ts";
import type { DiskOperation } from "../disk-operations.ts";
import { scopeOf } from "../operation-scope.ts";
import { csiAttachmentName } from "../volume-identity.ts";
import { detachInTree } from "./attach-in-tree.ts";
import { volumeAttachmentTimeoutMs } from "./decide-operation.ts";
import type { DiskStep, ForceReason, VolumeOnNode } from "./disk-step.ts";
import { identifyAttachment } from "./identify-attachment.ts";
import { readBeforeDetach } from "./live-evidence.ts";
import { type ObservedDisk, observeDisk } from "./observe-disk.ts";
import { deleteVolumeAttachment } from "./volume-attachment-requests.ts";

type DetachActions = Pick<
  Actions<ObservedDisk, DiskStep>,
  | "keep"
  | "doubt"
  | "list"
  | "forgetIntent"
  | "identify"
  | "requestDetach"
  | "unlist"
  | "readBeforeDetach"
  | "refuseDetach"
  | "leaveToCsi"
  | "detachInTree"
  | "deleteVolumeAttachment"
  | "deleteMigratedAttachment"
  | "forgetAttachment"
  | "failDetach"
>;

/** The actions of the steps that detach, or keep what is attached. */
export function detachActions(context: AttachDetachContext): DetachActions {
  return {
    ...noteActions(context),
    ...beforeDetach(context),
    ...startDetach(context),
    ...endDetach(context),
  };
}

/** What changes the controller's own state only. */
function noteActions(
  context: AttachDetachContext,
): Pick<DetachActions, "keep" | "doubt" | "list" | "forgetIntent" | "identify" | "requestDetach" | "unlist"> {
  const { actual, env } = context;
  const onAttachment = (change: (attachment: Attachment) => void) => (on: VolumeOnNode) => {
    const attachment = actual.get(on.nodeName, on.uniqueName);
    if (attachment !== undefined) change(attachment);
    return observeAgain;
  };
  return {
    keep: onAttachment((attachment) => {
      attachment.detachRequestedAtMs = undefined;
    }),
    doubt: onAttachment((attachment) => actual.doubt(attachment)),
    list: onAttachment((attachment) => actual.setReported(attachment, true)),
    forgetIntent: onAttachment((attachment) => actual.remove(attachment)),
    identify({ disk, ...on }) {
      const attachment = actual.get(on.nodeName, on.uniqueName);
      if (attachment !== undefined) identifyAttachment(context, attachment, disk);
      return observeAgain;
    },
    requestDetach: onAttachment((attachment) => {
      attachment.detachRequestedAtMs = env.clock.monotonicMs();
    }),
    unlist: onAttachment((attachment) => actual.setReported(attachment, false)),
  };
}

function beforeDetach(
  context: AttachDetachContext,
): Pick<DetachActions, "readBeforeDetach" | "refuseDetach" | "leaveToCsi"> {
  const { actual, operations, env } = context;
  return {
    async readBeforeDetach(step, { identity, evidence }, { signal }) {
      const attachment = actual.get(step.nodeName, step.uniqueName);
      if (attachment === undefined) return observeAgain;
      const detach = await readBeforeDetach(context, attachment, step, signal);
      return { observed: observeDisk(context, identity, { ...evidence, detach }) };
    },
    refuseDetach({ message, isNodeEvent, ...on }) {
      const attachment = actual.get(on.nodeName, on.uniqueName);
      if (attachment === undefined) return observeAgain;
      // It stays attached, and the node mounts only what its status lists.
      actual.setReported(attachment, true);
      const node = context.caches.nodes.get(on.nodeName);
      if (isNodeEvent && node !== undefined) {
        const subject = { apiVersion: "v1", kind: "Node", ...node };
        context.events.event(subject, "Warning", "FailedDetachVolume", message);
      }
      const retryInMs = operations.refuse("detach", scopeOf(attachment), env.clock.monotonicMs());
      env.logger.warn("volume_detach failed", { volume: attachment.identity, retryInMs, error: message });
      return observeAgain;
    },
    leaveToCsi(on) {
      const attachment = actual.get(on.nodeName, on.uniqueName);
      if (attachment === undefined) return observeAgain;
      env.logger.warn("volume is left to CSI, which has a VolumeAttachment for it", {
        volume: on.uniqueName,
        node: on.nodeName,
      });
      forget(context, attachment);
      return observeAgain;
    },
  };
}

function startDetach(
  context: AttachDetachContext,
): Pick<DetachActions, "detachInTree" | "deleteVolumeAttachment"> {
  const { operations, env } = context;
  return {
    detachInTree({ force, ...on }, { identity, evidence }) {
      const attachment = detachable(context, on);
      if (attachment === undefined) return { observed: observeDisk(context, identity, evidence) };
      const operation = beginDetach(context, attachment, undefined, force);
      context.inBackground(async (signal) => {
        const outcome = await detachInTree(context, attachment, signal);
        if (signal.aborted) return;
        operations.progress(operation, { outcome });
        context.wakeDisk(identity);
      });
      return observeAgain;
    },
    async deleteVolumeAttachment({ force, ...on }, { identity, evidence }, { signal }) {
      const attachment = detachable(context, on);
      if (attachment === undefined) return { observed: observeDisk(context, identity, evidence) };
      const name = nameOf(attachment);
      const operation = beginDetach(context, attachment, name, force);
      try {
        const news = await withDeadline(env.clock, volumeAttachmentTimeoutMs, signal, (within) =>
          deleteVolumeAttachment(context, name, within),
        );
        operations.progress(operation, news);
      } catch (error) {
        if (signal.aborted) throw error;
        operations.progress(operation, { outcome: { kind: "failed", message: errorChain(error) } });
      }
      return observeAgain;
    },
  };
}

function endDetach(
  context: AttachDetachContext,
): Pick<DetachActions, "deleteMigratedAttachment" | "forgetAttachment" | "failDetach"> {
  const { actual, desired, operations, env } = context;
  const fail = (operation: DiskOperation, message: string) => {
    const attachment = actual.get(operation.nodeName, operation.uniqueName);
    // It may be detached nevertheless: what a pod wants again is attached again before it is listed.
    if (attachment !== undefined && !isWanted(attachment, desired)) actual.setReported(attachment, true);
    const retryInMs = operations.fail(operation, env.clock.monotonicMs());
    env.logger.warn("volume_detach failed", { volume: operation.identity, retryInMs, error: message });
    return observeAgain;
  };
  const end = (operation: DiskOperation) => {
    operations.succeed(operation);
    const attachment = actual.get(operation.nodeName, operation.uniqueName);
    if (attachment !== undefined) forget(context, attachment);
    env.logger.info("volume detached", { volume: operation.uniqueName, node: operation.nodeName });
    return observeAgain;
  };
  return {
    async deleteMigratedAttachment({ operation }, _observed, { signal }) {
      const name = csiAttachmentName(operation.identity, operation.nodeName);
      if (name === undefined) return end(operation);
      try {
        // Left by an attach through CSI, it would be orphaned (docs/behaviour/controllers.md A9).
        await env.kube.delete(resources.volumeAttachments, { name }, { signal });
      } catch (error) {
        if (signal.aborted) throw error;
        return fail(operation, errorChain(error));
      }
      return end(operation);
    },
    forgetAttachment: ({ operation }) => end(operation),
    failDetach: ({ operation, message }) => fail(operation, message),
  };
}

/** The last look before a detach: what is wanted may have changed since the decision. */
function detachable(
  { actual, desired, pending }: AttachDetachContext,
  { nodeName, uniqueName }: VolumeOnNode,
): Attachment | undefined {
  const attachment = actual.get(nodeName, uniqueName);
  if (attachment === undefined || pending.on(nodeName) || isWanted(attachment, desired)) return undefined;
  return diskReferredTo(attachment, desired) === undefined ? attachment : undefined;
}

function beginDetach(
  context: AttachDetachContext,
  attachment: Attachment,
  attachmentName: string | undefined,
  force: ForceReason | undefined,
): DiskOperation {
  const { uniqueName, nodeName } = attachment;
  // From here on it may be detached, whatever the answer: only an attach makes it sure again.
  attachment.detachTried = true;
  if (force !== undefined) {
    context.env.logger.warn("volume is detached by force: its node does not confirm the unmount", {
      volume: uniqueName,
      node: nodeName,
      reason: force,
    });
    context.env.meter
      .counter("attachdetach_controller_forced_detaches", {
        help: "Number of times the controller detached by force",
        labels: ["reason"],
      })
      .add(1, { reason: force });
  }
  const startedAtMs = context.env.clock.monotonicMs();
  const isMigrated = attachment.spec?.isMigrated === true;
  const of = { uniqueName, startedAtMs, attachmentName, isMigrated };
  return context.operations.begin("detach", scopeOf(attachment), of);
}

function nameOf({ volumeName, nodeName }: Attachment): string | undefined {
  try {
    return attachmentOfVolume(volumeName, nodeName);
  } catch {
    return undefined;
  }
}

/** It is gone from the node: pods that still want the disk are decided again before it is attached again. */
function forget(context: AttachDetachContext, attachment: Attachment): void {
  const { nodeName, identity } = attachment;
  const { actual, desired, caches } = context;
  actual.remove(attachment);
  const disk = diskReferredTo(attachment, desired);
  if (disk !== undefined) context.wakeDisk(disk);
  const keys = new Set([...desired.podsOfDisk(nodeName, identity), ...desired.undecidedPodsOn(nodeName)]);
  for (const key of keys) {
    desired.forgetDecision(key, identity);
    if (caches.pods.get(key) !== undefined) context.wakePod(key);
  }
  context.wakeDisk(identity);
}
