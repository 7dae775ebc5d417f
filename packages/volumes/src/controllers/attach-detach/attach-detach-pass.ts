/**
 * One pass of the attach/detach controller: all detaches, then all attaches, then the node statuses.
 * Detach comes first, so that a volume whose pod moved is freed. Source: docs/behaviour/controllers.md A7.
 *
 * Invariants
 *  - Before a detach starts, the node's status no longer lists the volume (its write has succeeded); what
 *    then fails is listed again.
 *  - Before an in-tree attach starts, it is in the node's record of uncertain volumes, as a CSI attach is in a
 *    VolumeAttachment: a controller that dies during the attach leaves a trace.
 *  - CSI attaches nothing of a plugin while it is not known what the in-tree code has attached.
 */
import type { Node, Stored } from "@longshore/kube";
import { withDeadline } from "@longshore/runtime";
import { isMultiAttachAllowed } from "../../framework/names.ts";
import type { OperationKey } from "../../framework/operations.ts";
import { specName, type VolumeSpec } from "../../framework/spec.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { Attachment } from "./actual-state.ts";
import { type AttachDetachContext, formsAttached, managedNode } from "./context.ts";
import type { DesiredVolume } from "./desired-state.ts";
import { isOutOfService, isWanted, nodeUses, unknownItCouldBe } from "./detach-guards.ts";
import { multiAttachMessage } from "./multi-attach-message.ts";
import { writeNodeStatuses } from "./node-status-writer.ts";
import {
  attachmentOf,
  attachVolume,
  detachVolume,
  operationNames,
  operationTimeoutMs,
  podEvent,
} from "./operations.ts";
import { csiAttachmentName } from "./volume-identity.ts";

/** How a detach may start. */
type DetachStep =
  | { readonly kind: "detach"; readonly force: "timeout" | "out-of-service" | undefined }
  | { readonly kind: "wait"; readonly retryInMs?: number };

/** Runs one pass. */
export async function attachDetachPass(context: AttachDetachContext, signal: AbortSignal): Promise<void> {
  await startDetaches(context, signal);
  const toRecord = startAttaches(context);
  const failed = await writeStatuses(context, signal);
  for (const { volume, intent } of toRecord) {
    if (!failed.has(volume.nodeName) && launchAttach(context, volume, intent)) continue;
    if (intent !== undefined) context.actual.remove(intent); // Nothing was asked of the provider.
  }
}

/** Writes what is dirty; a failed write wakes the controller again. */
async function writeStatuses(
  context: AttachDetachContext,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const { failed } = await writeNodeStatuses(
    { kube: context.env.kube, logger: context.env.logger },
    context.actual,
    (name) => context.caches.nodes.get(name),
    signal,
  );
  if (failed.size > 0) context.wakeIn(statusRetryMs);
  return failed;
}

/** Pause before failed status writes are tried again, in milliseconds. */
const statusRetryMs = 1_000;

async function startDetaches(context: AttachDetachContext, signal: AbortSignal): Promise<void> {
  const ready: {
    readonly attachment: Attachment;
    readonly force: "timeout" | "out-of-service" | undefined;
  }[] = [];
  for (const attachment of context.actual.all()) {
    const step = decideDetach(context, attachment);
    if (step === undefined) continue;
    if (step.kind === "wait") {
      if (step.retryInMs !== undefined) context.wakeIn(step.retryInMs);
      continue;
    }
    context.actual.setReported(attachment, false);
    ready.push({ attachment, force: step.force });
  }
  if (ready.length === 0) return;
  const failed = await writeStatuses(context, signal);
  for (const { attachment, force } of ready) {
    if (failed.has(attachment.nodeName)) continue;
    startDetach(context, attachment, force);
  }
}

