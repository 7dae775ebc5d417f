/**
 * What a StatefulSet needs next: a pure function of the set and its pods.
 *
 * Source: apps/v1 StatefulSet, pod identity and ordering guarantees. Not covered: rolling updates
 * (a changed template takes effect when a pod is next made, as with `OnDelete`).
 */
import type { PersistentVolumeClaim, Pod, StatefulSet, Stored } from "@longshore/kube";
import { isDeleting } from "@longshore/kube";

/** What to do next, each independent of the others. */
export interface StatefulSetStep {
  /** Ordinals whose pod (and claims) are to be made. */
  readonly create: readonly number[];
  /** Pods to delete: failed or finished ones, and those beyond the wanted number. */
  readonly delete: readonly Stored<Pod>[];
  readonly status: { readonly replicas: number; readonly readyReplicas: number };
}

/** Decides the next step. With `OrderedReady` a pod waits until all lower ordinals are ready. */
export function decideStatefulSetStep(
  set: Stored<StatefulSet>,
  pods: readonly Stored<Pod>[],
): StatefulSetStep {
  const wanted = isDeleting(set) ? 0 : (set.spec?.replicas ?? 1);
  const parallel = set.spec?.podManagementPolicy === "Parallel";
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set.metadata.name, pod.metadata.name), pod]));
  const status = {
    replicas: pods.length,
    readyReplicas: pods.filter((pod) => isPodReady(pod) && !isDeleting(pod)).length,
  };
  const create: number[] = [];
  const remove: Stored<Pod>[] = [];
  for (let ordinal = 0; ordinal < wanted; ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) create.push(ordinal);
    else if (hasEnded(pod) && !isDeleting(pod)) remove.push(pod);
    const settled = pod !== undefined && isPodReady(pod) && !isDeleting(pod);
    if (!parallel && !settled) return { create, delete: remove, status };
  }
  const surplus = [...byOrdinal.entries()]
    .filter(([ordinal]) => ordinal !== undefined && ordinal >= wanted)
    .sort(([a], [b]) => (b ?? 0) - (a ?? 0))
    .map(([, pod]) => pod);
  const toDelete = parallel ? surplus : surplus.slice(0, 1);
  return { create, delete: [...remove, ...toDelete.filter((pod) => !isDeleting(pod))], status };
}

/** The pod with that ordinal, as the set's template makes it. */
export function podOfStatefulSet(set: Stored<StatefulSet>, ordinal: number): Pod {
  const name = `${set.metadata.name}-${ordinal}`;
  const template = set.spec?.template;
  const claimVolumes = (set.spec?.volumeClaimTemplates ?? []).map((claim) => ({
    name: claim.metadata?.name ?? "",
    persistentVolumeClaim: { claimName: claimNameOf(claim, name) },
  }));
  const claimed = new Set(claimVolumes.map((volume) => volume.name));
  const namespace = set.metadata.namespace ?? "default";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...template?.metadata,
      name,
      namespace,
      labels: { ...template?.metadata?.labels, "statefulset.kubernetes.io/pod-name": name },
      ownerReferences: [ownerReference(set)],
    },
    spec: {
      ...(template?.spec ?? { containers: [] }),
      hostname: name,
      ...(set.spec?.serviceName === undefined ? {} : { subdomain: set.spec.serviceName }),
      volumes: [...(template?.spec?.volumes ?? []).filter((v) => !claimed.has(v.name)), ...claimVolumes],
    },
  };
}

/** The claims of the pod with that ordinal. They outlive pod and set, so no owner is set. */
export function claimsOfStatefulSet(set: Stored<StatefulSet>, ordinal: number): PersistentVolumeClaim[] {
  const podName = `${set.metadata.name}-${ordinal}`;
  const namespace = set.metadata.namespace ?? "default";
  return (set.spec?.volumeClaimTemplates ?? []).map((template) => ({
    ...template,
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      ...template.metadata,
      name: claimNameOf(template, podName),
      namespace,
      labels: { ...template.metadata?.labels, ...set.spec?.selector?.matchLabels },
    },
  }));
}

/** True when the pod reports the condition Ready. */
export function isPodReady(pod: Pod): boolean {
  return pod.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") === true;
}

function hasEnded(pod: Pod): boolean {
  return pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded";
}

function claimNameOf(claim: PersistentVolumeClaim, podName: string): string {
  return `${claim.metadata?.name ?? ""}-${podName}`;
}

function ordinalOf(setName: string, podName: string): number | undefined {
  if (!podName.startsWith(`${setName}-`)) return undefined;
  const digits = podName.slice(setName.length + 1);
  return /^(0|[1-9][0-9]*)$/.test(digits) ? Number(digits) : undefined;
}

function ownerReference(set: Stored<StatefulSet>) {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    name: set.metadata.name,
    uid: set.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}
