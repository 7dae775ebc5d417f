/**
 * Holds schemas of CustomResourceDefinitions to the rules that make them structural, so that pruning and defaulting
 * are well defined (apiextensions-apiserver pkg/apis/apiextensions/validation, schema/validation.go).
 */
import type { CustomSchema } from "../api/custom-schema.ts";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../api/errors.ts";
import { pathWithin, problemsMax } from "./add-problems.ts";
import { listTypeProblems } from "./list-type-problems.ts";
import { patternMax, patternProblem, writtenOutSize } from "./pattern-matches.ts";
import { prunedPaths } from "./prune.ts";
import { validateValue, type Work, workMax } from "./validate-value.ts";
import { withDefaults } from "./with-defaults.ts";

type Level = "root" | "field" | "item";

const types = ["array", "boolean", "integer", "number", "object", "string"];

/** Deepest nesting of schemas, so that a definition cannot exhaust the stack. */
const depthMax = 200;

/** Problems of a whole schema; empty when it is structural. Pure. */
export function structuralProblems(schema: CustomSchema, at: string): readonly FieldProblem[] {
  const found: Findings = { problems: [], work: { left: workMax } };
  if (patternsSize(schema) > patternsMax) {
    const why = `the patterns of a schema must have at most ${patternsMax} parts with their repetitions written out`;
    return [forbiddenValue(at, why)];
  }
  look(schema, "root", at, 0, found);
  return found.problems;
}

interface Findings {
  readonly problems: FieldProblem[];
  /** What may still be done to validate all defaults. */
  readonly work: Work;
}

/** Most parts of all patterns of a schema: they are compiled before the definition is answered, and kept. */
const patternsMax = 200_000;

function patternsSize(root: CustomSchema): number {
  let size = 0;
  const waiting: (CustomSchema | undefined)[] = [root];
  while (waiting.length > 0 && size <= patternsMax) {
    const schema = waiting.pop();
    if (schema === undefined) continue;
    if (schema.pattern !== undefined) size += Math.min(writtenOutSize(schema.pattern), patternMax);
    for (const within of Object.values(schema.properties ?? {})) waiting.push(within);
    for (const key of ["allOf", "anyOf", "oneOf"] as const) {
      for (const within of schema[key] ?? []) waiting.push(within);
    }
    waiting.push(schema.items, additional(schema), schema.not);
  }
  return size;
}

function look(schema: CustomSchema, level: Level, at: string, depth: number, found: Findings): void {
  const { problems, work } = found;
  if (depth > depthMax) {
    problems.push(forbiddenValue(at, `schemas must not be nested more than ${depthMax} levels deep`));
    return;
  }
  if (problems.length >= problemsMax) return;
  problems.push(
    ...unsupportedKeywords(schema, at),
    ...typeProblems(schema, level, at),
    ...valueKeywordProblems(schema, at),
    ...extensionProblems(schema, at),
    ...metadataRules(schema, level, at),
    ...defaultProblems(schema, at, work),
  );
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    look(property, "field", pathWithin(at, `.properties[${name}]`), depth + 1, found);
  }
  if (schema.items !== undefined) {
    if (Array.isArray(schema.items)) {
      problems.push(forbiddenValue(`${at}.items`, "items must be a schema object and not an array"));
    } else look(schema.items, "item", pathWithin(at, ".items"), depth + 1, found);
  }
  if (typeof schema.additionalProperties === "object") {
    look(schema.additionalProperties, "field", pathWithin(at, ".additionalProperties"), depth + 1, found);
  }
  for (const key of ["allOf", "anyOf", "oneOf"] as const) {
    for (const [i, one] of (schema[key] ?? []).entries()) {
      nested(one, schema, { at: `${at}.${key}[${i}]`, completes: level === "root" }, depth + 1, problems);
    }
  }
  if (schema.not !== undefined) {
    nested(schema.not, schema, { at: `${at}.not`, completes: level === "root" }, depth + 1, problems);
  }
}

