/** Operations on pods: one is deleted, all of a node are drained, the sets are scaled. */
import { resources } from "@longshore/kube";
import type { Operation, Operators } from "./operators.ts";

/** Deletes any pod. */
export const podDeleted: Operation = async (operators, { target, happens }) => {
  const pods = operators.env.cluster.objects(resources.pods);
  const pod = pods[target % Math.max(1, pods.length)]?.metadata.name;
  if (pod !== undefined && happens(`delete pod ${pod}`)) await operators.deletePod(pod);
};

/** Takes a node out for a while. */
export const drain: Operation = async (operators, { target, ms, happens }) => {
  const { clock } = operators.env;
  const node = operators.nodeAt(target);
  if (!happens(`drain ${node} for ${ms} ms`)) return;
  await emptyNode(operators, node);
  await clock.sleep(ms, operators.signal);
  await operators.setSchedulable(node, true);
};

/** Cordons a node and deletes its pods; they may still be ending. */
export async function emptyNode(operators: Operators, node: string): Promise<void> {
  await operators.setSchedulable(node, false);
  for (const { metadata, spec } of operators.env.cluster.objects(resources.pods)) {
    if (spec?.nodeName === node) await operators.deletePod(metadata.name);
  }
}

/** Changes the number of writers. */
export const scale: Operation = async (operators, { target, happens }) => {
  const replicas = target % (operators.env.plan.replicas + 1);
  if (happens(`scale to ${replicas}`)) await operators.scale(replicas);
};
