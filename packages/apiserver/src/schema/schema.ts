/** The types of the API, ready to be walked: for decoding, patching and the OpenAPI document. */
import type { EmulatedVersion } from "../versions/emulated-version.ts";
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
/** The structs of each minor version, as far as they lack members. */
const structsOfMinors = new Map<number, Map<string, Struct>>();

/**
 * The struct `group.version.Type` (`core.v1.Pod`), or undefined when there is none.
 * @param version leaves out the members that it does not have; without, all members of all versions are there
 */
export function structOf(name: string, version?: EmulatedVersion): Struct | undefined {
  if (version !== undefined) return structOfVersion(name, version);
  let struct = structs.get(name);
  const text = typeTexts[name];
  if (struct === undefined && text !== undefined) {
    struct = new Map(text.split(" ").filter(Boolean).map(parseMember));
    structs.set(name, struct);
  }
  return struct;
}

function structOfVersion(name: string, version: EmulatedVersion): Struct | undefined {
  let ofMinor = structsOfMinors.get(version.minor);
  if (ofMinor === undefined) {
    ofMinor = new Map();
    structsOfMinors.set(version.minor, ofMinor);
  }
  const made = ofMinor.get(name);
  if (made !== undefined) return made;
  const whole = structOf(name);
  if (whole === undefined) return undefined;
  const there = [...whole].filter(([member]) => version.hasField(name, member));
  const struct = there.length === whole.size ? whole : new Map(there);
  ofMinor.set(name, struct);
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

/** Groups of Kubernetes that have a dot in their name, as far as their types are known here. */
const groupsWithTypes: ReadonlySet<string> = new Set(
  "admissionregistration apiextensions apiregistration authentication authorization certificates coordination discovery events flowcontrol.apiserver meta networking node rbac.authorization resource scheduling storage"
    .split(" ")
    .map((group) => `${group}.k8s.io`),
);

/**
 * The name of the struct of a built-in kind: v1 of its group stands for its other versions where they are alike. For
 * kinds of other groups, custom resources among them, it is a name that no struct has.
 */
export function structNameOf(group: string, kind: string, version = "v1"): string {
  if (group.includes(".") && !groupsWithTypes.has(group)) return `${group}/${version}.${kind}`;
  const known = version === "v1" ? namesOfGroups.get(group)?.get(kind) : undefined;
  if (known !== undefined) return known;
  const prefix = group === "" ? "core" : group.split(".")[0];
  const own = `${prefix}.${version}.${kind}`;
  if (typeTexts[own] === undefined) return `${prefix}.v1.${kind}`;
  if (version === "v1") rememberName(group, kind, own);
  return own;
}

/** Cache of existing struct names, by group and kind of version v1: every request needs them. */
const namesOfGroups = new Map<string, Map<string, string>>();

function rememberName(group: string, kind: string, name: string): void {
  const names = namesOfGroups.get(group) ?? new Map<string, string>();
  namesOfGroups.set(group, names.set(kind, name));
}
