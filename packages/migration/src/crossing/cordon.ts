/**
 * Cordons for a crossing. A mark on the node says that the crossing set the cordon, so that a
 * resumed run lifts its own cordons and leaves an administrator's alone.
 */
import { type KubeClient, type Node, resources, type Stored, updateWithRetry } from "@longshore/kube";

const cordonMark = "longshore.dev/cordoned-for-crossing";

/** True when a crossing has cordoned the node. */
export function isCordonedForCrossing(node: Node): boolean {
  return node.metadata?.annotations?.[cordonMark] !== undefined;
}

/** Keeps new pods off the node. */
export async function cordon(
  kube: KubeClient,
  nodeName: string,
  why: string,
  signal: AbortSignal,
): Promise<void> {
  await updateWithRetry(kube, resources.nodes, { name: nodeName }, (node) => cordoned(node, why), { signal });
}

/** Lets pods onto the node again, if it was a crossing that kept them off. */
export async function uncordon(kube: KubeClient, nodeName: string, signal: AbortSignal): Promise<void> {
  await updateWithRetry(kube, resources.nodes, { name: nodeName }, uncordoned, { signal });
}

function cordoned(node: Stored<Node>, why: string): Stored<Node> | undefined {
  if (node.spec?.unschedulable === true) return undefined;
  return {
    ...node,
    metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [cordonMark]: why } },
    spec: { ...node.spec, unschedulable: true },
  };
}

function uncordoned(node: Stored<Node>): Stored<Node> | undefined {
  if (!isCordonedForCrossing(node)) return undefined;
  const { [cordonMark]: _mark, ...annotations } = node.metadata.annotations ?? {};
  const { unschedulable: _unschedulable, ...spec } = node.spec ?? {};
  return { ...node, metadata: { ...node.metadata, annotations }, spec };
}
