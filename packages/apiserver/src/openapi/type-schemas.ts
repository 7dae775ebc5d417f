/** Schemas of the API's types, made for those that a document refers to, and what these refer to. */
import { wireTexts } from "../schema/gen/wire.ts";
import { atomicStructs, defaultsOf, enumsOf } from "../schema/known-values.ts";
import { type MergeRule, mergeRules } from "../schema/merge-rules.ts";
import { type Member, structOf, type TypeRef } from "../schema/schema.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import type { GroupVersionKind, Schema } from "./model.ts";
import { wordsOf } from "./words.ts";

/** How a version of OpenAPI writes schemas. */
export interface SchemaDialect {
  /** What stands before the name of a schema in a reference. */
  readonly refPrefix: string;
  /** An object with `$ref` has no other members: a reference that needs some is wrapped. */
  readonly wrapsReferences: boolean;
  /** Enum values of strings, and alternatives between types, are included. */
  readonly listsEnums: boolean;
}

const metaPrefix = "io.k8s.apimachinery.pkg.apis.";

type Named = "quantity" | "intOrString" | "time" | "microTime";

/** Types that documents name although they are no structs. Version 3 can say that a value is one of two. */
const named: Readonly<Record<Named, { readonly name: string; readonly v2: Schema; readonly v3?: Schema }>> = {
  quantity: {
    name: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    v2: { type: "string", description: "A number with an optional suffix: 10Gi, 500m, 1e3." },
    v3: {
      description: "A number with an optional suffix: 10Gi, 500m, 1e3.",
      oneOf: [{ type: "string" }, { type: "number" }],
    },
  },
  intOrString: {
    name: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    v2: { type: "string", format: "int-or-string", description: "A whole number, or a text." },
    v3: {
      description: "A whole number, or a text.",
      format: "int-or-string",
      oneOf: [{ type: "integer" }, { type: "string" }],
    },
  },
  time: { name: `${metaPrefix}meta.v1.Time`, v2: { type: "string", format: "date-time" } },
  microTime: { name: `${metaPrefix}meta.v1.MicroTime`, v2: { type: "string", format: "date-time" } },
};

/** `core.v1.Pod` as documents name it. */
export function definitionName(struct: string): string {
  if (struct.startsWith("meta.")) return `${metaPrefix}${struct}`;
  if (struct.startsWith("apiextensions.")) return `io.k8s.apiextensions-apiserver.pkg.apis.${struct}`;
  return `io.k8s.api.${struct}`;
}

/** The schemas of one document. */
export class TypeSchemas {
  readonly #dialect: SchemaDialect;
  readonly #schemas = new Map<string, Schema>();
  readonly #waiting: string[] = [];
  readonly #emulated: EmulatedVersion;

  constructor(dialect: SchemaDialect, emulated: EmulatedVersion) {
    this.#dialect = dialect;
    this.#emulated = emulated;
  }

  /** A reference to the struct, whose schema will be in the document. */
  ref(struct: string): Schema {
    const name = definitionName(struct);
    if (!this.#schemas.has(name)) {
      this.#schemas.set(name, {});
      this.#waiting.push(struct);
    }
    return this.refTo(name);
  }

  /** A reference to a schema of that name. */
  refTo(name: string): Schema {
    return { $ref: `${this.#dialect.refPrefix}${name}` };
  }

  /** Adds a schema under the name. */
  add(name: string, schema: Schema): void {
    this.#schemas.set(name, schema);
  }

  has(name: string): boolean {
    return this.#schemas.has(name);
  }

