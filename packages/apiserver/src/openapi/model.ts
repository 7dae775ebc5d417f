/** What OpenAPI documents of both versions are made of, as far as we use it. */

/** A JSON schema. */
export interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly [extension: `x-${string}`]: unknown;
}

/** What an object says of itself. */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A parameter of a path or a query. */
export interface Parameter {
  readonly name: string;
  readonly in: "query" | "path";
  readonly type: "string" | "integer" | "boolean";
}

/** One operation, before it is written in the way of a version of OpenAPI. */
export interface Operation {
  readonly operationId: string;
  readonly tag: string;
  /** `list`, `post`, `put`, `patch`, …: `x-kubernetes-action`. */
  readonly action: string;
  readonly gvk: GroupVersionKind;
  /** True for an operation on a custom resource. */
  readonly isCustom?: boolean;
  readonly parameters: readonly Parameter[];
  /** Names of the schemas of what is sent and what comes back. */
  readonly body?: string;
  readonly answer: string;
  readonly codes: readonly number[];
}

/** HTTP methods that documents name. */
export type Method = "get" | "put" | "post" | "delete" | "patch";

/** One path: its operations, and the parameters that all of them have. */
export interface PathItem {
  readonly parameters: readonly Parameter[];
  readonly operations: Readonly<Partial<Record<Method, Operation>>>;
}

/** Media types of bodies and answers, and of patches. */
export const mediaTypes = [
  "application/json",
  "application/yaml",
  "application/vnd.kubernetes.protobuf",
] as const;

/** See {@link mediaTypes}. */
export const patchMediaTypes = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
] as const;