function unsupportedKeywords(schema: CustomSchema, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const forbid = (key: string, why: string) => problems.push(forbiddenValue(`${at}.${key}`, why));
  if (schema.$ref !== undefined) forbid("$ref", "$ref is not supported");
  if (schema.definitions !== undefined) forbid("definitions", "definitions is not supported");
  if (schema.dependencies !== undefined) forbid("dependencies", "dependencies is not supported");
  if (schema.patternProperties !== undefined)
    forbid("patternProperties", "patternProperties is not supported");
  if (schema.additionalItems !== undefined) forbid("additionalItems", "additionalItems is not supported");
  if (schema.id !== undefined) forbid("id", "id is not supported");
  if (schema.uniqueItems === true) {
    forbid("uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }
  if (schema.additionalProperties !== undefined && Object.keys(schema.properties ?? {}).length > 0) {
    forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
  }
  return problems;
}

const emptyType: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  field: "must not be empty for specified object fields",
  item: "must not be empty for specified array items",
};

function typeProblems(schema: CustomSchema, level: Level, at: string): FieldProblem[] {
  const { type = "" } = schema;
  const path = `${at}.type`;
  const intOrString = schema["x-kubernetes-int-or-string"] === true;
  const preserves = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const problems: FieldProblem[] = [];
  if (type !== "" && !types.includes(type)) problems.push(unsupportedValue(path, type, types));
  if (schema["x-kubernetes-embedded-resource"] === true && type !== "object") {
    const why = "must be object if x-kubernetes-embedded-resource is true";
    problems.push(type === "" ? requiredValue(path, why) : invalidValue(path, type, why));
  } else if (type === "" && !intOrString && (!preserves || level === "root")) {
    problems.push(requiredValue(path, emptyType[level]));
  } else if (level === "root" && type !== "object") {
    problems.push(invalidValue(path, type, "must be object at the root"));
  }
  if (type === "array" && schema.items === undefined)
    problems.push(requiredValue(`${at}.items`, "must be specified"));
  return problems;
}

/** The keywords of JSON schema themselves. */
function valueKeywordProblems(schema: CustomSchema, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (schema.pattern !== undefined) {
    const why = patternProblem(schema.pattern);
    if (why !== undefined) {
      const text = `must be a valid regular expression, but isn't: ${why}`;
      problems.push(invalidValue(`${at}.pattern`, schema.pattern, text));
    }
  }
  if (schema.enum !== undefined && schema.enum.length === 0) {
    problems.push(requiredValue(`${at}.enum`, "must have at least one value"));
  }
  return problems;
}

function extensionProblems(schema: CustomSchema, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const { type } = schema;
  const listType = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const mapType = schema["x-kubernetes-map-type"];
  if (schema["x-kubernetes-preserve-unknown-fields"] === (false as boolean)) {
    const path = `${at}.x-kubernetes-preserve-unknown-fields`;
    problems.push(invalidValue(path, false, "must be true or undefined"));
  }
  if (mapType !== undefined) {
    const path = `${at}.x-kubernetes-map-type`;
    if (type !== "object") {
      problems.push(
        type === undefined
          ? requiredValue(`${at}.type`, "must be object if x-kubernetes-map-type is specified")
          : invalidValue(`${at}.type`, type, "must be object if x-kubernetes-map-type is specified"),
      );
    }
    if (mapType !== "atomic" && mapType !== "granular") {
      problems.push(unsupportedValue(path, mapType, ["atomic", "granular"]));
    }
  }
  if (listType !== undefined) {
    const path = `${at}.x-kubernetes-list-type`;
    if (type !== "array") {
      const why = "must be array if x-kubernetes-list-type is specified";
      problems.push(
        type === undefined ? requiredValue(`${at}.type`, why) : invalidValue(`${at}.type`, type, why),
      );
    }
    if (!["atomic", "set", "map"].includes(listType)) {
      problems.push(unsupportedValue(path, listType, ["atomic", "set", "map"]));
    }
  }
  if (keys.length > 0 && listType !== "map") {
    const path = `${at}.x-kubernetes-list-type`;
    const why = "must be map if x-kubernetes-list-map-keys is non-empty";
    problems.push(listType === undefined ? requiredValue(path, why) : invalidValue(path, listType, why));
  }
  if (listType === "map") problems.push(...mapListProblems(schema, keys, at));
  if (listType === "set" && schema.items !== undefined) {
    const { items } = schema;
    if (items.nullable === true) {
      problems.push(
        forbiddenValue(`${at}.items.nullable`, "cannot be nullable when x-kubernetes-list-type is set"),
      );
    }
    const isAtomic =
      (items.type === "object" && items["x-kubernetes-map-type"] !== "atomic") ||
      (items.type === "array" && (items["x-kubernetes-list-type"] ?? "atomic") !== "atomic");
    if (isAtomic) {
      const [which, value] =
        items.type === "object"
          ? ["x-kubernetes-map-type", items["x-kubernetes-map-type"]]
          : ["x-kubernetes-list-type", items["x-kubernetes-list-type"]];
      const why = `must be atomic as item of a list with x-kubernetes-list-type=set`;
      problems.push(invalidValue(`${at}.items.${which}`, value ?? null, why));
    }
  }
  if (
    schema["x-kubernetes-embedded-resource"] === true &&
    schema["x-kubernetes-preserve-unknown-fields"] !== true &&
    Object.keys(schema.properties ?? {}).length === 0
  ) {
    const why =
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
    problems.push(requiredValue(`${at}.properties`, why));
  }
  return problems;
}

function mapListProblems(schema: CustomSchema, keys: readonly string[], at: string): FieldProblem[] {
  const path = `${at}.x-kubernetes-list-map-keys`;
  const problems: FieldProblem[] = [];
  if (keys.length === 0) {
    return [requiredValue(path, "must not be empty if x-kubernetes-list-type is map")];
  }
  const { items } = schema;
  if (items !== undefined && items.type !== "object") {
    const why = "must be object if parent array's x-kubernetes-list-type is map";
    problems.push(invalidValue(`${at}.items.type`, items.type ?? "", why));
  }
  const seen = new Set<string>();
  for (const [i, key] of keys.entries()) {
    if (items?.type !== "object") continue;
    const property = items.properties?.[key];
    if (property === undefined) {
      const why = `entries must all be names of item properties`;
      problems.push(invalidValue(`${path}[${i}]`, key, why));
      continue;
    }
    if (property.type === "array" || property.type === "object") {
      problems.push(
        invalidValue(
          `${at}.items.properties[${key}].type`,
          property.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    }
    if (property.nullable === true) {
      problems.push(
        forbiddenValue(
          `${at}.items.properties[${key}].nullable`,
          "cannot be nullable when x-kubernetes-list-type is map",
        ),
      );
    }
    if (property.default === undefined && items?.required?.includes(key) !== true) {
      problems.push(
        requiredValue(
          `${at}.items.properties[${key}].default`,
          "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
      );
    }
    if (seen.has(key))
      problems.push({
        ...invalidValue(`${path}[${i}]`, key, "is a duplicate"),
        reason: "FieldValueDuplicate",
      });
    seen.add(key);
  }
  return problems;
}

/** apiVersion, kind and metadata are the server's: a schema may say little about them. */
function metadataRules(schema: CustomSchema, level: Level, at: string): FieldProblem[] {
  if (level !== "root" && schema["x-kubernetes-embedded-resource"] !== true) return [];
  const problems: FieldProblem[] = [];
  const { apiVersion, kind, metadata } = schema.properties ?? {};
  for (const [name, property] of [
    ["apiVersion", apiVersion],
    ["kind", kind],
  ] as const) {
    if (property !== undefined && property.type !== "string") {
      problems.push(invalidValue(`${at}.properties[${name}].type`, property.type ?? "", "must be string"));
    }
  }
  if (metadata !== undefined) {
    const path = `${at}.properties[metadata]`;
    if (metadata.type !== "object") {
      problems.push(invalidValue(`${path}.type`, metadata.type ?? "", "must be object"));
    }
    const { type: _t, description: _d, properties = {}, ...more } = metadata;
    const others = Object.keys(properties).filter((name) => name !== "name" && name !== "generateName");
    if (level === "root" && (others.length > 0 || Object.keys(more).length > 0)) {
      const why =
        "must not specify anything other than name and generateName, but metadata is implicitly specified";
      problems.push(forbiddenValue(path, why));
    }
  }
  return problems;
}

function defaultProblems(schema: CustomSchema, at: string, work: Work): FieldProblem[] {
  const { default: value } = schema;
  if (value === undefined || work.left < 0) return [];
  const path = `${at}.default`;
  // The default of a part is read as the part would be: it has no room for unknown members, and must be valid.
  const wrapped: CustomSchema = { type: "object", properties: { value: schema } };
  const unknown = prunedPaths({ value }, wrapped);
  if (unknown.length > 0) return [invalidValue(path, value, "must not have unknown fields")];
  const filled = withDefaults(value, schema);
  return [
    ...validateValue(filled, schema, { typedCauses: false, itemPaths: true }, "", work).map((problem) => ({
      ...problem,
      field: problem.field === "" ? path : `${path}.${problem.field}`,
    })),
    ...listTypeProblems(filled, schema, path),
  ];
}

const coreOnly = [
  "type",
  "default",
  "description",
  "title",
  "nullable",
  "additionalProperties",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-embedded-resource",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
  "x-kubernetes-validations",
] as const;

/** Where a schema within a combination stands. */
interface NestedPlace {
  readonly at: string;
  /** What it speaks of must be there outside of the combination; so it is at the root. */
  readonly completes: boolean;
}

/** What stands within allOf, anyOf, oneOf and not may say what values are valid, and nothing of what there is. */
function nested(
  schema: CustomSchema,
  core: CustomSchema | undefined,
  { at, completes }: NestedPlace,
  depth: number,
  problems: FieldProblem[],
): void {
  const under = (path: string): NestedPlace => ({ at: path, completes });
  if (depth > depthMax) {
    problems.push(forbiddenValue(at, `schemas must not be nested more than ${depthMax} levels deep`));
    return;
  }
  if (problems.length >= problemsMax) return;
  problems.push(...valueKeywordProblems(schema, at));
  const intOrString = core?.["x-kubernetes-int-or-string"] === true && isType(schema.type);
  for (const key of coreOnly) {
    if (schema[key] === undefined || (key === "type" && intOrString)) continue;
    const why =
      key === "type" || key === "title" || key === "description" ? "must be empty" : "must be undefined";
    problems.push(forbiddenValue(`${at}.${key}`, `${why} to be structural`));
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const inCore = core?.properties?.[name] ?? additional(core);
    const path = pathWithin(at, `.properties[${name}]`);
    if (completes && inCore === undefined) {
      problems.push(requiredValue(corePath(path), `because it is defined in ${path}`));
    }
    nested(property, inCore, under(path), depth + 1, problems);
  }
  if (schema.items !== undefined) {
    if (completes && core?.items === undefined) {
      problems.push(requiredValue(corePath(`${at}.items`), `because it is defined in ${at}.items`));
    }
    nested(schema.items, core?.items, under(`${at}.items`), depth + 1, problems);
  }
  for (const key of ["allOf", "anyOf", "oneOf"] as const) {
    for (const [i, one] of (schema[key] ?? []).entries())
      nested(one, core, under(`${at}.${key}[${i}]`), depth + 1, problems);
  }
  if (schema.not !== undefined) nested(schema.not, core, under(`${at}.not`), depth + 1, problems);
}

const isType = (type: string | undefined) => type === "integer" || type === "string";

function additional(schema: CustomSchema | undefined): CustomSchema | undefined {
  const { additionalProperties } = schema ?? {};
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

/** The same place outside of the combinations. */
function corePath(path: string): string {
  return path.replace(/\.(allOf|anyOf|oneOf)\[\d+\]|\.not(?=\.|$)/g, "");
}
