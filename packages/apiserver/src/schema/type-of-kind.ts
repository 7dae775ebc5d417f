/**
 * One view of types for all code that walks objects by type: server-side apply, patches, validation of fields. Types
 * of built-in kinds come from the API's structs and the merge rules; types of custom resources from their schemas.
 */
import type { FieldType, ListType, ScalarType, StructType } from "../api/field-type.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { alwaysThere } from "./go-values.ts";
import { atomicStructs, defaultsOf } from "./known-values.ts";
import { type MergeRule, mergeRules } from "./merge-rules.ts";
import { structNameOf, structOf, type TypeRef } from "./schema.ts";

const scalarOf = (accepts: ScalarType["accepts"]): ScalarType => ({ form: "scalar", accepts });
const scalars = {
  string: scalarOf("string"),
  integer: scalarOf("integer"),
  boolean: scalarOf("boolean"),
  quantity: scalarOf("any"),
  intOrString: scalarOf("any"),
  time: scalarOf("string"),
  microTime: scalarOf("string"),
} as const;

/** What a kind must say for its type to be found. */
export interface TypedKind {
  readonly group: string;
  readonly kind: string;
  /** The type of its objects in a version, where they are not of the API's own structs. */
  readonly type?: (version: string) => FieldType;
}

/** The type of the kind's objects in a version of its group. */
export function typeOfKind(of: TypedKind, version: string, emulated: EmulatedVersion): FieldType {
  if (of.type !== undefined) return of.type(version);
  return structType(structNameOf(of.group, of.kind, version), emulated);
}

/** By minor version, then by name. */
const made = new Map<number, Map<string, StructType>>();

/** The struct `group.version.Type` as a type; without members when there is no such struct. */
export function structType(name: string, emulated: EmulatedVersion): StructType {
  const ofMinor = made.get(emulated.minor) ?? new Map<string, StructType>();
  made.set(emulated.minor, ofMinor);
  const known = ofMinor.get(name);
  if (known !== undefined) return known;
  const type = makeStruct(name, emulated);
  ofMinor.set(name, type);
  return type;
}

function makeStruct(name: string, emulated: EmulatedVersion): StructType {
  const struct = structOf(name, emulated);
  const fields = new Map<string, FieldType | undefined>();
  return {
    form: "struct",
    name,
    atomic: isAtomic(name, emulated),
    always: alwaysThere(name, struct),
    field(member) {
      if (fields.has(member)) return fields.get(member);
      const known = struct?.get(member);
      if (known === undefined) return undefined;
      const type = typeOf(known.type, emulated, mergeRules[`${name}.${member}`]);
      fields.set(member, type);
      return type;
    },
  };
}

/** Only selectors of labels were replaced as a whole in 1.20; the others follow. */
function isAtomic(name: string, emulated: EmulatedVersion): boolean {
  if (!atomicStructs.has(name)) return false;
  return name === "meta.v1.LabelSelector" || emulated.has("atomicStructs");
}

function typeOf(ref: TypeRef, emulated: EmulatedVersion, rule?: MergeRule): FieldType {
  switch (ref.form) {
    case "any":
      return scalarOf("anything");
    case "struct":
      return structType(ref.name, emulated);
    case "map":
      return { form: "map", atomic: false, of: typeOf(ref.of, emulated) };
    case "list":
      return listOf(ref.of, emulated, rule);
    default:
      return scalars[ref.form];
  }
}

function listOf(item: TypeRef, emulated: EmulatedVersion, rule: MergeRule = {}): ListType {
  const keys = rule.listMapKeys ?? (rule.mergeKey === undefined ? [] : [rule.mergeKey]);
  const isMerged = rule.strategy?.split(",").includes("merge") === true;
  const listType = rule.listType ?? (!isMerged ? "atomic" : keys.length > 0 ? "map" : "set");
  const keyDefaults: Record<string, unknown> = {};
  if (listType === "map" && item.form === "struct") {
    for (const key of keys) {
      const value = defaultsOf[`${item.name}.${key}`];
      if (value !== undefined) keyDefaults[key] = value;
    }
  }
  return {
    form: "list",
    listType,
    keys: listType === "map" ? keys : [],
    keyDefaults,
    of: typeOf(item, emulated),
  };
}
