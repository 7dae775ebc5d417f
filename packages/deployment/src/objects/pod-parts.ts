/** Parts of pods that all deployments share. */
import type { ResourceAmounts } from "../deploy-options.ts";

/** User and group of containers that need no root: the one that distroless images call nonroot. */
const unprivilegedId = 65_532;
const seccompProfile = { type: "RuntimeDefault" };

/** The security context of a pod that needs no root. */
export const unprivilegedPod = {
  runAsNonRoot: true,
  runAsUser: unprivilegedId,
  runAsGroup: unprivilegedId,
  fsGroup: unprivilegedId,
  seccompProfile,
} as const;

/** Sockets in the kubelet's directories belong to root: who uses them must be root, if without capabilities. */
export const rootPod = { runAsUser: 0, seccompProfile } as const;

/** The security context of a container that may do nothing to its machine. */
export const confined = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
} as const;

/** An environment variable from a field of the pod. */
export const fromField = (name: string, fieldPath: string) => ({
  name,
  valueFrom: { fieldRef: { fieldPath } },
});

/** What a process knows of its pod. */
export const podIdentity = [
  // The one is asked for by leader elections, the other by capacity tracking.
  fromField("POD_NAMESPACE", "metadata.namespace"),
  fromField("NAMESPACE", "metadata.namespace"),
  fromField("POD_NAME", "metadata.name"),
] as const;

/** A probe over HTTP. */
export function probe(path: string, port: string): object {
  return {
    httpGet: { path, port },
    initialDelaySeconds: 10,
    periodSeconds: 10,
    timeoutSeconds: 5,
  };
}

/** The resources of a container; what is empty is left out. */
export function amounts({
  requests,
  limits,
}: {
  readonly requests: ResourceAmounts;
  readonly limits: ResourceAmounts;
}): object {
  return {
    ...(Object.keys(requests).length === 0 ? {} : { requests: { ...requests } }),
    ...(Object.keys(limits).length === 0 ? {} : { limits: { ...limits } }),
  };
}

/** Two replicas on one machine would go down together. */
export function apart(labels: Readonly<Record<string, string>>): object {
  return {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          podAffinityTerm: {
            labelSelector: { matchLabels: labels },
            topologyKey: "kubernetes.io/hostname",
          },
        },
      ],
    },
  };
}
