/** The objects that a StatefulSet makes for an ordinal. Pure. Source: apps/v1 StatefulSet, pod identity. */
import type { PersistentVolumeClaim, Pod, StatefulSet, Stored } from "@longshore/kube";
import { revisionLabel } from "../pod-sets/pod-from-template.ts";
import type { NamedTemplate } from "./revisions.ts";

/** The pod with that ordinal, as a template of the set makes it. */
export function podOfStatefulSet(
  set: Stored<StatefulSet>,
  ordinal: number,
  { name: revision, template }: NamedTemplate,
): Pod {
  const name = `${set.metadata.name}-${ordinal}`;
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
      labels: {
        ...template?.metadata?.labels,
        "statefulset.kubernetes.io/pod-name": name,
        [revisionLabel]: revision,
      },
      ownerReferences: [ownerReference(set)],
    },
    spec: {
      ...(template?.spec ?? { containers: [] }),
      hostname: name,
      ...(set.spec?.serviceName === undefined ? {} : { subdomain: set.spec.serviceName }),
      // A claim template takes precedence over a volume of its name (apps/v1 volumeClaimTemplates).
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

function claimNameOf(claim: PersistentVolumeClaim, podName: string): string {
  return `${claim.metadata?.name ?? ""}-${podName}`;
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
