/**
 * What the status reporter does next for its node. Pure. Source: docs/behaviour/node-agent.md 8.
 *
 *     createNode ──► registerNode ──► postStatus ──► markReportedInUse
 *
 * Invariant: the volume manager learns as reported what the stored Node names, as it was read or written in this pass.
 */
import type { Node, Stored } from "@longshore/kube";
import type { NodeVolumesStatus } from "@longshore/volumes";
import {
  featureGatesAnnotation,
  type NodeIdentity,
  type NodeStatusParts,
  nodeStatusOf,
  registeredNode,
  statusDiffers,
} from "./node-object.ts";

/** An unchanged status is posted this often, as a sign of life. */
const heartbeatMs = 5 * 60_000;

/** What the reporter sees of its node. */
export interface NodeObservation {
  readonly identity: NodeIdentity;
  /** The Node as it is stored; undefined: it does not exist. */
  readonly node: Stored<Node> | undefined;
  readonly volumes: NodeVolumesStatus;
  readonly now: Date;
  /** This pass has posted the status. */
  readonly isPosted: boolean;
}

/** One action of the reporter. */
export type NodeReportStep =
  | { readonly step: "createNode"; readonly node: Node }
  /** The Node carries the gates of another agent: writes labels, annotations and spec. */
  | { readonly step: "registerNode"; readonly node: Node }
  | { readonly step: "postStatus"; readonly status: NodeStatusParts }
  /** Passes to the volume manager which volumes the stored status names. */
  | { readonly step: "markReportedInUse"; readonly volumesInUse: readonly string[] };

/** Decides on the next step. */
export function decideNodeReportStep(observed: NodeObservation): NodeReportStep {
  const { identity, node, volumes, now, isPosted } = observed;
  if (node === undefined) return { step: "createNode", node: registeredNode(identity, undefined) };
  if (node.metadata.annotations?.[featureGatesAnnotation] !== identity.featureGates) {
    return { step: "registerNode", node: registeredNode(identity, node) };
  }
  const status = nodeStatusOf(identity, node, { ...volumes, now });
  return !isPosted && (isStale(node, now) || statusDiffers(node, status))
    ? { step: "postStatus", status }
    : { step: "markReportedInUse", volumesInUse: node.status?.volumesInUse ?? [] };
}

function isStale(node: Stored<Node>, now: Date): boolean {
  const lastBeat = node.status?.conditions?.find((c) => c.type === "Ready")?.lastHeartbeatTime;
  return lastBeat === undefined || now.getTime() - Date.parse(lastBeat) >= heartbeatMs;
}