  /** Puts in the schema of a kind, whose struct may be that of another version. */
  addObject(struct: string, name: string, gvk: GroupVersionKind): void {
    this.add(name, { ...this.#structSchema(struct), "x-kubernetes-group-version-kind": [gvk] });
  }

  /** As {@link addObject}, with the kind's list. */
  addKind(struct: string, name: string, gvk: GroupVersionKind): void {
    this.addObject(struct, name, gvk);
    const list = { ...gvk, kind: `${gvk.kind}List` };
    this.add(`${name}List`, {
      ...this.listSchema(name, gvk.kind),
      "x-kubernetes-group-version-kind": [list],
    });
  }

  /** The schema of a list of objects. */
  listSchema(name: string, kind: string): Schema {
    return {
      type: "object",
      description: `A list of objects of the kind ${kind}.`,
      required: ["items"],
      properties: {
        apiVersion: this.#described({ type: "string" }, wordsOf("meta.v1.TypeMeta", "apiVersion")),
        items: { type: "array", items: this.refTo(name) },
        kind: this.#described({ type: "string" }, wordsOf("meta.v1.TypeMeta", "kind")),
        metadata: this.ref("meta.v1.ListMeta"),
      },
    };
  }

  /** All schemas, by name. */
  all(): Record<string, Schema> {
    for (let struct = this.#waiting.pop(); struct !== undefined; struct = this.#waiting.pop()) {
      this.#schemas.set(definitionName(struct), this.#structSchema(struct));
    }
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #structSchema(name: string): Schema {
    const members = membersOf(name, this.#emulated);
    const required = members.filter((member) => member.required).map((member) => member.name);
    const properties = Object.fromEntries(
      members.map((m) => [m.name, this.#memberSchema(name, m)] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    return {
      ...this.#described({ type: "object" }, wordsOf(name)),
      ...(required.length === 0 ? {} : { required }),
      ...(members.length === 0 ? {} : { properties }),
      ...(atomicStructs.has(name) ? { "x-kubernetes-map-type": "atomic" } : {}),
    };
  }

  #memberSchema(struct: string, member: Member): Schema {
    const path = `${struct}.${member.name}`;
    const rule = mergeRules[path];
    const { wrapsReferences, listsEnums } = this.#dialect;
    const more: { -readonly [K in keyof Schema]: Schema[K] } = {};
    const words = wordsOf(struct, member.name);
    if (words !== undefined) more.description = words;
    if (defaultsOf[path] !== undefined) more.default = defaultsOf[path];
    if (listsEnums && enumsOf[path] !== undefined) more.enum = enumsOf[path];
    if (rule?.mergeKey !== undefined) more["x-kubernetes-patch-merge-key"] = rule.mergeKey;
    if (rule?.strategy !== undefined) more["x-kubernetes-patch-strategy"] = rule.strategy;
    const list = member.type.form === "list" ? this.#listRule(rule) : undefined;
    if (list?.listType !== undefined) more["x-kubernetes-list-type"] = list.listType;
    if (list?.listMapKeys !== undefined) more["x-kubernetes-list-map-keys"] = list.listMapKeys;
    const schema =
      arbitrary(struct, member.name) ?? this.#typeSchema(member.type, wireFormat(struct, member.name));
    const wraps = wrapsReferences && schema.$ref !== undefined && Object.keys(more).length > 0;
    return wraps ? { allOf: [schema], ...more } : { ...schema, ...more };
  }

  /** How a list is merged by an apply: as the type says, else as its strategy for patches has it. */
  #listRule(rule: MergeRule | undefined): MergeRule | undefined {
    if (rule?.listType !== undefined || !this.#emulated.has("listTypesOfAllLists")) return rule;
    if (rule?.strategy?.includes("merge") !== true) return { listType: "atomic" };
    return rule.mergeKey === undefined
      ? { listType: "set" }
      : { listType: "map", listMapKeys: [rule.mergeKey] };
  }

  #described(schema: Schema, words: string | undefined): Schema {
    return words === undefined ? schema : { description: words, ...schema };
  }

  #typeSchema(type: TypeRef, format: string | undefined): Schema {
    switch (type.form) {
      case "string":
        return format === "byte" ? { type: "string", format } : { type: "string" };
      case "integer":
        return { type: "integer", format: format === "int32" ? "int32" : "int64" };
      case "boolean":
        return { type: "boolean" };
      case "any":
        return { type: "object" };
      case "quantity":
      case "intOrString":
      case "time":
      case "microTime": {
        const { name, v2, v3 = v2 } = named[type.form];
        this.add(name, this.#dialect.listsEnums ? v3 : v2);
        return this.refTo(name);
      }
      case "list":
        return { type: "array", items: this.#typeSchema(type.of, format) };
      case "map":
        return { type: "object", additionalProperties: this.#typeSchema(type.of, format) };
      case "struct":
        return this.ref(type.name);
      default:
        return {};
    }
  }
}

/** Members of schemas of custom resources that can be any JSON, and not only an object as elsewhere. */
const anyJson: ReadonlySet<string> = new Set([
  "additionalItems",
  "additionalProperties",
  "default",
  "example",
  "items",
]);

/** The schema of a member that a type does not describe. */
function arbitrary(struct: string, member: string): Schema | undefined {
  if (struct !== "apiextensions.v1.JSONSchemaProps") return undefined;
  if (anyJson.has(member)) return {};
  if (member === "enum") return { type: "array", items: {} };
  if (member === "dependencies") return { type: "object", additionalProperties: {} };
  const isNumber = member === "maximum" || member === "minimum" || member === "multipleOf";
  return isNumber ? { type: "number", format: "double" } : undefined;
}

/** The members that the struct has in the version. */
function membersOf(struct: string, emulated: EmulatedVersion): readonly Member[] {
  return [...(structOf(struct, emulated)?.values() ?? [])];
}

const formats = new Map<string, ReadonlyMap<string, string>>();

/** `int32`, `int64` or `byte` where the protobuf message of the type says so. */
function wireFormat(struct: string, member: string): string | undefined {
  let of = formats.get(struct);
  if (of === undefined) {
    const fields = (wireTexts[struct] ?? "").split(" ").filter(Boolean);
    of = new Map(
      fields.flatMap((text): [string, string][] => {
        const [, name = "", type = ""] = text.split(":");
        const scalar = type.replace(/^(\[\]|\{\})+/, "");
        if (scalar === "int32" || scalar === "int64") return [[name, scalar]];
        return scalar === "bytes" ? [[name, "byte"]] : [];
      }),
    );
    formats.set(struct, of);
  }
  return of.get(member);
}
