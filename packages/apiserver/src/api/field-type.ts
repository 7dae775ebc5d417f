/**
 * One view of types for all code that walks objects by type. `schema/type-of-kind.ts` makes them of the API's structs,
 * `custom/custom-type.ts` of the schemas of custom resources.
 */

/** A value that is owned as a whole, of one of these kinds of JSON values. */
export interface ScalarType {
  readonly form: "scalar";
  readonly accepts: "string" | "integer" | "number" | "boolean" | "any" | "anything";
}

/** An object of known members. */
export interface StructType {
  readonly form: "struct";
  /** It is replaced, and owned, as a whole. */
  readonly atomic: boolean;
  /** `group.version.Type`, or a name for messages. */
  readonly name: string;
  /** The type of a member; undefined when no member has that name. */
  field(name: string): FieldType | undefined;
  /**
   * Members that are there even where JSON leaves them out, with the value that they then have: `{}` for structs
   * that are no pointers, null for lists and times, zero for scalars. Source: the types of k8s.io/api.
   */
  readonly always: ReadonlyMap<string, unknown>;
}

/** An object of any members of one type. */
export interface MapType {
  readonly form: "map";
  readonly atomic: boolean;
  readonly of: FieldType;
}

/** A list: replaced as a whole, a set of scalars, or objects identified by the values of their keys. */
export interface ListType {
  readonly form: "list";
  readonly listType: "atomic" | "set" | "map";
  readonly keys: readonly string[];
  /** What a key that an item leaves out is taken for. */
  readonly keyDefaults: Readonly<Record<string, unknown>>;
  readonly of: FieldType;
}

/** Anything: maps are walked member by member, lists and scalars are owned as a whole. */
export interface UntypedType {
  readonly form: "untyped";
}

/** The type of a value. */
export type FieldType = ScalarType | StructType | MapType | ListType | UntypedType;

/** The type of anything. */
export const untyped: UntypedType = { form: "untyped" };
