/**
 * Whether a pod fits a node: small named rules, each returning a reason or `undefined`, asked in this
 * order. The reasons are those kubectl users know. Source: docs/behaviour/controllers.md B7.
 */
import { labelSelectorMatches, type Node, nodeSelectorMatches, type Pod, type Stored } from "@longshore/kube";
import type { ClusterView } from "./cluster-view.ts";
import { canReachVolumes, hasAttachmentSlots, isOnlyUser } from "./volume-filters.ts";

type NodeFilter = (view: ClusterView, pod: Pod, node: Stored<Node>) => string | undefined;

const filters: readonly NodeFilter[] = [
  isSchedulable,
  isReady,
  matchesNodeSelector,
  toleratesTaints,
  keepsAntiAffinity,
  isOnlyUser,
  canReachVolumes,
  hasAttachmentSlots,
];

/** Why the pod does not fit the node, or undefined when it does. */
export function reasonAgainst(view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  for (const filter of filters) {
    const reason = filter(view, pod, node);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function isSchedulable(_view: ClusterView, _pod: Pod, node: Stored<Node>): string | undefined {
  return node.spec?.unschedulable === true ? "node(s) were unschedulable" : undefined;
}

function isReady(_view: ClusterView, _pod: Pod, node: Stored<Node>): string | undefined {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready");
  return ready?.status === "True" ? undefined : "node(s) were not ready";
}

function matchesNodeSelector(_view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  const labels = node.metadata.labels ?? {};
  const wanted = Object.entries(pod.spec?.nodeSelector ?? {});
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const fits =
    wanted.every(([key, value]) => labels[key] === value) &&
    (required === undefined || nodeSelectorMatches(node, required));
  return fits ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

function toleratesTaints(_view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  for (const taint of node.spec?.taints ?? []) {
    // `isSchedulable` has judged the cordon.
    if (taint.effect === "PreferNoSchedule" || taint.key === "node.kubernetes.io/unschedulable") continue;
    const tolerated = pod.spec?.tolerations?.some(
      (t) =>
        (t.effect === undefined || t.effect === taint.effect) &&
        (t.key === undefined || t.key === taint.key) &&
        (t.operator === "Exists" || t.value === taint.value),
    );
    if (tolerated !== true) return "node(s) had taints that the pod didn't tolerate";
  }
  return undefined;
}

function keepsAntiAffinity(view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  const terms = pod.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  for (const term of terms) {
    const domain = node.metadata.labels?.[term.topologyKey];
    // A node without the label is in no domain, so no pod is its neighbour.
    if (domain === undefined) continue;
    const neighbours = view.nodes.filter((n) => n.metadata.labels?.[term.topologyKey] === domain);
    const clash = neighbours.some((neighbour) =>
      view
        .podsOn(neighbour.metadata.name)
        .some(
          (other) =>
            other.metadata.namespace === (pod.metadata?.namespace ?? "default") &&
            labelSelectorMatches(term.labelSelector, other.metadata.labels ?? {}),
        ),
    );
    if (clash) return "node(s) didn't match pod anti-affinity rules";
  }
  return undefined;
}
