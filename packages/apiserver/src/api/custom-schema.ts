/** The schemas of custom resources, as CustomResourceDefinitions write them (apiextensions.k8s.io/v1 JSONSchemaProps). */

/** A rule in CEL (`x-kubernetes-validations`). */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/** A schema of a custom resource. What is not named here a structural schema cannot have, or means nothing to the server. */
export interface CustomSchema {
  readonly type?: string;
  readonly format?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly externalDocs?: object;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly multipleOf?: number;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly maxProperties?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, CustomSchema>>;
  readonly additionalProperties?: CustomSchema | boolean;
  readonly items?: CustomSchema;
  readonly allOf?: readonly CustomSchema[];
  readonly anyOf?: readonly CustomSchema[];
  readonly oneOf?: readonly CustomSchema[];
  readonly not?: CustomSchema;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: "atomic" | "granular";
  readonly "x-kubernetes-validations"?: readonly ValidationRule[];
  // Not allowed in structural schemas, but found in those that clients send.
  readonly $ref?: string;
  readonly $schema?: string;
  readonly id?: string;
  readonly definitions?: Readonly<Record<string, CustomSchema>>;
  readonly dependencies?: Readonly<Record<string, unknown>>;
  readonly patternProperties?: Readonly<Record<string, CustomSchema>>;
  readonly additionalItems?: CustomSchema | boolean;
}
