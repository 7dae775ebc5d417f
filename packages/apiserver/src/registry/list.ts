/** Lists in pages, and the beginning of watches. */
import type { KubeObject, Stored } from "@longshore/kube";
import {
  apiError,
  badRequest,
  expired,
  type FieldProblem,
  forbiddenValue,
  invalid,
  unsupportedValue,
} from "../api/errors.ts";
import { TableWatch } from "../watch/table-watch.ts";
import type { KindRequest, RegistryContext } from "./context.ts";
import type { Kind } from "./kind.ts";
import type { ApiQuery, ListAnswer, WatchAnswer, WatchItem, WatchStream } from "./request.ts";
import { fieldSelector, labelPredicate } from "./selectors.ts";

/** Everything that the request's selectors choose, as of now. */
export function selectedObjects(request: KindRequest): readonly Stored[] {
  const objects = request.table.list(request.namespace);
  const selects = selection(request.of, request.query, request.name);
  return selects === undefined ? objects : objects.filter(selects);
}

/** The selectors as one predicate; undefined when all is selected. */
function selection(
  of: Kind,
  query: ApiQuery,
  name: string | undefined,
): ((object: Stored) => boolean) | undefined {
  const tests: ((object: Stored) => boolean)[] = [];
  if (name !== undefined) tests.push((o) => o.metadata.name === name);
  if (query.labelSelector) tests.push(labelPredicate(query.labelSelector));
  if (query.fieldSelector) {
    const selector = fieldSelector(query.fieldSelector);
    for (const field of selector.names) checkField(of, field);
    tests.push((o) => selector.matches(fieldsOf(of, o)));
  }
  if (tests.length === 0) return undefined;
  return (object) => tests.every((test) => test(object));
}