/** What to do about one attachment; undefined: it is wanted. */
function decideDetach(context: AttachDetachContext, attachment: Attachment): DetachStep | undefined {
  const { desired, executor, settings, env } = context;
  const key = operationKey(attachment.identity, attachment.nodeName, attachment.spec);
  const pending = executor.isOperationPending(key);
  if (isWanted(attachment, desired)) {
    attachment.detachRequestedAtMs = undefined;
    if (!pending) {
      if (attachment.detachTried) context.actual.doubt(attachment);
      context.actual.setReported(attachment, true);
    }
    return undefined;
  }
  if (pending) return { kind: "wait" };
  const unknown = unknownItCouldBe(
    attachment,
    desired.undecidedOn(attachment.nodeName),
    context.ownersOf(attachment),
  );
  if (unknown !== undefined) {
    env.logger.debug("attachment kept: it could be a volume that cannot be named", {
      volume: attachment.uniqueName,
      node: attachment.nodeName,
      unknown: unknown.reason,
    });
    return { kind: "wait" };
  }
  const nowMs = env.clock.monotonicMs();
  attachment.detachRequestedAtMs ??= nowMs;
  const node = context.caches.nodes.get(attachment.nodeName);
  const force = forceOf(context, attachment, node, nowMs);
  const mounted = node !== undefined && nodeUses(node, attachment, formsAttached(context, attachment));
  if (mounted && force === undefined) {
    const { forceDetachAfterMs } = settings;
    if (forceDetachAfterMs === undefined) return { kind: "wait" };
    return { kind: "wait", retryInMs: attachment.detachRequestedAtMs + forceDetachAfterMs - nowMs + 1 };
  }
  const check = executor.check(key, operationNames.detach);
  if (check.kind === "backoff") return { kind: "wait", retryInMs: check.retryInMs };
  return { kind: "detach", force };
}

function forceOf(
  context: AttachDetachContext,
  attachment: Attachment,
  node: Stored<Node> | undefined,
  nowMs: number,
): "timeout" | "out-of-service" | undefined {
  if (isOutOfService(node)) return "out-of-service";
  const { forceDetachAfterMs } = context.settings;
  const elapsedMs = nowMs - (attachment.detachRequestedAtMs ?? nowMs);
  return forceDetachAfterMs !== undefined && elapsedMs > forceDetachAfterMs ? "timeout" : undefined;
}

function startDetach(
  context: AttachDetachContext,
  attachment: Attachment,
  force: "timeout" | "out-of-service" | undefined,
): void {
  const key = operationKey(attachment.identity, attachment.nodeName, attachment.spec);
  const result = context.executor.startOperation(key, operationNames.detach, (signal) =>
    withDeadline(context.env.clock, operationTimeoutMs, signal, (within) =>
      detachVolume(context, attachment, force !== undefined, within),
    ),
  );
  if (result.kind !== "started") {
    context.actual.setReported(attachment, true);
    return;
  }
  if (force === undefined) return;
  context.env.logger.warn("volume is detached by force: its node does not confirm the unmount", {
    volume: attachment.uniqueName,
    node: attachment.nodeName,
    reason: force,
  });
  context.env.meter
    .counter("attachdetach_controller_forced_detaches", {
      help: "Number of times the controller detached by force",
      labels: ["reason"],
    })
    .add(1, { reason: force });
}

/** An in-tree attach that waits for its record to be written. */
interface AttachToRecord {
  readonly volume: DesiredVolume;
  /** What was put into the actual state for it; undefined: the volume was uncertain before. */
  readonly intent: Attachment | undefined;
}

/** Starts the attaches that can start at once. @returns those that have to be recorded first */
function startAttaches(context: AttachDetachContext): readonly AttachToRecord[] {
  const toRecord: AttachToRecord[] = [];
  for (const volume of context.desired.volumes()) {
    if (!mayAttach(context, volume)) continue;
    if (volume.inTreePlugin === undefined || volume.pluginName === csiPluginName) {
      launchAttach(context, volume, undefined);
      continue;
    }
    const isKnown = context.actual.get(volume.nodeName, volume.uniqueName) !== undefined;
    const entry = context.actual.put({ ...attachmentOf(volume), devicePath: "", confirmed: false });
    toRecord.push({ volume, intent: isKnown ? undefined : entry });
  }
  return toRecord;
}

