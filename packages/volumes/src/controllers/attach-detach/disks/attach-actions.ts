/** The actions of the steps that attach. Source: docs/behaviour/controllers.md A7 (attach). */
import { type Actions, observeAgain } from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import { specName } from "../../../framework/volume-spec.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import type { DesiredVolume } from "../desired-state.ts";
import type { DiskOperation } from "../disk-operations.ts";
import { multiAttachMessage } from "../multi-attach-message.ts";
import { scopeOf } from "../operation-scope.ts";
import { recoverAttachment } from "../recover-actual-state.ts";
import { csiAttachmentName } from "../volume-identity.ts";
import { attachInTree } from "./attach-in-tree.ts";
import { volumeAttachmentTimeoutMs } from "./decide-operation.ts";
import type { DiskStep, VolumeOnNode } from "./disk-step.ts";
import { emitAttachFailure, emitToPods } from "./emit-to-pods.ts";
import { readBeforeAttach, readOtherNodes } from "./live-evidence.ts";
import { type ObservedDisk, observeDisk } from "./observe-disk.ts";
import { attachmentOf, recordElsewhere } from "./record-elsewhere.ts";
import { storeVolumeAttachment } from "./volume-attachment-requests.ts";

type AttachActions = Pick<
  Actions<ObservedDisk, DiskStep>,
  | "reportMultiAttach"
  | "reportUnlisted"
  | "readOtherNodes"
  | "recordIntent"
  | "readBeforeAttach"
  | "refuseAttach"
  | "attachInTree"
  | "createVolumeAttachment"
  | "confirmAttach"
  | "failAttach"
  | "abandonAttach"
  | "recordDangling"
>;

/** The actions of the steps that attach. */
export function attachActions(context: AttachDetachContext): AttachActions {
  return {
    ...reportActions(context),
    ...beforeAttach(context),
    ...startAttach(context),
    ...endAttach(context),
  };
}

function reportActions(
  context: AttachDetachContext,
): Pick<AttachActions, "reportMultiAttach" | "reportUnlisted"> {
  return {
    reportMultiAttach({ otherNodes, ...on }) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return observeAgain;
      volume.multiAttachErrorReported = true;
      const otherPods = otherNodes.flatMap((name) =>
        context.desired
          .ofDisk(volume.identity)
          .filter((other) => other.nodeName === name && other.uniqueName === volume.uniqueName)
          .flatMap((other) => [...other.pods.values()]),
      );
      for (const pod of volume.pods.values()) {
        const message = multiAttachMessage(volume.spec, pod, otherPods);
        const subject = { apiVersion: "v1", kind: "Pod", ...pod };
        context.events.event(subject, "Warning", "FailedAttachVolume", message);
      }
      return observeAgain;
    },
    reportUnlisted({ message, ...on }) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return observeAgain;
      volume.waitReported = true;
      emitToPods(context, volume, "Warning", "FailedAttachVolume", message);
      return observeAgain;
    },
  };
}

function beforeAttach(
  context: AttachDetachContext,
): Pick<AttachActions, "readOtherNodes" | "recordIntent" | "readBeforeAttach" | "refuseAttach"> {
  return {
    async readOtherNodes({ otherNodes, ...on }, { identity, evidence }, { signal }) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return observeAgain;
      const live = await readOtherNodes(context, volume, otherNodes, signal);
      return { observed: observeDisk(context, identity, { ...evidence, otherNodes: live }) };
    },
    recordIntent(on) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return observeAgain;
      context.actual.put({ ...attachmentOf(volume), devicePath: "", confirmed: false, asked: false });
      return observeAgain;
    },
    async readBeforeAttach(on, { identity, evidence }, { signal }) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return observeAgain;
      const live = await readBeforeAttach(context, volume, signal);
      return { observed: observeDisk(context, identity, { ...evidence, attach: live }) };
    },
    refuseAttach({ part, message, volumeAttachment, ...on }) {
      const volume = desiredOf(context, on);
      const attachment = context.actual.get(on.nodeName, on.uniqueName);
      // Nothing was asked of the provider: the record of the intent goes again.
      if (attachment?.asked === false) context.actual.remove(attachment);
      // Its maker is gone: it is detached when no pod wants it.
      if (volumeAttachment !== undefined) recoverAttachment(context, volumeAttachment);
      if (volume === undefined) return observeAgain;
      emitAttachFailure(context, volume, part, message);
      const retryInMs = context.operations.refuse("attach", scopeOf(volume), context.env.clock.monotonicMs());
      context.env.logger.warn("volume_attach failed", { volume: volume.identity, retryInMs, error: message });
      return observeAgain;
    },
  };
}

