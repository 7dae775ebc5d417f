/**
 * What the decision on one disk needs: where it is or may be attached, who wants it where, what is under way, what the
 * Nodes say. Reads caches and the controller's own state, in one go. Source: docs/behaviour/controllers.md A7.
 */
import type { Node, Stored, VolumeAttachment } from "@longshore/kube";
import { compareResourceVersions } from "@longshore/kube";
import { specName } from "../../../framework/volume-spec.ts";
import { csiPluginName } from "../../../plugins/csi/csi-names.ts";
import type { Attachment } from "../actual-state.ts";
import { type AttachDetachContext, formsAttached, managedNode } from "../attach-detach-context.ts";
import type { DesiredVolume, UndecidedVolume } from "../desired-state.ts";
import {
  diskReferredTo,
  isOutOfService,
  isReady,
  isWanted,
  nodeUses,
  unknownItCouldBe,
} from "../detach-guards.ts";
import type { DiskOperation } from "../disk-operations.ts";
import { scopeOf } from "../operation-scope.ts";
import { csiAttachmentName, provisionalIdentity, type VolumeIdentity } from "../volume-identity.ts";
import type { LiveEvidence } from "./live-evidence.ts";

/** One attachment of the disk, certain or not, and what affects its detach. */
export interface ObservedAttachment {
  readonly nodeName: string;
  readonly uniqueName: string;
  readonly isCsi: boolean;
  readonly isConfirmed: boolean;
  readonly isReported: boolean;
  /** False: only recorded for an attach that was not asked of the provider yet. */
  readonly isAsked: boolean;
  readonly isDetachTried: boolean;
  /** Monotonic, in milliseconds. */
  readonly detachRequestedAtMs: number | undefined;
  readonly isShared: boolean;
  /** A pod on the node wants it. */
  readonly isWanted: boolean;
  /** The disk that it is, as a pod on the node refers to it; undefined: this one, or not known. */
  readonly disk: VolumeIdentity | undefined;
  /** A pod on the node is not decided as the caches show it. */
  readonly hasPendingPods: boolean;
  /** A volume of a pod on the node that cannot be named, and that this could be. */
  readonly unknown: UndecidedVolume | undefined;
  /** The node's status and record say what they should of it: their write has succeeded. */
  readonly isWritten: boolean;
  /** It was listed on the node, or is known to be attached there otherwise: the node mounts nothing else. */
  readonly mayBeMounted: boolean;
  /** Undefined: there is no such node. */
  readonly node: ObservedNode | undefined;
  /** Where there is no node: the monotonic time since which it has been missing, in milliseconds. */
  readonly nodeMissingSinceMs: number;
  /** Monotonic time before which a failed detach is not repeated, in milliseconds. */
  readonly retryAtMs: number;
}

/** The node of an attachment. */
export interface ObservedNode {
  readonly isOutOfService: boolean;
  /** Its kubelet reports that it is Ready. */
  readonly isReady: boolean;
  /** It says that it uses the disk. */
  readonly isInUse: boolean;
}

/** The disk as wanted on one node, and what affects its attach. */
export interface ObservedDemand {
  readonly nodeName: string;
  readonly uniqueName: string;
  readonly volumeName: string;
  readonly isCsi: boolean;
  readonly isShared: boolean;
  /** Undefined: its plugin cannot migrate. */
  readonly inTreePlugin: string | undefined;
  readonly isNodeManaged: boolean;
  /** One of its pods is not decided as the caches show it. */
  readonly hasPendingPods: boolean;
  readonly isMultiAttachReported: boolean;
  readonly isWaitReported: boolean;
  /** It is not known what the in-tree code has attached; undefined: it is known, or does not matter. */
  readonly unlisted: { readonly why: string; readonly hasVolumeAttachment: boolean } | undefined;
  /** Other nodes that have a VolumeAttachment of the disk which was recovered while the volume was missing. */
  readonly elsewhereByName: readonly string[];
  /** What is attached here under its in-tree name is not known to be this disk yet. */
  readonly isUnidentified: boolean;
  /** Its VolumeAttachment here is being deleted as one of a volume that was missing. */
  readonly isDetachedByName: boolean;
  /** Monotonic time before which a failed attach is not repeated, in milliseconds. */
  readonly retryAtMs: number;
}

/** An operation under way, and the VolumeAttachment that it waits for. */
export interface ObservedOperation {
  readonly operation: DiskOperation;
  readonly volumeAttachment: Stored<VolumeAttachment> | undefined;
  /** The cache shows at least the state in which the operation found its VolumeAttachment. */
  readonly isCacheCurrent: boolean;
}

/** One disk. */
export interface ObservedDisk {
  readonly identity: VolumeIdentity;
  /** Monotonic, in milliseconds. */
  readonly nowMs: number;
  readonly isCompat: boolean;
  /** Time without a confirmed unmount after which a detach is forced, in milliseconds; undefined: never. */
  readonly forceDetachAfterMs: number | undefined;
  readonly attachments: readonly ObservedAttachment[];
  readonly demands: readonly ObservedDemand[];
  readonly operations: readonly ObservedOperation[];
  /** What was read of the API server in this pass. */
  readonly evidence: LiveEvidence | undefined;
}

/** Observes the disk. */
export function observeDisk(
  context: AttachDetachContext,
  identity: VolumeIdentity,
  evidence?: LiveEvidence,
): ObservedDisk {
  const { actual, desired, operations, settings, env } = context;
  return {
    identity,
    nowMs: env.clock.monotonicMs(),
    isCompat: settings.compat,
    forceDetachAfterMs: settings.forceDetachAfterMs,
    attachments: actual.ofIdentity(identity).map((attachment) => observeAttachment(context, attachment)),
    demands: desired.ofDisk(identity).map((volume) => observeDemand(context, volume)),
    operations: operations.of(identity).map((operation) => observeOperation(context, operation)),
    evidence,
  };
}