/** Whether the volume is to be attached now. */
function mayAttach(context: AttachDetachContext, volume: DesiredVolume): boolean {
  const { actual, executor } = context;
  const { nodeName, identity, uniqueName, spec } = volume;
  const present = actual.get(nodeName, uniqueName);
  if (present?.confirmed === true) return false;
  if (managedNode(context, nodeName) === undefined) return false;
  const others = actual.ofIdentity(identity).filter((other) => other !== present);
  // Attached to this node under another name: that attachment is detached first.
  if (others.some((other) => other.nodeName === nodeName)) return false;
  const check = executor.check(operationKey(identity, nodeName, spec), operationNames.attach);
  if (check.kind === "pending") return false;
  if (!isMultiAttachAllowed(spec)) {
    const elsewhere = others.filter((other) => other.confirmed).map((other) => other.nodeName);
    if (elsewhere.length > 0) {
      reportMultiAttach(context, volume, elsewhere);
      return false;
    }
  }
  if (isInTreeUnknown(context, volume)) return false;
  if (check.kind === "backoff") context.wakeIn(check.retryInMs);
  return check.kind === "free";
}

/**
 * Whether the in-tree code may have attached the disk without a trace: then CSI does not attach it, unless
 * it has a VolumeAttachment already. The pods get one event that says what the attach waits for.
 */
function isInTreeUnknown(context: AttachDetachContext, volume: DesiredVolume): boolean {
  const { nodeName, identity, inTreePlugin, pluginName, spec } = volume;
  if (inTreePlugin === undefined || pluginName !== csiPluginName) return false;
  const reason = context.unlisted.get(inTreePlugin);
  if (reason === undefined) return false;
  const attachment = csiAttachmentName(identity, nodeName);
  if (attachment !== undefined && context.caches.attachments.get(attachment) !== undefined) return false;
  if (!volume.waitReported && reason !== "") {
    volume.waitReported = true;
    const message =
      `Volume "${specName(spec)}" is not attached to node ${nodeName} yet: what the in-tree code of ${inTreePlugin} ` +
      `has attached is not known until its provider lists it; asked again with back-off (${reason})`;
    podEvent(context, volume, "Warning", "FailedAttachVolume", message);
  }
  return true;
}

/** False when something is in its way. */
function launchAttach(
  context: AttachDetachContext,
  volume: DesiredVolume,
  intent: Attachment | undefined,
): boolean {
  const { executor, env } = context;
  const { nodeName, identity, uniqueName, spec } = volume;
  const key = operationKey(identity, nodeName, spec);
  const { kind } = executor.startOperation(key, operationNames.attach, (signal) =>
    withDeadline(env.clock, operationTimeoutMs, signal, (within) =>
      attachVolume(context, volume, intent, within),
    ),
  );
  if (kind === "started") env.logger.info("attaching volume", { volume: uniqueName, node: nodeName });
  return kind === "started";
}

/** Once for each volume and node. */
function reportMultiAttach(
  context: AttachDetachContext,
  volume: DesiredVolume,
  otherNodes: readonly string[],
): void {
  if (volume.multiAttachErrorReported) return;
  volume.multiAttachErrorReported = true;
  const otherPods = otherNodes.flatMap((name) => [
    ...(context.desired.get(name, volume.uniqueName)?.pods.values() ?? []),
  ]);
  for (const pod of volume.pods.values()) {
    const message = multiAttachMessage(volume.spec, pod, otherPods);
    podEvent(context, { ...volume, pods: new Map([["", pod]]) }, "Warning", "FailedAttachVolume", message);
  }
}

/** One operation a disk; a disk that may be on several nodes, one a disk and node. */
export function operationKey(identity: string, nodeName: string, spec: VolumeSpec | undefined): OperationKey {
  return isMultiAttachAllowed(spec) ? { volumeName: identity, nodeName } : { volumeName: identity };
}
