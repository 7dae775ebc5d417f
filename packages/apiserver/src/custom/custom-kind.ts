/** The kind that a CustomResourceDefinition makes, with the rules that its schemas say. */
import type { KubeObject, Stored } from "@longshore/kube";
import { compareVersions } from "../api/compare-versions.ts";
import type { CustomSchema } from "../api/custom-schema.ts";
import type { FieldProblem } from "../api/errors.ts";
import type { CustomKind, Kind, SubresourceInfo } from "../api/kind.ts";
import { ownWithNulls } from "../api/own.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { problemsMax } from "./add-problems.ts";
import { columnsOfDefinition } from "./columns-of-definition.ts";
import { customType } from "./custom-type.ts";
import { type DefinitionVersion, isTrue, type StoredDefinition, storageVersionOf } from "./definition.ts";
import { embeddedProblems, withReadMetadata } from "./embedded-problems.ts";
import { firstValueAt } from "./json-path.ts";
import { listTypeProblems } from "./list-type-problems.ts";
import { prune, prunedPaths } from "./prune.ts";
import { ruleViolations } from "./rule-violations.ts";
import { unchangedProblems } from "./unchanged-problems.ts";
import { validateValue, workMax } from "./validate-value.ts";
import { withDefaults } from "./with-defaults.ts";

/** The kind that the definition makes, or undefined when none of its versions is served. */
export function customKind(definition: StoredDefinition, emulated: EmulatedVersion): Kind | undefined {
  const { spec } = definition;
  const served = spec.versions.filter((version) => version.served);
  const [first, ...rest] = served.map((version) => version.name).sort(compareVersions);
  if (first === undefined) return undefined;
  const versions = [first, ...rest] as const;
  const schemaOf = (name: string): CustomSchema | undefined =>
    spec.versions.find((version) => version.name === name)?.schema?.openAPIV3Schema;
  const kinds = new Map<string, Kind>();
  const names = definition.status?.acceptedNames ?? spec.names;
  const custom: CustomKind = {
    listKind: names.listKind || `${names.kind}List`,
    isTerminating: isTrue(definition, "Terminating"),
    schemaOf,
    inVersion: (name) => kinds.get(name) ?? (kinds.get(first) as Kind),
    deprecation: (name) => deprecationOf(definition, name),
    read: (object, version) => readObject(object, schemaOf(version)),
    unknownFields: (object, version) => prunedPaths(object, schemaOf(version)),
  };
  const base = {
    group: spec.group,
    versions,
    storageVersion: storageVersionOf(definition),
    kind: names.kind,
    plural: names.plural,
    singular: names.singular || names.kind.toLowerCase(),
    ...(names.shortNames?.length ? { shortNames: names.shortNames } : {}),
    ...(names.categories?.length ? { categories: names.categories } : {}),
    namespaced: spec.scope === "Namespaced",
    custom,
    statusKeepsMetadata: true,
    countsGenerations: true,
    updateNeedsVersion: true,
    anyFinalizers: true,
  };
  for (const version of served) kinds.set(version.name, kindOfVersion(base, version, emulated));
  return kinds.get(first);
}

type Base = Omit<Kind, "statusSubresource" | "subresources" | "columns" | "fields" | "conversion">;

function kindOfVersion(base: Base, version: DefinitionVersion, emulated: EmulatedVersion): Kind {
  const schema = version.schema?.openAPIV3Schema;
  const { status, scale } = version.subresources ?? {};
  const rules = rulesOf(schema, emulated);
  const selectable = emulated.has("crdSelectableFields") ? (version.selectableFields ?? []) : [];
  const type = customType(schema, `${base.group}.${version.name}.${base.kind}`, emulated);
  const columns = columnsOfDefinition(version.additionalPrinterColumns);
  return {
    ...base,
    statusSubresource: status !== undefined,
    ...(scale === undefined ? {} : { subresources: { scale: scaleInfo }, scalePaths: scale }),
    conversion: {
      toStored: (object) => object,
      // What was stored under another schema is shown under this one.
      fromStored: (object) => shaped(object, schema),
    },
    ...(status === undefined ? {} : { prepareCreate: withoutStatus }),
    validateCreate: (object) => rules(object, undefined),
    validateUpdate: rules,
    validateStatusUpdate: rules,
    columns: () => columns,
    type: () => type,
    ...(selectable.length === 0 ? {} : { fields: (object) => fieldsOf(object, selectable) }),
  };
}

const scaleInfo: SubresourceInfo = {
  group: "autoscaling",
  version: "v1",
  kind: "Scale",
  verbs: ["get", "patch", "update"],
};

function withoutStatus(object: KubeObject): KubeObject {
  const { status: _, ...rest } = object as KubeObject & { status?: unknown };
  return rest;
}

/** An object as a client sent it, in the shape that is kept. */
function readObject(object: KubeObject, schema: CustomSchema | undefined): KubeObject {
  return shaped(ownWithNulls(withReadMetadata(object, schema)), schema);
}

/** Without what the schema does not know, with its defaults; itself when nothing is to be done. */
function shaped<T extends KubeObject>(object: T, schema: CustomSchema | undefined): T {
  return ownWithNulls(withDefaults(prune(object, schema), schema));
}

/** The rules of a schema as one function of what is there and what was. */
function rulesOf(schema: CustomSchema | undefined, emulated: EmulatedVersion) {
  if (schema === undefined) return () => [];
  const words = {
    typedCauses: emulated.has("crdTypedCauses"),
    itemPaths: emulated.has("crdItemPaths"),
  };
  const ratchets = emulated.has("crdRatcheting");
  const schemaProblems = (object: KubeObject, old: Stored | undefined, of: CustomSchema) => {
    const work = { left: workMax };
    const values = validateValue(object, of, words, "", work);
    if (work.left < 0) return values.map((problem) => ({ ...problem, field: "<nil>" }));
    const found = [...values, ...listTypeProblems(object, of), ...embeddedProblems(object, of)];
    // Of more than can be looked for, it is not known whether all were there before.
    if (found.length >= problemsMax) return found;
    return ratchets && old !== undefined ? unchangedProblems(found, object, old, of) : found;
  };
  const usesRules = emulated.has("crdValidationRules");
  return (object: KubeObject, old: Stored | undefined): readonly FieldProblem[] => {
    const problems = schemaProblems(object, old, schema);
    // Rules may rely on the types that the schema says.
    if (problems.length > 0 || !usesRules) return problems;
    return ruleViolations(object, old, schema, { ratchets });
  };
}

function deprecationOf({ spec }: StoredDefinition, name: string): string | undefined {
  const version = spec.versions.find((one) => one.name === name);
  if (version?.deprecated !== true) return undefined;
  return version.deprecationWarning ?? `${spec.group}/${name} ${spec.names.kind} is deprecated`;
}

function fieldsOf(
  object: KubeObject,
  selectable: NonNullable<DefinitionVersion["selectableFields"]>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    selectable.map(({ jsonPath }) => {
      const value = firstValueAt(object, jsonPath);
      return [jsonPath.replace(/^\./, ""), value === undefined || value === null ? "" : String(value)];
    }),
  );
}
