/**
 * Writes `src/schema/gen/types.ts`: the members of every type of the API, read from the declarations of
 * `kubernetes-types` (which say what is required), with what came later from the wire facts of API v0.36.
 * Which version knows which member is not said here, but in `src/versions/field-changes.ts`.
 * Run: npm run generate -w packages/apiserver
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { earlierForms } from "./earlier-forms.ts";

const types = dirname(createRequire(import.meta.url).resolve("kubernetes-types/package.json"));
const here = dirname(fileURLToPath(import.meta.url));

/** Declarations to read, and what stands before the names of their types. */
const sources: readonly (readonly [file: string, prefix: string])[] = [
  ["meta/v1.d.ts", "meta.v1"],
  ["core/v1.d.ts", "core.v1"],
  ["apps/v1.d.ts", "apps.v1"],
  ["batch/v1.d.ts", "batch.v1"],
  ["storage/v1.d.ts", "storage.v1"],
  ["policy/v1.d.ts", "policy.v1"],
  ["coordination/v1.d.ts", "coordination.v1"],
  ["events/v1.d.ts", "events.v1"],
  ["discovery/v1.d.ts", "discovery.v1"],
  ["scheduling/v1.d.ts", "scheduling.v1"],
  ["node/v1.d.ts", "node.v1"],
  ["networking/v1.d.ts", "networking.v1"],
  ["autoscaling/v1.d.ts", "autoscaling.v1"],
  ["autoscaling/v2.d.ts", "autoscaling.v2"],
  ["rbac/v1.d.ts", "rbac.v1"],
  ["authentication/v1.d.ts", "authentication.v1"],
  ["authorization/v1.d.ts", "authorization.v1"],
  ["certificates/v1.d.ts", "certificates.v1"],
  ["apiextensions/v1.d.ts", "apiextensions.v1"],
  ["admissionregistration/v1.d.ts", "admissionregistration.v1"],
];

/** Types of kinds that are not served. */
const notServed = /^admissionregistration\.v1\.(?!.*Webhook|RuleWith|MatchCondition|ServiceReference)/;

/** Types that the declarations lack, and members, where the wire facts do not say how JSON has them. */
const byHand: Readonly<Record<string, string>> = {
  // Messages that JSON merges into their parent.
  "core.v1.Volume": "image:core.v1.ImageVolumeSource",
  "core.v1.VolumeMountStatus": "image:core.v1.ImageVolumeStatus",
  "core.v1.EphemeralContainer": "restartPolicyRules:[]core.v1.ContainerRestartRule",
  "apiextensions.v1.JSONSchemaProps":
    "x-kubernetes-embedded-resource:boolean x-kubernetes-int-or-string:boolean x-kubernetes-list-map-keys:[]string x-kubernetes-list-type:string x-kubernetes-map-type:string x-kubernetes-preserve-unknown-fields:boolean x-kubernetes-validations:[]apiextensions.v1.ValidationRule",
  // Of versions before those of the declarations.
  "discovery.v1.Endpoint": "topology:{}string",
  "core.v1.ServiceSpec": "topologyKeys:[]string",
  // The members of an embedded struct.
  "admissionregistration.v1.RuleWithOperations": "resources:[]string scope:string",
  "storage.v1.VolumeAttributesClass":
    "apiVersion:string driverName!:string kind:string metadata:meta.v1.ObjectMeta parameters:{}string",
};

/** Messages that JSON merges into their parent: no members of that name. */
const inlined: ReadonlySet<string> = new Set([
  "localObjectReference",
  "ephemeralContainerCommon",
  "persistentVolumeSource",
  "volumeSource",
  "volumeStatus",
  "handler",
  "ingressRuleValue",
  "rule",
]);

/** Messages that are not separate types in JSON, and the form that they have there. */
const forms: Readonly<Record<string, string>> = {
  "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
  "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
  "k8s.io.apimachinery.pkg.runtime.RawExtension": "any",
  "meta.v1.Time": "time",
  "meta.v1.MicroTime": "microTime",
  "meta.v1.FieldsV1": "any",
  "authentication.v1.ExtraValue": "[]string",
  "authorization.v1.ExtraValue": "[]string",
  "certificates.v1.ExtraValue": "[]string",
  string: "string",
  bytes: "string",
  bool: "boolean",
  int32: "integer",
  int64: "integer",
};

/** Messages that clients never send as objects. */
const left =
  /^(meta\.v1\.(Time|MicroTime|Timestamp|Verbs|Duration|FieldsV1|TypeMeta|Group.*|RootPaths|TableOptions)|.*ExtraValue|admissionregistration\.v1\.Rule|core\.v1\.(Volume|PersistentVolume)Source|networking\.v1\.IngressRuleValue|core\.v1\.(ProbeHandler|EphemeralContainerCommon|VolumeStatus))$/;

const declared = new Map<string, string>();
const texts = sources.map(([file, prefix]) => ({ prefix, text: readFileSync(join(types, file), "utf8") }));
for (const { prefix, text } of texts) {
  for (const [, name] of text.matchAll(/^export interface (\w+)/gm)) {
    // A type of an earlier file wins only where the names differ: apps and core both know their own.
    declared.set(`${prefix}.${name}`, `${prefix}.${name}`);
  }
}

