/** The paths of a kind with their operations: what clients look for in them is parameters and kinds. */
import type { Kind } from "../api/kind.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import type { GroupVersionKind, Method, Operation, Parameter, PathItem } from "./model.ts";

/** Names of the schemas that operations of a kind use. */
export interface KindSchemas {
  readonly object: string;
  readonly list: string;
  readonly deleteOptions: string;
  readonly patch: string;
  readonly status: string;
  readonly watchEvent: string;
  /** The schema of another kind, for sub-resources. */
  of(group: string, version: string, kind: string): string;
}

const query = (name: string, type: Parameter["type"] = "string"): Parameter => ({ name, in: "query", type });
const path = (name: string): Parameter => ({ name, in: "path", type: "string" });

const listParameters = [
  query("allowWatchBookmarks", "boolean"),
  query("continue"),
  query("fieldSelector"),
  query("labelSelector"),
  query("limit", "integer"),
  query("resourceVersion"),
  query("resourceVersionMatch"),
  query("timeoutSeconds", "integer"),
  query("watch", "boolean"),
];
const deleteParameters = [
  query("dryRun"),
  query("gracePeriodSeconds", "integer"),
  query("orphanDependents", "boolean"),
  query("propagationPolicy"),
];

/** The paths of the kind in that version of its group. */
export function pathsOf(
  kind: Kind,
  gvk: GroupVersionKind,
  emulated: EmulatedVersion,
  schemas: KindSchemas,
): Readonly<Record<string, PathItem>> {
  const root = kind.group === "" ? `/api/${gvk.version}` : `/apis/${kind.group}/${gvk.version}`;
  const place = kind.namespaced ? "namespaces/{namespace}/" : "";
  const collection = `${root}/${place}${kind.plural}`;
  const inPlace = [...(kind.namespaced ? [path("namespace")] : []), query("pretty")];
  const list = emulated.has("watchList")
    ? [...listParameters, query("sendInitialEvents", "boolean")]
    : listParameters;
  const write = [query("dryRun"), query("fieldManager"), ...validation(emulated)];
  const names = namesOf(kind, gvk);
  const make = (verb: string, action: string, more: Partial<Operation>, what = kind.kind): Operation => ({
    operationId: names.id(verb, what),
    tag: names.tag,
    action,
    gvk,
    parameters: [],
    answer: schemas.object,
    codes: [200],
    ...(kind.custom === undefined ? {} : { isCustom: true }),
    ...more,
  });
  const create = make("create", "post", { parameters: write, body: schemas.object, codes: [200, 201, 202] });
  if (kind.virtual === true) return { [collection]: { parameters: inPlace, operations: { post: create } } };
  const collectionItem: PathItem = {
    parameters: inPlace,
    operations: {
      get: make("list", "list", { parameters: list, answer: schemas.list }),
      post: create,
      ...(kind.noDeleteCollection === true
        ? {}
        : {
            delete: make(
              "delete",
              "deletecollection",
              {
                parameters: [...list, ...deleteParameters],
                body: schemas.deleteOptions,
                answer: schemas.status,
              },
              `Collection${kind.kind}`,
            ),
          }),
    },
  };
  const items: Record<string, PathItem> = {
    [collection]: collectionItem,
    [`${collection}/{name}`]: {
      parameters: [path("name"), ...inPlace],
      operations: {
        ...readAndWrite(make, write, schemas),
        delete: make("delete", "delete", {
          parameters: deleteParameters,
          body: schemas.deleteOptions,
          codes: [200, 202],
        }),
      },
    },
    ...(kind.statusSubresource === true
      ? {
          [`${collection}/{name}/status`]: {
            parameters: [path("name"), ...inPlace],
            operations: readAndWrite(
              (verb, action, more) => make(verb, action, more, `${kind.kind}Status`),
              write,
              schemas,
            ),
          },
        }
      : {}),
  };
  if (kind.namespaced) {
    items[`${root}/${kind.plural}`] = {
      parameters: [...list, query("pretty")],
      operations: { get: make("list", "list", { answer: schemas.list }, `${kind.kind}ForAllNamespaces`) },
    };
  }
  for (const [name, as] of Object.entries(kind.subresources ?? {})) {
    if (as.isOfNode === true) continue;
    const other = {
      group: as.group ?? gvk.group,
      version: as.version ?? gvk.version,
      kind: as.kind,
    };
    const schema = schemas.of(other.group, other.version, other.kind);
    const suffix = `${kind.kind}${name[0]?.toUpperCase()}${name.slice(1)}`;
    const operations: Partial<Record<Method, Operation>> = {};
    for (const verb of as.verbs) {
      const method = methodOf[verb];
      if (method === undefined) continue;
      operations[method] = make(
        idOf[verb] ?? verb,
        actionOf[verb] ?? verb,
        {
          gvk: other,
          answer: schema,
          ...(verb === "get" ? {} : { parameters: write, body: verb === "patch" ? schemas.patch : schema }),
          codes: verb === "create" ? [200, 201, 202] : [200],
        },
        suffix,
      );
    }
    items[`${collection}/{name}/${name}`] = { parameters: [path("name"), ...inPlace], operations };
  }
  return items;
}

const methodOf: Readonly<Record<string, Method>> = {
  get: "get",
  create: "post",
  update: "put",
  patch: "patch",
  delete: "delete",
};
const idOf: Readonly<Record<string, string>> = { get: "read", update: "replace" };
const actionOf: Readonly<Record<string, string>> = { create: "post", update: "put" };

/** `fieldValidation`, where the version knows it: kubectl leaves the checks to a server that does. */
function validation(emulated: EmulatedVersion): readonly Parameter[] {
  return emulated.has("fieldValidation") ? [query("fieldValidation")] : [];
}

function readAndWrite(
  make: (verb: string, action: string, more: Partial<Operation>) => Operation,
  write: readonly Parameter[],
  schemas: KindSchemas,
): Partial<Record<Method, Operation>> {
  return {
    get: make("read", "get", {}),
    put: make("replace", "put", { parameters: write, body: schemas.object, codes: [200, 201] }),
    patch: make("patch", "patch", {
      parameters: [...write, query("force", "boolean")],
      body: schemas.patch,
      codes: [200, 201],
    }),
  };
}

function namesOf(kind: Kind, { group, version }: GroupVersionKind) {
  const first = group === "" ? "core" : (group.split(".")[0] as string);
  const title = `${first[0]?.toUpperCase()}${first.slice(1)}${version[0]?.toUpperCase()}${version.slice(1)}`;
  return {
    tag: `${first}_${version}`,
    id(verb: string, what: string): string {
      const scope = kind.namespaced && !what.endsWith("ForAllNamespaces") ? "Namespaced" : "";
      const [, collection = "", rest = what] = /^(Collection)(.*)$/.exec(what) ?? [];
      return `${verb}${title}${collection}${scope}${rest}`;
    },
  };
}
