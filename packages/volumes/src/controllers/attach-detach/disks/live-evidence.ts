/**
 * What is read of the API server right before an attach or a detach: a cache may be older than what matters now.
 * Source: docs/decisions/0019-evidence-that-nothing-is-attached.md; docs/behaviour/controllers.md A7.
 */
import { type Node, resources, type Stored, type VolumeAttachment } from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import { pluginsChangingOver, uncertainVolumesOf } from "@longshore/storage";
import { gatesOfPlugin } from "../../../csimigration/volume-gates.ts";
import type { Attachment } from "../actual-state.ts";
import { type AttachDetachContext, formsAttached } from "../attach-detach-context.ts";
import { listsPlugin } from "../backend-decision.ts";
import type { DesiredVolume } from "../desired-state.ts";
import { isOutOfService, nodeUses } from "../detach-guards.ts";
import { readActiveDrivers } from "../pods/read-csi-node.ts";
import { csiAttachmentName, type VolumeIdentity } from "../volume-identity.ts";
import type { VolumeOnNode } from "./disk-step.ts";

/** Deadline of the reads before one step, in milliseconds. */
const readTimeoutMs = 30_000;

/** Before a detach. */
export interface DetachEvidence extends VolumeOnNode {
  readonly kind: "before detach";
  /** There is no such Node any more. */
  readonly isNodeMissing: boolean;
  readonly isInUse: boolean;
  /** The node's CSINode is missing although this driver has VolumeAttachments there. */
  readonly activeDriver: string | undefined;
  /** CSI has a VolumeAttachment for the disk there. */
  readonly hasVolumeAttachment: boolean;
}

/** Before an in-tree attach. */
export interface AttachEvidence extends VolumeOnNode {
  readonly kind: "before attach";
  /** The node's record of uncertain volumes names it: that of a node that was created again does not yet. */
  readonly isRecorded: boolean;
  /** The node's agent has announced that it hands the plugin over to CSI. */
  readonly isChangingOver: boolean;
  /** The CSINode lists the plugin. */
  readonly hasChangedOver: boolean;
  readonly volumeAttachment: Stored<VolumeAttachment> | undefined;
}

/** Before an attach of a disk that may have one writer and that other nodes may have. */
export interface OtherNodesEvidence extends VolumeOnNode {
  readonly kind: "other nodes";
  readonly inUseOn: readonly string[];
}

/** What could not be read. */
export interface NoEvidence extends VolumeOnNode {
  readonly kind: "failed";
  readonly of: "before detach" | "before attach" | "other nodes";
  readonly message: string;
}

/** The reads of one pass; good for the step that follows only. */
export interface LiveEvidence {
  readonly detach?: DetachEvidence | NoEvidence;
  readonly attach?: AttachEvidence | NoEvidence;
  readonly otherNodes?: OtherNodesEvidence | NoEvidence;
}

/** Reads what a detach depends on. A failure is an answer. */
export async function readBeforeDetach(
  context: AttachDetachContext,
  attachment: Attachment,
  asks: { readonly asksNode: boolean; readonly asksVolumeAttachment: boolean },
  signal: AbortSignal,
): Promise<DetachEvidence | NoEvidence> {
  const { nodeName, uniqueName } = attachment;
  const nothing = { isNodeMissing: false, isInUse: false, activeDriver: undefined };
  return orFailure(context, { nodeName, uniqueName }, "before detach", signal, async (within) => {
    const onNode = asks.asksNode ? await readNode(context, attachment, within) : nothing;
    const hasVolumeAttachment =
      asks.asksVolumeAttachment && (await readAttachment(context, attachment, within)) !== undefined;
    return { kind: "before detach", nodeName, uniqueName, ...onNode, hasVolumeAttachment };
  });
}

