/** What a CustomResourceDefinition must be like (apiextensions-apiserver pkg/apis/apiextensions/validation). */
import type { KubeObject } from "@longshore/kube";
import type { CustomSchema } from "../api/custom-schema.ts";
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  tooManyItems,
  unsupportedValue,
} from "../api/errors.ts";
import { dns1035LabelProblems, subdomainProblems } from "../api/names.ts";
import { sameJson } from "../api/own.ts";
import {
  type Definition,
  type DefinitionNames,
  type DefinitionVersion,
  isTrue,
  type PrinterColumn,
  storageVersionOf,
} from "./definition.ts";
import { jsonPathProblem } from "./json-path.ts";
import { ruleProblems } from "./rule-problems.ts";
import { structuralProblems } from "./structural-problems.ts";

/** What the emulated version lets definitions have. */
export interface DefinitionFeatures {
  /** `x-kubernetes-validations` count, rather than being dropped. */
  readonly rules: boolean;
}

/** Problems of a definition. Pure. */
export function definitionProblems(object: KubeObject, features: DefinitionFeatures): FieldProblem[] {
  const { metadata, spec } = object as Definition;
  if (spec === undefined) return [requiredValue("spec")];
  const problems: FieldProblem[] = [];
  const name = `${spec.names?.plural ?? ""}.${spec.group ?? ""}`;
  if (metadata?.name !== name) {
    problems.push(invalidValue("metadata.name", metadata?.name, 'must be spec.names.plural+"."+spec.group'));
  }
  problems.push(
    ...approvalProblems(object as Definition),
    ...groupProblems(spec.group ?? ""),
    ...scopeProblems(spec.scope),
    ...versionsProblems(spec.versions ?? [], features),
    ...namesProblems(spec.names),
    ...conversionProblems(spec),
  );
  if (spec.preserveUnknownFields === true) {
    const why =
      "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead";
    problems.push(invalidValue("spec.preserveUnknownFields", true, why));
  }
  return problems;
}

const approvalAnnotation = "api-approved.kubernetes.io";
const approvalSource = "https://github.com/kubernetes/enhancements/pull/1111";

/** Groups of Kubernetes itself ask for a reviewer. */
function approvalProblems({ metadata, spec }: Definition): FieldProblem[] {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(spec.group ?? "")) return [];
  const given = metadata?.annotations?.[approvalAnnotation] ?? "";
  const at = `metadata.annotations[${approvalAnnotation}]`;
  const must = `protected groups must have approval annotation ${JSON.stringify(approvalAnnotation)}`;
  if (given === "") return [requiredValue(at, `${must}, see ${approvalSource}`)];
  if (given.startsWith("unapproved") || (URL.canParse(given) && new URL(given).host !== "")) return [];
  const why = `${must} with either a URL or a reason starting with "unapproved", see ${approvalSource}`;
  return [invalidValue(at, given, why)];
}

function groupProblems(group: string): FieldProblem[] {
  if (group === "") return [requiredValue("spec.group")];
  const problems = subdomainProblems(group).map((why) => invalidValue("spec.group", group, why));
  if (problems.length === 0 && !group.includes(".")) {
    problems.push(invalidValue("spec.group", group, "should be a domain with at least one dot"));
  }
  return problems;
}

function scopeProblems(scope: string | undefined): FieldProblem[] {
  if (scope === undefined || scope === "") return [requiredValue("spec.scope")];
  return scope === "Cluster" || scope === "Namespaced"
    ? []
    : [unsupportedValue("spec.scope", scope, ["Cluster", "Namespaced"])];
}

function versionsProblems(
  versions: readonly DefinitionVersion[],
  features: DefinitionFeatures,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (versions.length === 0) {
    problems.push(invalidValue("spec.versions", versions, "must have at least one version"));
  }
  const names = new Set<string>();
  for (const [i, version] of versions.entries()) {
    const at = `spec.versions[${i}]`;
    if (names.has(version.name)) {
      problems.push(invalidValue("spec.versions", version.name, "must contain unique version names"));
    }
    names.add(version.name);
    problems.push(
      ...nameProblemsOf(version.name, `${at}.name`),
      // The name of the first version counts as said for the whole definition, too.
      ...(i === 0 ? nameProblemsOf(version.name, "spec.version") : []),
      ...deprecationProblems(version, at),
    );
  }
  for (const [i, version] of versions.entries()) {
    if (version.schema?.openAPIV3Schema !== undefined) continue;
    const at = `spec.versions[${i}].schema.openAPIV3Schema`;
    problems.push(requiredValue(at, "schemas are required"));
  }
  problems.push(...partProblems(versions, features));
  if (versions.length > 0 && versions.filter((version) => version.storage).length !== 1) {
    const why = "must have exactly one version marked as storage version";
    problems.push(invalidValue("spec.versions", [...names], why));
  }
  return problems;
}