function startAttach(
  context: AttachDetachContext,
): Pick<AttachActions, "attachInTree" | "createVolumeAttachment"> {
  return {
    attachInTree(on, { identity, evidence }) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return { observed: observeDisk(context, identity, evidence) };
      const operation = beginAttach(context, volume, undefined);
      const attachment = context.actual.get(on.nodeName, on.uniqueName);
      // From here on it may be attached, whatever becomes of the call.
      if (attachment !== undefined) attachment.asked = true;
      context.inBackground(async (signal) => {
        const outcome = await attachInTree(context, volume, signal);
        if (signal.aborted) return;
        context.operations.progress(operation, { outcome });
        context.wakeDisk(identity);
      });
      return observeAgain;
    },
    async createVolumeAttachment(on, { identity, evidence }, { signal }) {
      const volume = desiredOf(context, on);
      if (volume === undefined) return { observed: observeDisk(context, identity, evidence) };
      const name = csiAttachmentName(volume.uniqueName, volume.nodeName);
      // Before the request: the cache may show the object before the answer comes, and wakes only what has begun.
      const operation = beginAttach(context, volume, name);
      try {
        const stored = await withDeadline(context.env.clock, volumeAttachmentTimeoutMs, signal, (within) =>
          storeVolumeAttachment(context, volume, within),
        );
        context.operations.progress(operation, { sinceVersion: stored.metadata.resourceVersion });
      } catch (error) {
        if (signal.aborted) throw error;
        context.operations.progress(operation, { outcome: { kind: "failed", message: errorChain(error) } });
      }
      return observeAgain;
    },
  };
}

function endAttach(
  context: AttachDetachContext,
): Pick<AttachActions, "confirmAttach" | "failAttach" | "abandonAttach" | "recordDangling"> {
  const { actual, operations } = context;
  const fail = (operation: DiskOperation, part: "Attach" | "NewAttacher", message: string) => {
    if (operation.volume !== undefined) emitAttachFailure(context, operation.volume, part, message);
    const retryInMs = operations.fail(operation, context.env.clock.monotonicMs());
    context.env.logger.warn("volume_attach failed", {
      volume: operation.identity,
      retryInMs,
      error: message,
    });
    return observeAgain;
  };
  /** Nothing of this attach is on its node. */
  const forgetIntent = ({ isFirst, nodeName, uniqueName }: DiskOperation) => {
    const here = actual.get(nodeName, uniqueName);
    if (isFirst && here !== undefined) actual.remove(here);
  };
  return {
    confirmAttach({ operation, devicePath }) {
      const { volume } = operation;
      operations.succeed(operation);
      if (volume === undefined) return observeAgain;
      actual.put({ ...attachmentOf(volume), devicePath, confirmed: true });
      const message = `AttachVolume.Attach succeeded for volume "${specName(volume.spec)}" `;
      emitToPods(context, volume, "Normal", "SuccessfulAttachVolume", message);
      return observeAgain;
    },
    failAttach({ operation, message }) {
      const { volume } = operation;
      if (volume !== undefined) {
        // It may be attached nevertheless, and is detached when no pod wants it (docs/behaviour/controllers.md A7).
        actual.put({ ...attachmentOf(volume), devicePath: "", confirmed: false });
      }
      return fail(operation, "Attach", message);
    },
    abandonAttach({ operation, message }) {
      forgetIntent(operation);
      return fail(operation, "NewAttacher", message);
    },
    recordDangling({ operation, message, currentNode, devicePath }) {
      forgetIntent(operation);
      if (operation.volume !== undefined) {
        recordElsewhere(context, operation.volume, currentNode, devicePath);
      }
      return fail(operation, "Attach", message);
    },
  };
}

function beginAttach(
  context: AttachDetachContext,
  volume: DesiredVolume,
  attachmentName: string | undefined,
): DiskOperation {
  const { nodeName, uniqueName } = volume;
  context.env.logger.info("attaching volume", { volume: uniqueName, node: nodeName });
  const attachment = context.actual.get(nodeName, uniqueName);
  return context.operations.begin("attach", scopeOf(volume), {
    uniqueName,
    volume,
    isMigrated: volume.spec.isMigrated === true,
    isFirst: attachment?.asked === false,
    attachmentName,
    startedAtMs: context.env.clock.monotonicMs(),
  });
}

/** Undefined: no pod wants it any more. */
function desiredOf(
  context: AttachDetachContext,
  { nodeName, uniqueName }: VolumeOnNode,
): DesiredVolume | undefined {
  return context.desired.get(nodeName, uniqueName);
}
