/**
 * What a driver's coming or going changes on this node's Node: the nodeid annotation and the topology labels.
 *
 * Invariants
 *  - Nothing is written when one label collides or the annotation is damaged.
 *  - Labels stay when the driver goes: other components may use them.
 * Source: docs/behaviour/node-agent.md 2.2, 2.3.
 */
import type { Node, Stored } from "@longshore/kube";
import type { DriverInfo } from "./driver-info.ts";

/** Node annotation: JSON object from driver name to node ID. */
export const nodeIDAnnotation = "csi.volume.kubernetes.io/nodeid";

/** What the driver says of itself cannot be written to the node's objects. */
export class NodeInfoError extends Error {
  override readonly name = "NodeInfoError";
}

/** What has to change on the Node; undefined: nothing. Null removes an annotation, as in a merge patch. */
export interface NodeInfoChange {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** What is to be reached on the Node. */
export type NodeInfoGoal =
  | { readonly kind: "install"; readonly name: string; readonly info: DriverInfo }
  | { readonly kind: "uninstall"; readonly name: string };

/** The Node as a change sees it, by a live reading. */
export interface ObservedNodeInfo {
  readonly goal: NodeInfoGoal;
  readonly node: Stored<Node> | undefined;
}

/** What comes next on the Node. */
export type NodeInfoStep =
  | { readonly step: "patch"; readonly metadata: NodeInfoChange }
  | { readonly step: "settle" }
  /** There is no Node: the caller tries again later. */
  | { readonly step: "waitForNode" }
  | { readonly step: "refuse"; readonly error: NodeInfoError };

/** Decides for the Node; pure. */
export function decideNodeInfoStep({ goal, node }: ObservedNodeInfo): NodeInfoStep {
  if (node === undefined) return { step: goal.kind === "install" ? "waitForNode" : "settle" };
  try {
    const metadata =
      goal.kind === "install"
        ? installOnNode(node, goal.name, goal.info)
        : uninstallFromNode(node, goal.name);
    return metadata === undefined ? { step: "settle" } : { step: "patch", metadata };
  } catch (error) {
    if (error instanceof NodeInfoError) return { step: "refuse", error };
    throw error;
  }
}

/** What installing the driver changes on the Node. @throws NodeInfoError on a colliding label or a damaged annotation */
export function installOnNode(node: Node, driverName: string, info: DriverInfo): NodeInfoChange | undefined {
  const current = node.metadata?.labels ?? {};
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(info.topology)) {
    const existing = current[key];
    if (existing === undefined) labels[key] = value;
    else if (existing !== value) {
      throw new NodeInfoError(
        `detected topology value collision: driver ${driverName} reported "${key}":"${value}" but existing label is "${key}":"${existing}"; remove the label or correct the driver`,
      );
    }
  }
  const nodeIDs = nodeIDsOf(node);
  const annotations =
    nodeIDs[driverName] === info.nodeID
      ? undefined
      : { [nodeIDAnnotation]: JSON.stringify({ ...nodeIDs, [driverName]: info.nodeID }) };
  return changeOf(annotations, labels);
}

/** What uninstalling the driver changes on the Node. */
export function uninstallFromNode(node: Node, driverName: string): NodeInfoChange | undefined {
  const { [driverName]: removed, ...others } = nodeIDsOf(node);
  if (removed === undefined) return undefined;
  const left = Object.keys(others).length > 0;
  return { annotations: { [nodeIDAnnotation]: left ? JSON.stringify(others) : null } };
}

function changeOf(
  annotations: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>>,
): NodeInfoChange | undefined {
  const labelled = Object.keys(labels).length > 0;
  if (annotations === undefined && !labelled) return undefined;
  return { ...(annotations !== undefined && { annotations }), ...(labelled && { labels }) };
}

function nodeIDsOf(node: Node): Readonly<Record<string, string>> {
  const text = node.metadata?.annotations?.[nodeIDAnnotation];
  if (text === undefined || text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      return value as Record<string, string>;
    }
  } catch {
    // Reported below, together with JSON of another shape.
  }
  throw new NodeInfoError(
    `Node ${node.metadata?.name}: annotation ${nodeIDAnnotation} is not a JSON object; remove it`,
  );
}