/** @throws KubeApiError 400 for a field that selectors of the kind may not use */
function checkField(of: Kind, field: string): void {
  if (field === "metadata.name" || field === "metadata.namespace") return;
  const own = of.fields?.({});
  if (own !== undefined && Object.hasOwn(own, field)) return;
  throw badRequest(
    own === undefined
      ? `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
      : `field label not supported: ${field}`,
  );
}

function fieldsOf(of: Kind, object: KubeObject): Readonly<Record<string, string>> {
  const { name = "", namespace = "" } = object.metadata ?? {};
  return {
    "metadata.name": name,
    "metadata.namespace": namespace,
    ...of.fields?.(object),
  };
}

/** Where the next page begins: the version of the list (-1: the newest), and the key of the last item given. */
interface ContinueToken {
  readonly rv: number;
  readonly after: string;
}

/** The version of a list that goes on although its own version is gone (storage/continue.go). */
const newest = -1;

function encode(token: ContinueToken): string {
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}

function decode(text: string): ContinueToken {
  try {
    const token = JSON.parse(Buffer.from(text, "base64url").toString()) as ContinueToken;
    if (Number.isSafeInteger(token.rv) && typeof token.after === "string") return token;
  } catch {
    // Falls through to the one failure there is.
  }
  throw badRequest("continue key is not valid: it was not given by this server");
}

/** GET of a collection. */
export function listPage(context: RegistryContext, request: KindRequest): ListAnswer {
  const { store } = context;
  const { query, table, namespace } = request;
  const selects = selection(request.of, query, undefined);
  const asked = listRevision(store.revision, query);
  const token = query.continue ? decode(query.continue) : undefined;
  if (token !== undefined && query.resourceVersion && query.resourceVersion !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const revision = token === undefined ? asked : token.rv === newest ? undefined : token.rv;
  // A list of any version comes from a cache in the reference, which knows no pages.
  const limit = query.resourceVersion === "0" ? 0 : (query.limit ?? 0);
  const page =
    limit <= 0 && revision === undefined && token === undefined && selects === undefined
      ? { items: table.list(namespace), remaining: 0 }
      : table.page({
          limit,
          ...(namespace === undefined ? {} : { namespace }),
          ...(revision === undefined ? {} : { revision }),
          ...(token === undefined ? {} : { after: token.after }),
          selects,
        });
  if (page === undefined) {
    throw token === undefined
      ? expired(`The resourceVersion for the provided list is too old.`)
      : continueExpired(token);
  }
  const { items, last, remaining } = page;
  const at = revision ?? store.revision;
  if (last === undefined) return { type: "list", items, resourceVersion: String(at) };
  return {
    type: "list",
    items,
    resourceVersion: String(at),
    continue: encode({ rv: at, after: last }),
    ...(selects === undefined ? { remaining } : {}),
  };
}

function continueExpired(token: ContinueToken): Error {
  const error = expired(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
  );
  Object.assign(error.status, { metadata: { continue: encode({ rv: newest, after: token.after }) } });
  return error;
}

/** The exact version that a list asks for; undefined: the newest. */
function listRevision(current: number, query: ApiQuery): number | undefined {
  const { resourceVersion = "", resourceVersionMatch = "" } = query;
  if (resourceVersionMatch !== "" && query.continue !== undefined) {
    throw forbiddenMatch("resourceVersionMatch is forbidden when continue is provided");
  }
  if (resourceVersionMatch !== "" && resourceVersion === "") {
    throw forbiddenMatch("resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (!["", "Exact", "NotOlderThan"].includes(resourceVersionMatch)) {
    throw invalidListOptions(
      unsupportedValue("resourceVersionMatch", resourceVersionMatch, ["Exact", "NotOlderThan", ""]),
    );
  }
  if (resourceVersion === "") return undefined;
  const version = parseVersion(resourceVersion);
  if (resourceVersionMatch === "Exact") {
    if (version === 0) {
      throw forbiddenMatch('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
    }
    if (version > current) throw tooLargeVersion(version, current);
    return version;
  }
  if (version > current) throw tooLargeVersion(version, current);
  // Without a match rule, a page of a limited list is of exactly the version it names (1.20, storage/etcd3).
  if (resourceVersionMatch === "" && version > 0 && (query.limit ?? 0) > 0) return version;
  return undefined;
}

function forbiddenMatch(why: string): Error {
  return invalidListOptions(forbiddenValue("resourceVersionMatch", why));
}

function invalidListOptions(problem: FieldProblem): Error {
  return invalid("meta.k8s.io", "ListOptions", "", [problem]);
}

function tooLargeVersion(version: number, current: number): Error {
  const message = `Too large resource version: ${version}, current: ${current}`;
  return apiError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

function parseVersion(text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw apiError(500, "", `invalid resource version ${JSON.stringify(text)}: it must be a decimal number`);
  }
  return Number(text);
}

/** GET with `watch=true`. */
export function startWatch(context: RegistryContext, request: KindRequest): WatchAnswer {
  const { store, watches } = context;
  const { query, table } = request;
  const selects = selection(request.of, query, request.name) ?? (() => true);
  const { namespace } = request;
  const inNamespace =
    namespace === undefined
      ? selects
      : (object: Stored) => object.metadata.namespace === namespace && selects(object);
  if (query.resourceVersionMatch !== undefined) {
    throw forbiddenMatch("resourceVersionMatch is forbidden for watch");
  }
  const version = parseVersion(query.resourceVersion || "0");
  const from = version === 0 ? store.readableRevision : version;
  const position = table.positionAfter(from);
  if (position === undefined) {
    // The stream opens all the same, and says so in its one event.
    const error = expired(`too old resource version: ${from} (${store.revision})`);
    return { type: "watch", stream: failedStream(error.status as KubeObject) };
  }
  const initial = version === 0 ? (table.snapshot(from, namespace) ?? []) : [];
  const stream = new TableWatch({
    store,
    table,
    position,
    initial,
    selects: inNamespace,
    revision: from,
  });
  watches.add(stream, query);
  return { type: "watch", stream };
}

function failedStream(status: KubeObject): WatchStream {
  const items: WatchItem[] = [{ type: "ERROR", status }];
  return {
    take: () => items.pop() ?? "ended",
    next: async () => items.pop(),
    close: () => void items.pop(),
  };
}
