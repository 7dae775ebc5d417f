/** The OpenAPI documents of the kinds that are served: version 2 in one, version 3 in one for each group version. */
import type { Kind } from "../api/kind.ts";
import { kindInVersion } from "../api/kind-table.ts";
import { structNameOf } from "../schema/schema.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { addCustomKind } from "./add-custom-kind.ts";
import {
  type GroupVersionKind,
  type Method,
  mediaTypes,
  type Operation,
  type Parameter,
  type PathItem,
  patchMediaTypes,
  type Schema,
} from "./model.ts";
import { type KindSchemas, pathsOf } from "./paths-of.ts";
import { definitionName, type SchemaDialect, TypeSchemas } from "./type-schemas.ts";

const v2: SchemaDialect = { refPrefix: "#/definitions/", wrapsReferences: false, listsEnums: false };
const v3: SchemaDialect = { refPrefix: "#/components/schemas/", wrapsReferences: true, listsEnums: true };

/** What both versions say about the server. */
const title = "Kubernetes";

/** The document of OpenAPI v2. */
export interface DocumentV2 {
  readonly swagger: "2.0";
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, PathItemV2>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

/** A parameter of OpenAPI v2: of the path, the query, or the body. */
export interface ParameterV2 {
  readonly name: string;
  readonly in: "query" | "path" | "body";
  readonly type?: string;
  readonly required?: boolean;
  readonly schema?: Schema;
}

/** An operation of OpenAPI v2. */
export interface OperationV2 {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly consumes: readonly string[];
  readonly produces: readonly string[];
  readonly parameters: readonly ParameterV2[];
  readonly responses: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>;
  readonly "x-kubernetes-action": string;
  readonly "x-kubernetes-group-version-kind": GroupVersionKind;
}

/** A path of OpenAPI v2. */
export type PathItemV2 = Readonly<Partial<Record<Method, OperationV2>>> & {
  readonly parameters?: readonly ParameterV2[];
};

/** The document of OpenAPI v2 for these kinds. `release` is the version it names, `v1.20.2`. */
export function documentV2(kinds: readonly Kind[], emulated: EmulatedVersion, release: string): DocumentV2 {
  const { paths, schemas } = collect(kinds, undefined, emulated, v2);
  return {
    swagger: "2.0",
    info: { title, version: release },
    paths: mapValues(paths, (item) => ({
      ...mapValues(item.operations as Readonly<Record<string, Operation>>, operationV2),
      ...(item.parameters.length === 0 ? {} : { parameters: item.parameters.map(parameterV2) }),
    })),
    definitions: schemas.all(),
  };
}

function operationV2(o: Operation): OperationV2 {
  const body: readonly ParameterV2[] =
    o.body === undefined
      ? []
      : [
          {
            name: "body",
            in: "body",
            required: o.action !== "delete",
            schema: { $ref: `${v2.refPrefix}${o.body}` },
          },
        ];
  return {
    operationId: o.operationId,
    tags: [o.tag],
    consumes: o.action === "patch" ? patchTypesOf(o) : ["*/*"],
    produces: mediaTypes,
    parameters: [...body, ...o.parameters.map(parameterV2)],
    responses: Object.fromEntries(
      o.codes.map((code) => [
        code,
        { description: codeTexts[code] ?? "", schema: { $ref: `${v2.refPrefix}${o.answer}` } },
      ]),
    ),
    "x-kubernetes-action": o.action,
    "x-kubernetes-group-version-kind": o.gvk,
  };
}

/** Clients find out here that custom resources have no strategic merge patch. */
function patchTypesOf({ isCustom }: Operation): readonly string[] {
  return isCustom === true ? patchMediaTypes.filter((type) => !type.includes("strategic")) : patchMediaTypes;
}

function parameterV2({ name, in: place, type }: Parameter): ParameterV2 {
  return place === "path" ? { name, in: place, type, required: true } : { name, in: place, type };
}

const codeTexts: Readonly<Record<number, string>> = { 200: "OK", 201: "Created", 202: "Accepted" };

/** The document of OpenAPI v3 for one version of one group, or undefined when it is not served. */
export function documentV3(
  kinds: readonly Kind[],
  group: string,
  version: string,
  emulated: EmulatedVersion,
  release: string,
): object | undefined {
  const served = kinds.filter((kind) => kind.group === group && kind.versions.includes(version));
  if (served.length === 0) return undefined;
  const { paths, schemas } = collect(served, version, emulated, v3);
  return {
    openapi: "3.0.0",
    info: { title, version: release },
    paths: mapValues(paths, (item) => ({
      ...mapValues(item.operations as Readonly<Record<string, Operation>>, operationV3),
      ...(item.parameters.length === 0 ? {} : { parameters: item.parameters.map(parameterV3) }),
    })),
    components: { schemas: schemas.all() },
  };
}

function operationV3(o: Operation): object {
  const content = (types: readonly string[], schema: string) =>
    Object.fromEntries(types.map((type) => [type, { schema: { $ref: `${v3.refPrefix}${schema}` } }]));
  return {
    operationId: o.operationId,
    tags: [o.tag],
    parameters: o.parameters.map(parameterV3),
    ...(o.body === undefined
      ? {}
      : { requestBody: { content: content(o.action === "patch" ? patchTypesOf(o) : ["*/*"], o.body) } }),
    responses: Object.fromEntries(
      o.codes.map((code) => [
        code,
        { description: codeTexts[code] ?? "", content: content(mediaTypes, o.answer) },
      ]),
    ),
    "x-kubernetes-action": o.action,
    "x-kubernetes-group-version-kind": o.gvk,
  };
}

function parameterV3({ name, in: place, type }: Parameter): object {
  return { name, in: place, ...(place === "path" ? { required: true } : {}), schema: { type } };
}

/** The paths and schemas of the kinds, in one version or in all of theirs. */
function collect(
  kinds: readonly Kind[],
  only: string | undefined,
  emulated: EmulatedVersion,
  dialect: SchemaDialect,
): { readonly paths: Record<string, PathItem>; readonly schemas: TypeSchemas } {
  const schemas = new TypeSchemas(dialect, emulated);
  const paths: Record<string, PathItem> = {};
  const meta = (type: string) => {
    // Called for what it does: the type is in the document from then on.
    schemas.ref(`meta.v1.${type}`);
    return definitionName(`meta.v1.${type}`);
  };
  const common = {
    deleteOptions: meta("DeleteOptions"),
    patch: meta("Patch"),
    status: meta("Status"),
    watchEvent: meta("WatchEvent"),
  };
  for (const kind of kinds) {
    for (const version of kind.versions) {
      if (only !== undefined && version !== only) continue;
      const gvk = { group: kind.group, version, kind: kind.kind };
      const object = addKind(schemas, kind, gvk, dialect === v3 ? "v3" : "v2");
      const of: KindSchemas = {
        ...common,
        object,
        list: `${object}List`,
        of: (group, v, name) => otherKind(schemas, { group, version: v, kind: name }, object, kind.kind),
      };
      Object.assign(paths, pathsOf(kindInVersion(kind, version), gvk, emulated, of));
    }
  }
  return { paths, schemas };
}

/** Adds the kind to the schemas. Returns its name there. */
function addKind(schemas: TypeSchemas, kind: Kind, gvk: GroupVersionKind, openApi: "v2" | "v3"): string {
  if (kind.custom !== undefined) return addCustomKind(schemas, kind, gvk, openApi);
  const struct = structNameOf(kind.group, kind.kind, gvk.version);
  const name = definitionName(struct.replace(/\.v1\.(\w+)$/, `.${gvk.version}.$1`));
  schemas.addKind(struct, name, gvk);
  return name;
}

/** The schema of the kind that a sub-resource has, where it is another one. */
function otherKind(schemas: TypeSchemas, gvk: GroupVersionKind, own: string, ownKind: string): string {
  if (gvk.kind === ownKind) return own;
  const struct = structNameOf(gvk.group, gvk.kind, gvk.version);
  const name = definitionName(struct.replace(/\.v1\.(\w+)$/, `.${gvk.version}.$1`));
  if (!schemas.has(name)) schemas.addObject(struct, name, gvk);
  return name;
}

function mapValues<T, R>(of: Readonly<Record<string, T>>, change: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(of).map(([key, value]) => [key, change(value)]));
}
