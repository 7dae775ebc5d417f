/**
 * Whether a node can have the volumes of a pod: rules in the order in which they are asked, each returning a reason or
 * `undefined`. Pure. The reasons are those kubectl users know. Source: docs/behaviour/controllers.md B7.
 */
import type { Node, PersistentVolumeClaim, Pod, StorageClass, Stored } from "@longshore/kube";
import { selectedNodeAnnotation } from "@longshore/storage";
import { classOfClaim } from "@longshore/volumes";
import type { ClusterView } from "./cluster-view.ts";
import { countedAttachments, countedVolumes } from "./counted-volumes.ts";
import { claimsOfPod, isFullyBound, namespaceOf } from "./pod-claims.ts";
import { affinityReason, type StaticChoice, staticVolumes } from "./static-volumes.ts";
import { hasStorageCapacity } from "./storage-capacity.ts";

const noVolume = "node(s) didn't find available persistent volumes to bind";
const noProvisioner = "kubernetes.io/no-provisioner";

/** A volume that one pod may have at a time (ReadWriteOncePod) is had by no other. Source: Kubernetes KEP-2485. */
export function isOnlyUser(view: ClusterView, pod: Pod): string | undefined {
  for (const { name, claim } of claimsOfPod(view, pod)) {
    if (claim?.spec?.accessModes?.includes("ReadWriteOncePod") !== true) continue;
    const others = view.podsUsing(`${namespaceOf(pod)}/${name}`);
    if (others.some((other) => other.metadata.uid !== pod.metadata?.uid)) {
      return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
    }
  }
  return undefined;
}

/** The node can reach every volume that the pod has or is to get. */
export function canReachVolumes(view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  let choices: ReadonlyMap<string, StaticChoice> | undefined;
  for (const { name, claim, problem } of claimsOfPod(view, pod)) {
    if (claim === undefined || problem !== undefined) return problem;
    if (isFullyBound(claim)) {
      const reason = boundVolumeReason(view, claim, node);
      if (reason !== undefined) return reason;
      continue;
    }
    choices ??= staticVolumes(view, pod, node);
    const reason = unboundClaimReason(view, claim, choices.get(name) ?? { kind: "none" }, node);
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
  if (!isInZone(pv.metadata.labels ?? {}, node.metadata.labels ?? {})) {
    return "node(s) had no available volume zone";
  }
  return affinityReason(view, pv, node);
}

const zoneLabels = [
  ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"],
  ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"],
] as const;

/**
 * Volumes of in-tree plugins name their zones in labels, of a regional disk joined by `__`. A node without any such label is
 * not judged. Source: Kubernetes scheduler plugin VolumeZone.
 */
function isInZone(
  ofVolume: Readonly<Record<string, string>>,
  ofNode: Readonly<Record<string, string>>,
): boolean {
  if (!zoneLabels.flat().some((key) => ofNode[key] !== undefined)) return true;
  return zoneLabels.every(([ga, beta]) => {
    const zones = ofVolume[ga] ?? ofVolume[beta];
    const zone = ofNode[ga] ?? ofNode[beta];
    return zones === undefined || (zone !== undefined && zones.split("__").includes(zone));
  });
}

function unboundClaimReason(
  view: ClusterView,
  claim: Stored<PersistentVolumeClaim>,
  choice: StaticChoice,
  node: Stored<Node>,
): string | undefined {
  const storageClass = view.storageClass(classOfClaim(claim));
  if (storageClass?.volumeBindingMode !== "WaitForFirstConsumer") {
    return "pod has unbound immediate PersistentVolumeClaims";
  }
  if (choice.kind === "volume") return undefined;
  return choice.kind === "elsewhere" ? noVolume : provisioningReason(view, claim, storageClass, node);
}

function provisioningReason(
  view: ClusterView,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: Stored<StorageClass>,
  node: Stored<Node>,
): string | undefined {
  const selected = claim.metadata.annotations?.[selectedNodeAnnotation];
  // The claim's volume is being made for that node, and may not be reachable from another.
  if (selected !== undefined && selected !== node.metadata.name) return noVolume;
  if (storageClass.provisioner === noProvisioner) return noVolume;
  const terms = storageClass.allowedTopologies ?? [];
  const allowed =
    terms.length === 0 ||
    terms.some((term) =>
      (term.matchLabelExpressions ?? []).every((e) => e.values.includes(node.metadata.labels?.[e.key] ?? "")),
    );
  if (!allowed) return noVolume;
  return hasStorageCapacity(view, claim, storageClass, node)
    ? undefined
    : "node(s) did not have enough free storage";
}

/** The node has room for what the pod adds to its attachments. */
export function hasAttachmentSlots(view: ClusterView, pod: Pod, node: Stored<Node>): string | undefined {
  const nodeName = node.metadata.name;
  const wanted = countedVolumes(view, pod, nodeName);
  if (wanted.length === 0) return undefined;
  // Sets, since a volume that several pods of the node use takes one slot.
  const used = new Map<string, Set<string>>();
  const ofPods = view.podsOn(nodeName).flatMap((other) => countedVolumes(view, other, nodeName));
  for (const { limit, id } of [...ofPods, ...countedAttachments(view, nodeName)]) {
    used.set(limit, (used.get(limit) ?? new Set()).add(id));
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
