/** Definitions of custom resources that take anything. */
import type { KubeObject } from "@longshore/kube";

/** A definition in `x.example.com/v1`, with status and scale. */
export function aCustomKind(plural: string, kind: string, scope: "Namespaced" | "Cluster"): KubeObject {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.x.example.com` },
    spec: {
      group: "x.example.com",
      scope,
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {}, scale },
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
        },
      ],
    },
  } as KubeObject;
}
