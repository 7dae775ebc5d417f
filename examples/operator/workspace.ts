/** A custom resource of our own: someone's workspace, which asks for a volume of a size. */
import type { KubeObject, Resource } from "@longshore/kube";

/** What is requested, and what became of it. */
export interface Workspace extends KubeObject {
  readonly spec: {
    /** Size of the volume, as a quantity. */
    readonly size: string;
    readonly storageClassName?: string;
  };
  readonly status?: {
    readonly phase?: "Pending" | "Ready";
    readonly claimName?: string;
    readonly observedGeneration?: number;
  };
}

/** Where workspaces are served. */
export const workspaces: Resource<Workspace> = {
  group: "example.longshore.dev",
  versions: ["v1"],
  kind: "Workspace",
  plural: "workspaces",
  namespaced: true,
};

/** Where definitions of custom resources are served. */
export const definitions: Resource<KubeObject & { readonly spec: object }> = {
  group: "apiextensions.k8s.io",
  versions: ["v1"],
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};

/** The definition of workspaces. */
export const workspaceDefinition = {
  metadata: { name: "workspaces.example.longshore.dev" },
  spec: {
    group: "example.longshore.dev",
    scope: "Namespaced",
    names: { kind: "Workspace", plural: "workspaces", singular: "workspace", shortNames: ["ws"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: "Size", type: "string", jsonPath: ".spec.size" },
          { name: "Phase", type: "string", jsonPath: ".status.phase" },
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              spec: {
                type: "object",
                required: ["size"],
                properties: {
                  size: { type: "string", pattern: "^[1-9][0-9]*(Mi|Gi|Ti)$" },
                  storageClassName: { type: "string" },
                },
              },
              status: {
                type: "object",
                properties: {
                  phase: { type: "string", enum: ["Pending", "Ready"] },
                  claimName: { type: "string" },
                  observedGeneration: { type: "integer" },
                },
              },
            },
          },
        },
      },
    ],
  },
};
