/** Steps from a type to the types of what it holds, and how a value decides what its type is. */
import { type FieldType, type ListType, type MapType, type StructType, untyped } from "../api/field-type.ts";
import { memberName, type PathElement } from "./path-element.ts";

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** True for a JSON object; arrays and null are none. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The type of a named member of a struct; undefined for members of maps, and for those that a struct does not have. */
export function fieldOf(type: FieldType, name: string): FieldType | undefined {
  return type.form === "struct" ? type.field(name) : undefined;
}

/** The type of a member of a map or struct. */
export function memberType(type: FieldType, name: string): FieldType {
  if (type.form === "struct") return type.field(name) ?? untyped;
  return type.form === "map" ? type.of : untyped;
}

/** The type of what a part of a path leads to. */
export function childType(type: FieldType, element: PathElement): FieldType {
  const name = memberName(element);
  if (name !== undefined) return memberType(type, name);
  return type.form === "list" ? type.of : untyped;
}

const untypedMap: MapType = { form: "map", atomic: false, of: untyped };
const untypedList: ListType = { form: "list", listType: "atomic", keys: [], keyDefaults: {}, of: untyped };

/** The type that a value, or two of which one may be missing, has where anything may be. */
export function deduced(type: FieldType, value: unknown): Exclude<FieldType, { form: "untyped" }> {
  if (type.form !== "untyped") return type;
  if (Array.isArray(value)) return untypedList;
  return isObject(value) ? untypedMap : anyScalar;
}

const anyScalar = { form: "scalar", accepts: "any" } as const;

/** True when the value is owned as a whole. */
export function isWhole(type: Exclude<FieldType, { form: "untyped" }>): boolean {
  if (type.form === "scalar") return true;
  return type.form === "list" ? type.listType === "atomic" : type.atomic;
}

/** A member's value, or what it is where it is left out; undefined when it is not there at all. */
export function memberValue(type: FieldType, object: Json, name: string): unknown {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value !== undefined) return value;
  return type.form === "struct" ? type.always.get(name) : undefined;
}

/** The names of the members that an object has, and of those that are there where left out. */
export function namesOf(type: FieldType, object: Json): readonly string[] {
  const names = Object.keys(object);
  if (type.form !== "struct" || type.always.size === 0) return names;
  return [...names, ...missing(type, object)];
}

function* missing(type: StructType, object: Json): Iterable<string> {
  for (const name of type.always.keys()) if (!Object.hasOwn(object, name)) yield name;
}
