/** The taints of a node by its condition and cordon. Pure. Source: Kubernetes node life cycle, taints by condition. */
import type { Node, Taint } from "@longshore/kube";

const notReady = "node.kubernetes.io/not-ready";
const unreachable = "node.kubernetes.io/unreachable";
const unschedulable = "node.kubernetes.io/unschedulable";
const managed: readonly string[] = [notReady, unreachable, unschedulable];

/** The taints that the node should carry: those of others, and ours by its condition and cordon. */
export function wantedTaints(node: Node): Taint[] {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready")?.status;
  const keys = [
    ...(ready === "Unknown" ? [unreachable] : ready === "True" ? [] : [notReady]),
    ...(node.spec?.unschedulable === true ? [unschedulable] : []),
  ];
  const taints = node.spec?.taints ?? [];
  // A taint of these keys with another effect belongs to another controller: this one evicts nothing.
  const ours = (taint: Taint) => managed.includes(taint.key) && taint.effect === "NoSchedule";
  const kept = taints.filter((taint) => !ours(taint) || keys.includes(taint.key));
  const missing = keys.filter((key) => !kept.some((taint) => taint.key === key && ours(taint)));
  return [...kept, ...missing.map((key) => ({ key, effect: "NoSchedule" }))];
}

/** Whether the node carries exactly these taints, in this order. */
export function hasTaints(node: Node, taints: readonly Taint[]): boolean {
  const facts = (list: readonly Taint[]) => JSON.stringify(list.map((t) => [t.key, t.value, t.effect]));
  return facts(node.spec?.taints ?? []) === facts(taints);
}