function nameProblemsOf(name: string | undefined, at: string): FieldProblem[] {
  return dns1035LabelProblems(name ?? "").map((why) => invalidValue(at, name ?? "", why));
}

/** A part of a version, and where its problems are: what all versions have alike counts as said once, for all. */
interface VersionPart<T> {
  readonly of: (version: DefinitionVersion) => T | undefined;
  readonly shared: string;
  readonly own: string;
  readonly check: (part: T, at: string, features: DefinitionFeatures) => FieldProblem[];
}

/** For type inference only. */
const part = <T>(given: VersionPart<T>): VersionPart<unknown> => given as VersionPart<unknown>;

const versionParts: readonly VersionPart<unknown>[] = [
  part({
    of: ({ schema }) => schema?.openAPIV3Schema,
    shared: "spec.validation.openAPIV3Schema",
    own: "schema.openAPIV3Schema",
    check: schemaProblems,
  }),
  part({
    of: ({ subresources }) => subresources?.scale,
    shared: "spec.subresources.scale",
    own: "subresources.scale",
    check: scaleProblems,
  }),
  part({
    of: ({ additionalPrinterColumns }) => additionalPrinterColumns,
    shared: "spec.additionalPrinterColumns",
    own: "additionalPrinterColumns",
    check: columnProblems,
  }),
  part({
    of: ({ selectableFields }) => selectableFields,
    shared: "spec.selectableFields",
    own: "selectableFields",
    check: selectableFieldProblems,
  }),
];

function partProblems(versions: readonly DefinitionVersion[], features: DefinitionFeatures): FieldProblem[] {
  return versionParts.flatMap(({ of, shared, own, check }) => {
    const parts = versions.map(of);
    const [first, ...others] = parts;
    if (first !== undefined && others.every((other) => sameJson(other, first))) {
      return check(first, shared, features);
    }
    return parts.flatMap((one, i) =>
      one === undefined ? [] : check(one, `spec.versions[${i}].${own}`, features),
    );
  });
}

function schemaProblems(schema: CustomSchema, at: string, features: DefinitionFeatures): FieldProblem[] {
  const structural = structuralProblems(schema, at);
  if (structural.length > 0 || !features.rules) return [...structural];
  return ruleProblems(schema, at);
}

function deprecationProblems(version: DefinitionVersion, at: string): FieldProblem[] {
  const text = version.deprecationWarning;
  if (text === undefined) return [];
  const path = `${at}.deprecationWarning`;
  const problems: FieldProblem[] = [];
  if (version.deprecated !== true) {
    problems.push(invalidValue(path, text, "can only be set for deprecated versions"));
  }
  if (text === "") problems.push(invalidValue(path, text, "must not be an empty string"));
  if (text.length > 256) {
    const message = "Too long: must have at most 256 bytes";
    problems.push({ reason: "FieldValueTooLong", message, field: path });
  }
  return problems;
}

function columnProblems(columns: readonly PrinterColumn[], at: string): FieldProblem[] {
  return columns.flatMap((column, i) => {
    const path = `${at}[${i}]`;
    const problems: FieldProblem[] = [];
    if (!column.name) problems.push(requiredValue(`${path}.name`));
    if (!column.type) problems.push(requiredValue(`${path}.type`));
    else if (!columnTypes.includes(column.type)) {
      problems.push(invalidValue(`${path}.type`, column.type, `must be one of ${columnTypes.join(",")}`));
    }
    if (column.format && !columnFormats.includes(column.format)) {
      const why = `must be one of ${columnFormats.join(",")}`;
      problems.push(invalidValue(`${path}.format`, column.format, why));
    }
    return [...problems, ...pathProblems(column.jsonPath, `${path}.JSONPath`)];
  });
}

/** Most fields that selectors may use. */
const fieldsMax = 8;

function selectableFieldProblems(
  fields: NonNullable<DefinitionVersion["selectableFields"]>,
  at: string,
): FieldProblem[] {
  const seen = new Set<string>();
  const problems: FieldProblem[] = [];
  for (const [i, { jsonPath }] of fields.entries()) {
    const path = `${at}[${i}].jsonPath`;
    problems.push(...pathProblems(jsonPath, path));
    if (/^\.metadata(\.|$)/.test(jsonPath)) {
      problems.push(invalidValue(path, jsonPath, "must not point to fields in metadata"));
    }
    if (seen.has(jsonPath)) problems.push(duplicateValue(path, jsonPath));
    seen.add(jsonPath);
  }
  if (fields.length > fieldsMax) problems.push(tooManyItems(at, fields.length, fieldsMax));
  return problems;
}

