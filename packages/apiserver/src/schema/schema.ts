/** The types of the API, ready to be walked: for decoding, patching and the OpenAPI document. */
import { typeTexts } from "./gen/types.ts";

/** The type of a member or an item. */
export type TypeRef =
  | {
      readonly form:
        | "string"
        | "integer"
        | "boolean"
        | "quantity"
        | "time"
        | "microTime"
        | "intOrString"
        | "any";
    }
  | { readonly form: "list" | "map"; readonly of: TypeRef }
  | { readonly form: "struct"; readonly name: string };

/** One member of a struct. */
export interface Member {
  readonly name: string;
  readonly type: TypeRef;
  readonly required: boolean;
}

/** The members of a struct, by name. */
export type Struct = ReadonlyMap<string, Member>;

const scalars: ReadonlySet<string> = new Set([
  "string",
  "integer",
  "boolean",
  "quantity",
  "time",
  "microTime",
  "intOrString",
  "any",
]);

const structs = new Map<string, Struct>();

/** The struct `group.version.Type` (`core.v1.Pod`), or undefined when there is none. */
export function structOf(name: string): Struct | undefined {
  let struct = structs.get(name);
  const text = typeTexts[name];
  if (struct === undefined && text !== undefined) {
    struct = new Map(text.split(" ").filter(Boolean).map(parseMember));
    structs.set(name, struct);
  }
  return struct;
}

/** Names of all structs. */
export function structNames(): readonly string[] {
  return Object.keys(typeTexts);
}

function parseMember(text: string): readonly [string, Member] {
  const colon = text.indexOf(":");
  const required = text[colon - 1] === "!";
  const name = text.slice(0, required ? colon - 1 : colon);
  return [name, { name, required, type: parseType(text.slice(colon + 1)) }];
}

function parseType(text: string): TypeRef {
  if (text.startsWith("[]")) return { form: "list", of: parseType(text.slice(2)) };
  if (text.startsWith("{}")) return { form: "map", of: parseType(text.slice(2)) };
  if (scalars.has(text)) return { form: text } as TypeRef;
  return { form: "struct", name: text };
}

/** The name of the struct of a built-in kind: every version of a group is alike. */
export function structNameOf(group: string, kind: string): string {
  return `${group === "" ? "core" : group.split(".")[0]}.v1.${kind}`;
}
