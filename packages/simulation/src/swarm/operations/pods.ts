/** Operations on pods: one is deleted, all of a node are drained, the sets are scaled. */
import { isNotFound, resources } from "@longshore/kube";
import { forceDetachMs } from "./machine-time.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";

/** Deletes any pod. */
export const podDeleted: Operation = async (operators, { target, happens }) => {
  const pods = operators.env.cluster.objects(resources.pods);
  const pod = pods[target % Math.max(1, pods.length)]?.metadata.name;
  if (pod !== undefined && happens(`delete pod ${pod}`)) await operators.deletePod(pod);
};

/** In what state the node is, of a pod that is deleted by force. */
const nodeStates = ["which answers", "which is paused", "whose agent is cut off while its containers go on"];

/**
 * A pod goes at once, whatever its node does (`kubectl delete --force --grace-period=0`): its set makes it again while the containers of the old
 * one may still write. Its volume stays where it is mounted (docs/contract.md C2).
 */
export const podForceDeleted: Operation = async (operators, { target, ms, killMs, isOn, happens }) => {
  const { env, signal } = operators;
  const pods = env.cluster.objects(resources.pods);
  const pod = pods[target % Math.max(1, pods.length)];
  if (pod === undefined) return;
  const { name } = pod.metadata;
  const { nodeName = "" } = pod.spec ?? {};
  const mayStop = env.cluster.isRunning(nodeName) && operators.hasNode(nodeName);
  const state = mayStop ? killMs % nodeStates.length : 0;
  const awayMs = isOn ? forceDetachMs + ms : ms;
  const away = state === 0 ? "" : ` for ${awayMs} ms`;
  if (!happens(`delete pod ${name} by force, of ${nodeName}, ${nodeStates[state]}${away}`)) return;
  if (state > 0) {
    const goOn = state === 1 ? pauseMachine(operators, nodeName) : env.pause(nodeName);
    operators.later(awayMs, async () => goOn());
  }
  const options = { gracePeriodSeconds: 0, signal };
  await env.cluster.kube.delete(resources.pods, { namespace, name }, options).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
};

/** One that is paused by another operation goes on when that lets it. */
function pauseMachine({ env }: Operators, node: string): () => void {
  const machine = env.machineOf(node);
  if (machine.isPaused) return () => {};
  machine.pause();
  return () => machine.resume();
}

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
