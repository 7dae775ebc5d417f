/** Whether a pod may run on a node, by what the pod selects and tolerates. Pure. Source: core/v1 PodSpec, Taint. */
import { type Node, nodeSelectorMatches, type Pod, type Stored, type Taint } from "@longshore/kube";

/** Whether the node has the labels, and is of the affinity, that the pod requires. */
export function matchesNodeSelector(pod: Pod, node: Stored<Node>): boolean {
  const labels = node.metadata.labels ?? {};
  const wanted = Object.entries(pod.spec?.nodeSelector ?? {});
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return (
    wanted.every(([key, value]) => labels[key] === value) &&
    (required === undefined || nodeSelectorMatches(node, required))
  );
}

/** Whether the pod tolerates the taint. */
export function tolerates(pod: Pod, taint: Taint): boolean {
  return (pod.spec?.tolerations ?? []).some(
    (t) =>
      (t.effect === undefined || t.effect === "" || t.effect === taint.effect) &&
      (t.key === undefined || t.key === "" || t.key === taint.key) &&
      (t.operator === "Exists" || (t.value ?? "") === (taint.value ?? "")),
  );
}