async function readNode(
  context: AttachDetachContext,
  attachment: Attachment,
  signal: AbortSignal,
): Promise<Pick<DetachEvidence, "isNodeMissing" | "isInUse" | "activeDriver">> {
  const { nodeName } = attachment;
  const { kube } = context.env;
  const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
  const found = { isNodeMissing: node === undefined, isInUse: false, activeDriver: undefined };
  if (node === undefined) return found;
  if (nodeUses(node, attachment, formsAttached(context, attachment))) return { ...found, isInUse: true };
  const { inTreePlugin } = context.ownersOf(attachment);
  const driver = inTreePlugin === undefined ? undefined : gatesOfPlugin(inTreePlugin)?.driverName;
  if (driver === undefined || context.settings.compat) return found;
  const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
  const drivers = csiNode === undefined ? await readActiveDrivers(context, nodeName, signal) : [];
  return { ...found, activeDriver: drivers.includes(driver) ? driver : undefined };
}

/**
 * Reads what an in-tree attach depends on: that the node's record has the volume, that the node has not changed over to
 * CSI since it was decided and is not about to (its agent announces that before it looks at the record, so one of the two
 * sees the other), and that CSI does not hold the disk there. A failure is an answer.
 */
export async function readBeforeAttach(
  context: AttachDetachContext,
  volume: DesiredVolume,
  signal: AbortSignal,
): Promise<AttachEvidence | NoEvidence> {
  const { nodeName, uniqueName, inTreePlugin = "" } = volume;
  const { kube } = context.env;
  return orFailure(context, { nodeName, uniqueName }, "before attach", signal, async (within) => {
    const [node, csiNode, volumeAttachment] = await Promise.all([
      kube.get(resources.nodes, { name: nodeName }, { signal: within }),
      kube.get(resources.csiNodes, { name: nodeName }, { signal: within }),
      readAttachment(context, volume, within),
    ]);
    return {
      kind: "before attach",
      nodeName,
      uniqueName,
      isRecorded: uncertainVolumesOf(node).includes(uniqueName),
      isChangingOver: pluginsChangingOver(node).includes(inTreePlugin),
      hasChangedOver: csiNode !== undefined && listsPlugin(csiNode, inTreePlugin),
      volumeAttachment,
    };
  });
}

/** Reads whether any of the nodes on which the disk is uncertain uses it. A failure is an answer. */
export async function readOtherNodes(
  context: AttachDetachContext,
  volume: DesiredVolume,
  otherNodes: readonly string[],
  signal: AbortSignal,
): Promise<OtherNodesEvidence | NoEvidence> {
  const { nodeName, uniqueName, identity } = volume;
  return orFailure(context, { nodeName, uniqueName }, "other nodes", signal, async (within) => {
    const nodes = await Promise.all(
      otherNodes.map((name) => context.env.kube.get(resources.nodes, { name }, { signal: within })),
    );
    const inUseOn = nodes.flatMap((node) =>
      node !== undefined && !isOutOfService(node) && usesDisk(context, node, identity)
        ? [node.metadata.name]
        : [],
    );
    return { kind: "other nodes", nodeName, uniqueName, inUseOn };
  });
}

function usesDisk(context: AttachDetachContext, node: Stored<Node>, identity: VolumeIdentity): boolean {
  return context.actual
    .ofIdentity(identity)
    .filter((attachment) => attachment.nodeName === node.metadata.name)
    .some((attachment) => nodeUses(node, attachment, formsAttached(context, attachment)));
}

/** The VolumeAttachment by which CSI has the disk on the node, as the API server has it now. */
async function readAttachment(
  context: AttachDetachContext,
  { identity, nodeName }: Pick<Attachment, "identity" | "nodeName">,
  signal: AbortSignal,
): Promise<Stored<VolumeAttachment> | undefined> {
  const name = csiAttachmentName(identity, nodeName);
  if (name === undefined) return undefined;
  return context.env.kube.get(resources.volumeAttachments, { name }, { signal });
}

async function orFailure<T>(
  { env }: AttachDetachContext,
  on: VolumeOnNode,
  of: NoEvidence["of"],
  signal: AbortSignal,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T | NoEvidence> {
  try {
    return await withDeadline(env.clock, readTimeoutMs, signal, read);
  } catch (error) {
    if (signal.aborted) throw error;
    return { kind: "failed", of, ...on, message: errorChain(error) };
  }
}
