/** Operations of administrators on Node objects: a node is deleted, replaced, or said to be out of service. */
import { resources } from "@longshore/kube";
import { worldOf } from "../../world.ts";
import type { Operation, Operators } from "./operators.ts";

const outOfServiceTaint = {
  key: "node.kubernetes.io/out-of-service",
  value: "nodeshutdown",
  effect: "NoExecute",
} as const;
/** Longer than pods of a node that is gone are kept, in milliseconds. */
const goneMs = 90_000;

/**
 * A Node is deleted while its machine runs: the agent makes it again, and nothing is taken from its pods. Not while the agent is cut off: it
 * could not make the Node again within the 40 s after which the machine counts as gone (docs/contract.md C2).
 */
export const nodeDeleted: Operation = async (operators, { target, happens }) => {
  const node = operators.nodeAt(target);
  if (!runs(operators, node)) return;
  if (happens(`delete node ${node}, which runs`)) await deleteNode(operators, node);
};

/** A machine is gone for good, and its Node with it; once its pods and volumes are elsewhere, another one takes its name. */
export const nodeReplaced: Operation = async (operators, { target, ms, happens }) => {
  const node = operators.nodeAt(target);
  if (!runs(operators, node)) return;
  if (!happens(`${node} is off for ${goneMs + ms} ms, and is deleted`)) return;
  await operators.env.losePower(node);
  await deleteNode(operators, node);
  let isGone = true;
  operators.decided(async () => {
    if (isGone) await deleteNode(operators, node);
  });
  operators.later(goneMs + ms, async () => {
    // A stopped machine keeps its disks, and no record is left of those that in-tree code attached; one that is taken away has none.
    if (!operators.env.cluster.isRunning(node)) await operators.env.takeAway(node);
    expectLeft(operators, node);
    isGone = false;
    await start(operators, node);
  });
};

/**
 * A machine is off, and its administrator says so with the taint: its volumes go to other nodes at once. Not while its Node is missing: there
 * is nothing to taint, and a machine whose Node went with it is `nodeReplaced`.
 */
export const outOfService: Operation = async (operators, { target, ms, happens }) => {
  const node = operators.nodeAt(target);
  if (!runs(operators, node) || !operators.hasNode(node)) return;
  if (!happens(`${node} is off for ${goneMs + ms} ms, and out of service`)) return;
  await operators.env.losePower(node);
  await operators.insist(() => setTaint(operators, node, true));
  let isOut = true;
  operators.decided(() => setTaint(operators, node, isOut));
  operators.later(goneMs + ms, async () => {
    expectLeft(operators, node);
    await start(operators, node);
    isOut = false;
    await setTaint(operators, node, false);
  });
};

function runs({ env }: Operators, node: string): boolean {
  return env.cluster.isRunning(node) && !env.machineOf(node).isPaused && !env.isPaused(node);
}

/** Nothing of a node that is off and given up is left on it. @throws while something is, unless the node runs again */
function expectLeft({ env: { cluster } }: Operators, node: string): void {
  if (cluster.isRunning(node)) return;
  const pods = cluster.objects(resources.pods).filter(({ spec }) => spec?.nodeName === node);
  const { attachments } = worldOf(cluster);
  const disks = attachments.filter(({ nodeName }) => nodeName === node).map(({ diskId }) => diskId);
  const recorded = cluster
    .objects(resources.volumeAttachments)
    .filter(({ spec }) => spec.nodeName === node)
    .map(({ metadata }) => metadata.name);
  const left = [...pods.map(({ metadata }) => metadata.name), ...disks, ...recorded];
  if (left.length > 0) throw new Error(`still on ${node}, which is gone: ${left.join(", ")}`);
  const ready = cluster.objects(resources.nodes).find(({ metadata }) => metadata.name === node)?.status;
  if (ready?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"))
    throw new Error(`${node} is off and counts as ready`);
}

async function start({ env: { cluster } }: Operators, node: string): Promise<void> {
  for (const component of [node, `csi-node/${node}`]) await cluster.start(component);
}

async function deleteNode({ env, signal }: Operators, name: string): Promise<void> {
  await env.cluster.kube.delete(resources.nodes, { name }, { signal }).catch(() => {});
}

async function setTaint({ env, signal }: Operators, name: string, isOut: boolean): Promise<void> {
  const { kube } = env.cluster;
  const node = await kube.get(resources.nodes, { name }, { signal });
  if (node === undefined) return;
  const others = (node.spec?.taints ?? []).filter(({ key }) => key !== outOfServiceTaint.key);
  const taints = isOut ? [...others, outOfServiceTaint] : others;
  const { resourceVersion } = node.metadata;
  const body = { metadata: { resourceVersion }, spec: { taints } };
  await kube.patch(resources.nodes, { name }, { type: "merge", body }, { signal });
}