function observeAttachment(context: AttachDetachContext, attachment: Attachment): ObservedAttachment {
  const { actual, desired, pending, operations, caches } = context;
  const { nodeName } = attachment;
  const isWantedNow = isWanted(attachment, desired);
  const scope = scopeOf(attachment);
  return {
    nodeName,
    uniqueName: attachment.uniqueName,
    isCsi: attachment.pluginName === csiPluginName,
    isConfirmed: attachment.confirmed,
    isReported: attachment.reported,
    isAsked: attachment.asked,
    isDetachTried: attachment.detachTried,
    detachRequestedAtMs: attachment.detachRequestedAtMs,
    isShared: scope.isShared,
    isWanted: isWantedNow,
    disk: diskReferredTo(attachment, desired),
    hasPendingPods: pending.on(nodeName),
    unknown: isWantedNow
      ? undefined
      : unknownItCouldBe(attachment, desired.undecidedOn(nodeName), context.ownersOf(attachment)),
    isWritten: actual.isWritten(attachment),
    mayBeMounted: attachment.wasListed || attachment.dangling || isAttachedByCsi(context, attachment),
    node: observeNode(context, caches.nodes.get(nodeName), attachment),
    nodeMissingSinceMs: context.missingNodes.sinceMs(nodeName),
    retryAtMs: operations.retryAtMs("detach", scope),
  };
}

/** Whether the disk's VolumeAttachment on the node says attached. */
function isAttachedByCsi(context: AttachDetachContext, { identity, nodeName }: Attachment): boolean {
  return volumeAttachmentOf(context, { identity, nodeName })?.status?.attached === true;
}

/** The disk's VolumeAttachment on the node, from the cache. */
function volumeAttachmentOf(
  { caches }: AttachDetachContext,
  { identity, nodeName }: Pick<Attachment, "identity" | "nodeName">,
): Stored<VolumeAttachment> | undefined {
  const name = csiAttachmentName(identity, nodeName);
  return name === undefined ? undefined : caches.attachments.get(name);
}

function observeNode(
  context: AttachDetachContext,
  node: Stored<Node> | undefined,
  attachment: Attachment,
): ObservedAttachment["node"] {
  if (node === undefined) return undefined;
  return {
    isOutOfService: isOutOfService(node),
    isReady: isReady(node),
    isInUse: nodeUses(node, attachment, formsAttached(context, attachment)),
  };
}

function observeDemand(context: AttachDetachContext, volume: DesiredVolume): ObservedDemand {
  const { operations, pending, unlisted } = context;
  const { nodeName, identity, inTreePlugin, spec } = volume;
  const isCsi = volume.pluginName === csiPluginName;
  const whyUnlisted = inTreePlugin !== undefined && isCsi ? unlisted.get(inTreePlugin) : undefined;
  const scope = scopeOf(volume);
  const provisional = provisionalIdentity(identity, nodeName);
  return {
    nodeName,
    uniqueName: volume.uniqueName,
    volumeName: specName(spec),
    isCsi,
    isShared: scope.isShared,
    inTreePlugin,
    isNodeManaged: managedNode(context, nodeName) !== undefined,
    hasPendingPods: [...volume.pods.keys()].some((key) => pending.has(key)),
    isMultiAttachReported: volume.multiAttachErrorReported,
    isWaitReported: volume.waitReported,
    unlisted:
      whyUnlisted === undefined
        ? undefined
        : { why: whyUnlisted, hasVolumeAttachment: volumeAttachmentOf(context, volume) !== undefined },
    elsewhereByName: elsewhereByName(context, volume),
    isUnidentified: isUnidentified(context, volume),
    isDetachedByName: provisional !== undefined && operations.of(provisional).length > 0,
    retryAtMs: operations.retryAtMs("attach", scope),
  };
}

function isUnidentified(
  { actual }: AttachDetachContext,
  { nodeName, inTreeName, identity }: DesiredVolume,
): boolean {
  const named = inTreeName === undefined ? undefined : actual.get(nodeName, inTreeName);
  return named !== undefined && named.identity !== identity;
}

function elsewhereByName({ actual }: AttachDetachContext, volume: DesiredVolume): readonly string[] {
  const nodes: string[] = [];
  for (const { nodeName, identity } of actual.provisional) {
    if (nodeName === volume.nodeName) continue;
    if (provisionalIdentity(volume.identity, nodeName) === identity) nodes.push(nodeName);
  }
  return nodes;
}

function observeOperation(context: AttachDetachContext, operation: DiskOperation): ObservedOperation {
  const { attachmentName, sinceVersion } = operation;
  if (attachmentName === undefined) return { operation, volumeAttachment: undefined, isCacheCurrent: true };
  const { attachments } = context.caches;
  const volumeAttachment = attachments.get(attachmentName);
  return {
    operation,
    volumeAttachment,
    isCacheCurrent:
      sinceVersion === undefined ||
      attachments.progress.hasSeen(sinceVersion) ||
      isAtLeast(volumeAttachment?.metadata.resourceVersion, sinceVersion),
  };
}

function isAtLeast(version: string | undefined, since: string): boolean {
  if (version === undefined) return false;
  const order = compareResourceVersions(version, since);
  return order !== undefined && order >= 0;
}