function reference(name: string, prefix: string): string {
  switch (name) {
    case "Quantity":
      return "quantity";
    case "Time":
      return "time";
    case "MicroTime":
      return "microTime";
    case "RawExtension":
    case "FieldsV1":
    case "JSON":
    case "JSONSchemaPropsOrArray":
    case "JSONSchemaPropsOrBool":
    case "JSONSchemaPropsOrStringArray":
      return "any";
    default: {
      for (const p of [prefix, "core.v1", "meta.v1"]) if (declared.has(`${p}.${name}`)) return `${p}.${name}`;
      throw new Error(`type ${name} of ${prefix} is not declared`);
    }
  }
}

function fieldType(type: string, prefix: string): string {
  const array = /^Array<(.*)>$/.exec(type);
  if (array?.[1] !== undefined) return `[]${fieldType(array[1], prefix)}`;
  const map = /^\{\s*\[name: string\]: (.*?);?\s*\}$/.exec(type);
  if (map?.[1] !== undefined) return `{}${fieldType(map[1].replace(/;\s*$/, ""), prefix)}`;
  if (type === "number | string" || type === "string | number") return "intOrString";
  if (type === "number") return "integer";
  if (type === "string" || type === "boolean") return type;
  if (type.startsWith('"')) return "string";
  return reference(type, prefix);
}

/** Members of each type, as text. */
const members = new Map<string, string[]>();
for (const { prefix, text } of texts) {
  const clean = text
    .replace(/\/\*\*[\s\S]*?\*\//g, "")
    .replace(/\{\s*\n\s*(\[name: string\]: [^\n]*)\n\s*\}/g, "{ $1 }");
  for (const [, name, body = ""] of clean.matchAll(/^export interface (\w+) \{\n([\s\S]*?)^\}/gm)) {
    const fields: string[] = [];
    for (const [, field, optional, type = ""] of body.matchAll(
      /^\s*(?:readonly )?"?([\w$-]+)"?(\??): (.*);$/gm,
    )) {
      fields.push(`${field}${optional === "" ? "!" : ""}:${fieldType(type, prefix)}`);
    }
    if (!notServed.test(`${prefix}.${name}`)) members.set(`${prefix}.${name}`, fields);
  }
}

interface Facts {
  readonly files: Readonly<
    Record<
      string,
      {
        readonly package: string;
        readonly types: Readonly<
          Record<string, { readonly fields?: readonly { readonly name: string; readonly type: string }[] }>
        >;
      }
    >
  >;
}

const shortName = (name: string) =>
  name.replace("k8s.io.apimachinery.pkg.apis.", "").replace("k8s.io.api.", "");

const facts = JSON.parse(readFileSync(join(here, "kubernetes-wire.json"), "utf8")) as Facts;
const prefixes = new Set(sources.map(([, prefix]) => prefix));
for (const { package: name, types: messages } of Object.values(facts.files)) {
  const prefix = shortName(name);
  if (!prefixes.has(prefix)) continue;
  const typeOf = (type: string): string => {
    if (type.startsWith("repeated ")) return `[]${typeOf(type.slice(9))}`;
    const map = /^map<string, ?(.*)>$/.exec(type);
    if (map?.[1] !== undefined) return `{}${typeOf(map[1])}`;
    const full = Object.hasOwn(messages, type) ? `${prefix}.${type}` : shortName(type);
    return forms[full] ?? full;
  };
  for (const [type, { fields = [] }] of Object.entries(messages)) {
    const struct = `${prefix}.${type}`;
    if (left.test(struct)) continue;
    const known = members.get(struct);
    // A type that is new here; what is required of its members is not known.
    if (known === undefined) {
      members.set(
        struct,
        fields.map((f) => `${f.name}:${typeOf(f.type)}`),
      );
      continue;
    }
    const names = new Set(known.map((text) => text.replace(/!?:.*/, "")));
    for (const { name: field, type: of } of fields) {
      const same = names.has(field) || names.has(field.toLowerCase());
      if (!same && !inlined.has(field)) known.push(`${field}:${typeOf(of)}`);
    }
  }
}
for (const [struct, text] of Object.entries(byHand)) {
  if (text.startsWith("apiVersion")) members.set(struct, text.split(" "));
  else members.get(struct)?.push(...text.split(" "));
}

/** Numbers of schemas need not be whole. */
const anyNumber = /^(maximum|minimum|multipleOf):integer$/;
const schema = "apiextensions.v1.JSONSchemaProps";
members.set(
  schema,
  (members.get(schema) ?? []).map((text) => (anyNumber.test(text) ? text.replace("integer", "any") : text)),
);

for (const [struct, text] of earlierForms((later) => (members.get(later) ?? []).join(" "))) {
  members.set(struct, text.split(" "));
}

const sorted = (fields: readonly string[]) => [...new Set(fields)].sort().join(" ");
const lines = [...members].map(([name, fields]) => `  "${name}": ${JSON.stringify(sorted(fields))},`);

writeFileSync(
  join(here, "../src/schema/gen/types.ts"),
  `// Generated by scripts/generate-schema.ts. Do not edit.
/** Each type of the API: its members as \`name:type\`, with \`!\` behind the names of required ones. */
export const typeTexts: Readonly<Record<string, string>> = {
${lines.join("\n")}
};
`,
);
