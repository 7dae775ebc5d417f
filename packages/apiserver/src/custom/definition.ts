/** CustomResourceDefinitions (apiextensions.k8s.io/v1), as the server reads them. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { CustomSchema } from "../api/custom-schema.ts";
import type { ScalePaths } from "../api/kind.ts";

/** The names of a custom kind. */
export interface DefinitionNames {
  readonly plural: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly kind: string;
  readonly listKind?: string;
  readonly categories?: readonly string[];
}

/** A column that tables of the kind have. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
  readonly jsonPath: string;
}

/** One version of a custom kind. */
export interface DefinitionVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema?: { readonly openAPIV3Schema?: CustomSchema };
  readonly subresources?: { readonly status?: object; readonly scale?: ScalePaths };
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
}

/** A condition of a definition. */
export interface DefinitionCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly lastTransitionTime?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** The status of a definition. */
export interface DefinitionStatus {
  readonly conditions: readonly DefinitionCondition[] | null;
  readonly acceptedNames: DefinitionNames;
  readonly storedVersions: readonly string[] | null;
}

/** A CustomResourceDefinition. */
export interface Definition extends KubeObject {
  readonly spec: {
    readonly group: string;
    readonly names: DefinitionNames;
    readonly scope: "Namespaced" | "Cluster";
    readonly versions: readonly DefinitionVersion[];
    readonly conversion?: { readonly strategy: string; readonly webhook?: object };
    readonly preserveUnknownFields?: boolean;
  };
  readonly status?: DefinitionStatus;
}

/** A definition as it is stored. */
export type StoredDefinition = Stored<Definition>;

/** Keeps a definition until its objects are gone. */
export const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

/** The table of the definitions. */
export const definitionsResource = "customresourcedefinitions.apiextensions.k8s.io";

/** True when the condition is there and holds. */
export function isTrue(definition: Pick<Definition, "status">, type: string): boolean {
  return definition.status?.conditions?.some((c) => c.type === type && c.status === "True") ?? false;
}

/** The version in which objects are stored. */
export function storageVersionOf({ spec }: Pick<Definition, "spec">): string {
  return (spec.versions.find((version) => version.storage) ?? spec.versions[0])?.name ?? "";
}
