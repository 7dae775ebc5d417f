/**
 * What the status reporter does next for its node. Pure. Source: docs/behaviour/node-agent.md 8.
 *
 *     waitForVolumes: there is no Node, and what is mounted is not read back yet
 *     readNode ──► createNode ──► registerNode ──► postStatus ──────┐
 *                                                  postVolumesInUse ┴► markReportedInUse
 *     endAgent: the Node that the agent has registered is gone
 *
 * Invariant: no agent outlives its Node. What it has written beside it, such as the CSINode, goes with the Node; only an agent that starts
 * writes all of it, and is not Ready before (docs/contract.md C1).
 *
 * Invariant: a Node is made with the volumes that were found mounted, in the same request. One that named none would say that all may be
 * detached (docs/contract.md C2). Its record of uncertain volumes names the Flexvolumes among them: what recorded their attachments went
 * with the Node before (C4).
 *
 * Invariant: where the Node is Ready and names this agent's gates, the CSINode states them (docs/contract.md C1). So after a restart with
 * other gates the status of the agent before, Ready, is replaced (postStatus) before the gates are written (registerNode).
 *
 * Invariant: the volume manager learns as reported what the stored Node names, as it was read or written in this pass or
 * shortly before. The node agent alone writes that list.
 */
import type { Node, Stored } from "@longshore/kube";
import type { NodeVolumesStatus } from "@longshore/volumes";
import {
  conditionsDiffer,
  createdNode,
  featureGatesAnnotation,
  type NodeIdentity,
  type NodeStatusParts,
  nodeStatusOf,
  registeredNode,
  volumesInUseDiffer,
} from "./node-object.ts";

/** What is known of the stored Node counts as current for this long, in milliseconds: only this agent writes its volumes. */
export const nodeCurrentMs = 10_000;

/** An unchanged status is posted this often, as a sign of life. */
const heartbeatMs = 5 * 60_000;

/** What the reporter sees of its node. */
export interface NodeObservation {
  readonly identity: NodeIdentity;
  /** The Node as it is stored; undefined: it does not exist. */
  readonly node: Stored<Node> | undefined;
  /** It was read or written in this pass, not in one before. */
  readonly isLive: boolean;
  readonly volumes: NodeVolumesStatus;
  readonly now: Date;
  /** The UID of the Node that this agent has seen first; undefined: none yet. */
  readonly registeredUid: string | undefined;
  /** This pass has posted the status. */
  readonly isPosted: boolean;
}

/** One action of the reporter. */
export type NodeReportStep =
  /** The Node was deleted, or is another one by now: the agent cannot go on. */
  | { readonly step: "endAgent" }
  /** A Node cannot be made before what is mounted is known. */
  | { readonly step: "waitForVolumes" }
  | { readonly step: "createNode"; readonly node: Node }
  /** The Node carries the gates of another agent: writes labels, annotations and spec. */
  | { readonly step: "registerNode"; readonly node: Node }
  | { readonly step: "postStatus"; readonly status: NodeStatusParts }
  /** Nothing else has changed: no part that others write as well is sent. */
  | { readonly step: "postVolumesInUse"; readonly volumesInUse: readonly string[] }
  /** The status is to be made from the Node as it is now. */
  | { readonly step: "readNode" }
  /** Passes to the volume manager which volumes the stored status names. */
  | { readonly step: "markReportedInUse"; readonly volumesInUse: readonly string[] };

/** Decides on the next step. */
export function decideNodeReportStep(observed: NodeObservation): NodeReportStep {
  const { identity, node, volumes, now, isLive, isPosted, registeredUid } = observed;
  if (registeredUid !== undefined && node?.metadata.uid !== registeredUid) return { step: "endAgent" };
  if (node === undefined) {
    const { volumesFound, attachmentsFound } = volumes;
    if (volumesFound === undefined) return { step: "waitForVolumes" };
    return { step: "createNode", node: createdNode(identity, volumesFound, attachmentsFound) };
  }
  const status = nodeStatusOf(identity, node, { ...volumes, now });
  if (node.metadata.annotations?.[featureGatesAnnotation] !== identity.featureGates) {
    // With the gates that run, Ready means that the CSINode states them. What is stored is the word of the agent before.
    if (volumes.error !== undefined && !isPosted && conditionsDiffer(node, status)) {
      return isLive ? { step: "postStatus", status } : { step: "readNode" };
    }
    return { step: "registerNode", node: registeredNode(identity, node) };
  }
  if (!isPosted && (isStale(node, now) || conditionsDiffer(node, status))) {
    return isLive ? { step: "postStatus", status } : { step: "readNode" };
  }
  const { volumesInUse } = status;
  return !isPosted && volumesInUse !== undefined && volumesInUseDiffer(node, volumesInUse)
    ? { step: "postVolumesInUse", volumesInUse }
    : { step: "markReportedInUse", volumesInUse: node.status?.volumesInUse ?? [] };
}

function isStale(node: Stored<Node>, now: Date): boolean {
  const lastBeat = node.status?.conditions?.find((c) => c.type === "Ready")?.lastHeartbeatTime;
  return lastBeat === undefined || now.getTime() - Date.parse(lastBeat) >= heartbeatMs;
}
