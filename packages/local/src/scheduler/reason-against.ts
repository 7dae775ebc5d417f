/**
 * Whether a pod fits a node: small named rules, each returning a reason or `undefined`, asked in this
 * order. The reasons are those kubectl users know. Source: docs/behaviour/controllers.md B7.
 */
import { labelSelectorMatches, type Node, type Pod, type Stored } from "@longshore/kube";
import { matchesNodeSelector, tolerates } from "../workloads/node-fit.ts";
import type { ClusterView } from "./cluster-view.ts";
import { canReachVolumes, hasAttachmentSlots, isOnlyUser } from "./volume-filters.ts";

type NodeFilter = (view: ClusterView, pod: Pod, node: Stored<Node>) => string | undefined;

const filters: readonly NodeFilter[] = [
  isSchedulable,
  isReady,
  fitsNodeSelector,
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

const cordonTaint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

function isSchedulable(_view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  const isClosed = node.spec?.unschedulable === true && !tolerates(pod, cordonTaint);
  return isClosed ? "node(s) were unschedulable" : undefined;
}

function isReady(_view: ClusterView, _pod: Pod, node: Stored<Node>): string | undefined {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready");
  return ready?.status === "True" ? undefined : "node(s) were not ready";
}

function fitsNodeSelector(_view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  return matchesNodeSelector(pod, node) ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

function toleratesTaints(_view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  for (const taint of node.spec?.taints ?? []) {
    // `isSchedulable` has judged the cordon.
    if (taint.effect === "PreferNoSchedule" || taint.key === cordonTaint.key) continue;
    if (!tolerates(pod, taint)) return "node(s) had taints that the pod didn't tolerate";
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