const columnTypes = ["boolean", "date", "integer", "number", "string"];
const columnFormats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

function scaleProblems(
  scale: NonNullable<NonNullable<DefinitionVersion["subresources"]>["scale"]>,
  at: string,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const check = (key: "specReplicasPath" | "statusReplicasPath", under: string) => {
    const path = scale[key];
    if (!path) problems.push(requiredValue(`${at}.${key}`));
    else if (jsonPathProblem(path, "simple") !== undefined || !path.startsWith(`${under}.`)) {
      problems.push(invalidValue(`${at}.${key}`, path, `should be a json path under ${under}`));
    }
  };
  check("specReplicasPath", ".spec");
  check("statusReplicasPath", ".status");
  const selector = scale.labelSelectorPath;
  if (selector !== undefined && selector !== "" && !/^\.(status|spec)\./.test(selector)) {
    const why = "should be a json path under either .spec or .status";
    problems.push(invalidValue(`${at}.labelSelectorPath`, selector, why));
  }
  return problems;
}

function pathProblems(path: string | undefined, at: string): FieldProblem[] {
  if (!path) return [requiredValue(at)];
  const why = jsonPathProblem(path);
  return why === undefined ? [] : [invalidValue(at, path, why)];
}

function namesProblems(names: DefinitionNames | undefined): FieldProblem[] {
  const at = "spec.names";
  const problems: FieldProblem[] = [];
  const check = (key: "plural" | "singular" | "kind" | "listKind") => {
    const given = names?.[key] ?? "";
    if (given === "") problems.push(requiredValue(`${at}.${key}`));
    if (given === "") return;
    const name = key === "kind" || key === "listKind" ? given.toLowerCase() : given;
    const why = dns1035LabelProblems(name);
    if (why.length > 0) {
      const text =
        key === "kind" || key === "listKind"
          ? `may have mixed case, but should otherwise match: ${why.join(",")}`
          : why.join(",");
      problems.push(invalidValue(`${at}.${key}`, given, text));
    }
  };
  check("plural");
  check("singular");
  check("kind");
  check("listKind");
  for (const key of ["shortNames", "categories"] as const) {
    for (const [i, name] of (names?.[key] ?? []).entries()) {
      const why = dns1035LabelProblems(name);
      if (why.length > 0) problems.push(invalidValue(`${at}.${key}[${i}]`, name, why.join(",")));
    }
  }
  if (names?.kind !== undefined && names.kind !== "" && names.kind === names.listKind) {
    problems.push(invalidValue(`${at}.listKind`, names.listKind, "kind and listKind may not be the same"));
  }
  return problems;
}

/** Conversion webhooks are not supported: a definition that needs one is refused. */
function conversionProblems({ conversion }: Definition["spec"]): FieldProblem[] {
  if (conversion === undefined) return [];
  const at = "spec.conversion";
  if (conversion.strategy === "None") {
    return conversion.webhook === undefined
      ? []
      : [forbiddenValue(`${at}.webhook`, "should not be set when strategy is not set to Webhook")];
  }
  return [unsupportedValue(`${at}.strategy`, conversion.strategy, ["None"])];
}

/** Problems of a change of a definition. Pure. */
export function definitionUpdateProblems(next: KubeObject, old: KubeObject): FieldProblem[] {
  const after = next as Definition;
  const before = old as Definition;
  const problems: FieldProblem[] = [];
  const keep = (path: string, a: unknown, b: unknown) => {
    if (!sameJson(a, b)) problems.push(invalidValue(path, a ?? "", "field is immutable"));
  };
  if (isTrue(before, "Established")) {
    keep("spec.scope", after.spec.scope, before.spec.scope);
    keep("spec.names.kind", after.spec.names.kind, before.spec.names.kind);
  }
  keep("spec.group", after.spec.group, before.spec.group);
  keep("spec.names.plural", after.spec.names.plural, before.spec.names.plural);
  return [...problems, ...storedVersionProblems(after)];
}

/** Problems of the status. Pure. */
export function storedVersionProblems(definition: KubeObject): FieldProblem[] {
  const { spec, status } = definition as Definition;
  const at = "status.storedVersions";
  const stored = status?.storedVersions ?? [];
  if (stored.length === 0) return [invalidValue(at, [], "must have at least one stored version")];
  const known = spec.versions.map((version) => version.name);
  const problems = stored.flatMap((version, i) =>
    known.includes(version) ? [] : [invalidValue(`${at}[${i}]`, version, "must appear in spec.versions")],
  );
  const storage = storageVersionOf({ spec });
  if (!stored.includes(storage))
    problems.push(invalidValue(at, stored, `must have the storage version ${storage}`));
  return problems;
}
