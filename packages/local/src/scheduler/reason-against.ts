/**
 * Whether a pod fits a node: small named rules, each returning a reason or `undefined`, asked in this
 * order. The reasons are those kubectl users know. Source: docs/behaviour/controllers.md B7.
 */
import {
  labelSelectorMatches,
  type Node,
  nodeSelectorMatches,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "@longshore/kube";
import { selectedNodeAnnotation } from "@longshore/storage";
import { matchesNodeSelector, tolerates } from "../workloads/node-fit.ts";
import type { ClusterView } from "./cluster-view.ts";
import { countedVolumes, volumeOnNode } from "./counted-volumes.ts";
import { claimsOfPod, isFullyBound } from "./pod-claims.ts";

type NodeFilter = (view: ClusterView, pod: Pod, node: Stored<Node>) => string | undefined;

const filters: readonly NodeFilter[] = [
  isSchedulable,
  isReady,
  fitsNodeSelector,
  toleratesTaints,
  keepsAntiAffinity,
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

function canReachVolumes(view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  for (const { claim } of claimsOfPod(view, pod)) {
    if (claim === undefined) return "persistentvolumeclaim not found";
    const reason = isFullyBound(claim)
      ? boundVolumeReason(view, claim, node)
      : unboundClaimReason(view, claim, node);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function boundVolumeReason(
  view: ClusterView,
  claim: Stored<PersistentVolumeClaim>,
  node: Stored<Node>,
): string | undefined {
  const pv = view.volume(claim.spec?.volumeName ?? "");
  if (pv === undefined) return "pvc(s) bound to non-existent pv(s)";
  let required: NonNullable<NonNullable<PersistentVolume["spec"]>["nodeAffinity"]>["required"];
  try {
    required = volumeOnNode(view, pv, node.metadata.name).spec?.nodeAffinity?.required;
  } catch {
    return "node(s) had a volume that cannot be translated to CSI"; // What is wrong with it, its own events say.
  }
  if (required === undefined || nodeSelectorMatches(node, required)) return undefined;
  return "node(s) had volume node affinity conflict";
}

function unboundClaimReason(
  view: ClusterView,
  claim: Stored<PersistentVolumeClaim>,
  node: Stored<Node>,
): string | undefined {
  const storageClass = view.storageClass(claim.spec?.storageClassName ?? "");
  if (storageClass?.volumeBindingMode !== "WaitForFirstConsumer") {
    return "pod has unbound immediate PersistentVolumeClaims";
  }
  const selected = claim.metadata.annotations?.[selectedNodeAnnotation];
  // The claim's volume is being made for that node, and may not be reachable from another.
  if (selected !== undefined && selected !== node.metadata.name) {
    return "node(s) didn't find available persistent volumes to bind";
  }
  const terms = storageClass.allowedTopologies ?? [];
  const allowed =
    terms.length === 0 ||
    terms.some((term) =>
      (term.matchLabelExpressions ?? []).every((e) => e.values.includes(node.metadata.labels?.[e.key] ?? "")),
    );
  return allowed ? undefined : "node(s) didn't find available persistent volumes to bind";
}

function hasAttachmentSlots(view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  const nodeName = node.metadata.name;
  const wanted = countedVolumes(view, pod, nodeName);
  if (wanted.length === 0) return undefined;
  // Sets, since a volume that several pods of the node use takes one slot.
  const used = new Map<string, Set<string>>();
  for (const other of view.podsOn(nodeName)) {
    for (const { limit, id } of countedVolumes(view, other, nodeName)) {
      used.set(limit, (used.get(limit) ?? new Set()).add(id));
    }
  }
  for (const { limit, id } of wanted) {
    used.set(limit, (used.get(limit) ?? new Set()).add(id));
    const most = attachmentLimit(view, node, limit);
    if (most !== undefined && (used.get(limit)?.size ?? 0) > most) {
      return "node(s) exceed max volume count";
    }
  }
  return undefined;
}

function attachmentLimit(view: ClusterView, node: Stored<Node>, limit: string): number | undefined {
  if (limit.startsWith("csi:")) {
    const driver = view.csiNode(node.metadata.name)?.spec.drivers?.find((d) => `csi:${d.name}` === limit);
    return driver?.allocatable?.count;
  }
  const value = node.status?.allocatable?.[`attachable-volumes-${limit.slice(limit.indexOf("/") + 1)}`];
  return value === undefined ? undefined : Number(value);
}
