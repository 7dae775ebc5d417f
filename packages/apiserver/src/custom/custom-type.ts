/** The types of custom resources, for code that walks objects by type: from the structural schema of a version. */
import type { CustomSchema } from "../api/custom-schema.ts";
import {
  type FieldType,
  type ListType,
  type ScalarType,
  type StructType,
  untyped,
} from "../api/field-type.ts";
import { structType } from "../schema/type-of-kind.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { own } from "./prune.ts";

const scalar = (accepts: ScalarType["accepts"]): ScalarType => ({ form: "scalar", accepts });

const types = new WeakMap<CustomSchema, FieldType>();

/** The type of a whole object; a kind without a schema has untyped objects, but for their metadata. */
export function customType(
  schema: CustomSchema | undefined,
  name: string,
  emulated: EmulatedVersion,
): FieldType {
  return resourceType(schema ?? { "x-kubernetes-preserve-unknown-fields": true }, name, emulated);
}

/** An object with metadata, which the schema need not declare. */
function resourceType(schema: CustomSchema, name: string, emulated: EmulatedVersion): StructType {
  const body = structOf(schema, name, emulated);
  const metadata = structType("meta.v1.ObjectMeta", emulated);
  return {
    ...body,
    field(member) {
      if (member === "metadata") return metadata;
      if (member === "apiVersion" || member === "kind") return scalar("string");
      return body.field(member);
    },
  };
}

function typeOf(schema: CustomSchema, name: string, emulated: EmulatedVersion): FieldType {
  let type = types.get(schema);
  if (type === undefined) {
    type = makeType(schema, name, emulated);
    types.set(schema, type);
  }
  return type;
}

function makeType(schema: CustomSchema, name: string, emulated: EmulatedVersion): FieldType {
  if (schema["x-kubernetes-int-or-string"] === true) return scalar("any");
  switch (schema.type) {
    case "object": {
      if (schema["x-kubernetes-embedded-resource"] === true) return resourceType(schema, name, emulated);
      const { additionalProperties } = schema;
      const atomic = schema["x-kubernetes-map-type"] === "atomic";
      if (typeof additionalProperties === "object") {
        return { form: "map", atomic, of: typeOf(additionalProperties, name, emulated) };
      }
      if (additionalProperties === true) return { form: "map", atomic, of: untyped };
      return structOf(schema, name, emulated);
    }
    case "array":
      return listOf(schema, name, emulated);
    case "string":
    case "integer":
    case "number":
    case "boolean":
      return scalar(schema.type);
    default:
      return untyped;
  }
}

function structOf(schema: CustomSchema, name: string, emulated: EmulatedVersion): StructType {
  const keepsUnknown = schema["x-kubernetes-preserve-unknown-fields"] === true;
  return {
    form: "struct",
    atomic: schema["x-kubernetes-map-type"] === "atomic",
    name,
    always: nothing,
    field(member) {
      const property = own(schema.properties, member);
      if (property !== undefined) return typeOf(property, `${name}.${member}`, emulated);
      return keepsUnknown ? untyped : undefined;
    },
  };
}

/** JSON leaves nothing out that is there. */
const nothing: ReadonlyMap<string, unknown> = new Map();

function listOf(schema: CustomSchema, name: string, emulated: EmulatedVersion): ListType {
  const { items } = schema;
  const listType = schema["x-kubernetes-list-type"] ?? "atomic";
  const keys = listType === "map" ? (schema["x-kubernetes-list-map-keys"] ?? []) : [];
  const keyDefaults: Record<string, unknown> = {};
  for (const key of keys) {
    const value = own(items?.properties, key)?.default;
    if (value !== undefined) keyDefaults[key] = value;
  }
  const of = items === undefined ? untyped : typeOf(items, name, emulated);
  return { form: "list", listType, keys, keyDefaults, of };
}
