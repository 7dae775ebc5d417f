/** Takes HTTP requests to the registry: who asks, what for, in which form the answer goes back. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { gzipSync } from "node:zlib";
import { KubeApiError, type KubeObject, type Status } from "@longshore/kube";
import { errorChain, type RuntimeEnv } from "@longshore/runtime";
import { excessOf } from "../api/bounded.ts";
import { apiError, badRequest, unknownResource } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import type { Kind } from "../registry/kind.ts";
import type { ApiRequest, PatchType, UserInfo, Verb } from "../registry/request.ts";
import { decodeObject } from "../schema/decode.ts";
import type { Authenticator, Credentials } from "./authentication.ts";
import { mayDoAll, mayReadPath, pathForbidden, resourceForbidden } from "./authorization.ts";
import { mediaType, parseBody, readBody } from "./body.ts";
import { coreVersions, groupList, oneGroup, resourceList, rootPaths, versionDocument } from "./discovery.ts";
import { type AnswerForm, negotiate } from "./negotiate.ts";
import { openApiAnswer } from "./openapi.ts";
import { type ResourcePath, resourcePath } from "./path.ts";
import { isTrue, parseQuery } from "./query.ts";
import { renderList, renderObject, toYaml } from "./render.ts";
import { respondWithWatch } from "./watch-response.ts";

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Handles one request to its end; never throws. */
export type HttpHandler = (request: Request, response: Response) => Promise<void>;

/** What the handler works with. */
export interface HandlerOptions {
  readonly server: ApiServer;
  readonly authenticate: Authenticator;
  readonly certificateOf: (request: Request) => Credentials["certificate"];
}

/** Answers shorter than this are not compressed (apiserver endpoints/handlers/responsewriters). */
const gzipBytesMin = 128 * 1024;

/** See {@link HttpHandler}. */
export function createHandler(env: RuntimeEnv, options: HandlerOptions): HttpHandler {
  return async (request, response) => {
    try {
      await handle(env, options, request, response);
    } catch (error) {
      respondWithFailure(env, request, response, error);
    }
  };
}

async function handle(
  env: RuntimeEnv,
  options: HandlerOptions,
  request: Request,
  response: Response,
): Promise<void> {
  const url = urlOf(request);
  const user = options.authenticate({
    authorization: request.headers.authorization,
    certificate: options.certificateOf(request),
  });
  const path = resourcePath(url.pathname);
  if (path === undefined) return handlePath(options.server, user, url, request, response);
  const of = options.server.registry.context.kinds.find(path.group, path.resource);
  const verb = verbOf(request.method ?? "GET", path, url.searchParams, of);
  if (!mayDoAll(user)) throw resourceForbidden(user, verb ?? "get", path);
  if (of === undefined || !of.versions.includes(path.version)) {
    const groupKnown = options.server.registry.context.kinds.all().some((kind) => kind.group === path.group);
    if (!groupKnown) return send(request, response, 404, "404 page not found\n", "text/plain; charset=utf-8");
    throw unknownResource();
  }
  checkSubresource(of, path);
  const subresource = of.subresources?.[path.subresource ?? ""];
  if (verb === undefined || (subresource !== undefined && !subresource.verbs.includes(verb))) {
    throw methodNotAllowed();
  }
  await handleResource(env, options.server, user, { of, path, verb, url }, request, response);
}

/** Where the request goes; the name of a host in it (proxies send one) means nothing. */
function urlOf({ url = "/" }: Request): URL {
  try {
    return new URL(url.startsWith("/") ? `https://localhost${url}` : url, "https://localhost");
  } catch {
    throw badRequest("the path of the request cannot be read");
  }
}

interface ResourceCall {
  readonly of: Kind;
  readonly path: ResourcePath;
  readonly verb: Verb;
  readonly url: URL;
}

async function handleResource(
  env: RuntimeEnv,
  server: ApiServer,
  user: UserInfo,
  { of, path, verb, url }: ResourceCall,
  request: Request,
  response: Response,
): Promise<void> {
  const form = negotiate(header(request, "accept"));
  const includeObject = url.searchParams.get("includeObject") ?? undefined;
  const { version, watch: _, ...target } = path;
  const base: ApiRequest = {
    ...target,
    verb,
    version,
    query: parseQuery(url.searchParams),
    user,
    fromWire: true,
  };
  const asked = await withBody(base, of, request);
  if (!server.running) throw apiError(503, "ServiceUnavailable", "the API server is stopping");
  const answer = server.registry.handle(asked);
  await server.registry.context.store.durable();
  const context = { kind: of, version, form, includeObject };
  if (answer.type === "watch") {
    return respondWithWatch(response, answer.stream, context, () => env.clock.now());
  }
  const rendering = { ...context, now: env.clock.now() };
  const text =
    answer.type === "list" ? renderList(answer, rendering) : renderObject(answer.object, rendering);
  send(
    request,
    response,
    answer.type === "list" ? 200 : answer.code,
    form.encoding === "yaml" ? toYaml(text) : text,
    `application/${form.encoding}`,
  );
}

const patchTypes: Readonly<Record<string, PatchType>> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

/** The request with what its body holds. */
async function withBody(base: ApiRequest, of: Kind, request: Request): Promise<ApiRequest> {
  if (base.verb === "get" || base.verb === "list" || base.verb === "watch") return base;
  const type = mediaType(header(request, "content-type"));
  if (base.verb === "patch") {
    const patchType = patchTypes[type];
    if (patchType === undefined)
      throw apiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
    const body = await readBody(request);
    if (patchType === "apply") return { ...base, patchType, body: parseBody(body, "application/yaml") };
    return { ...base, patchType, body: parsePatch(body, patchType) };
  }
  const bytes = await readBody(request);
  if (base.verb === "delete" || base.verb === "deletecollection") {
    if (bytes.length === 0) return base;
    try {
      return { ...base, body: decodeObject("meta", "DeleteOptions", parseBody(bytes, type)) };
    } catch (error) {
      throw apiError(500, "", `cannot read the DeleteOptions: ${(error as Error).message}`);
    }
  }
  const body = parseBody(bytes, type);
  if (base.subresource !== undefined && base.subresource !== "status" && base.subresource !== "finalize") {
    return { ...base, body };
  }
  return { ...base, body: decodeBody(of, body) };
}

function parsePatch(bytes: Buffer, type: PatchType): unknown {
  let patch: unknown;
  try {
    patch = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    const why = `the patch is not JSON: ${(error as Error).message}`;
    throw type === "json" ? badRequest(why) : apiError(500, "", why);
  }
  const excess = excessOf(patch);
  if (excess !== undefined) throw badRequest(`the patch cannot be read: ${excess}`);
  return patch;
}

/** The body as an object of the kind: a body of another kind is left for the registry to refuse. */
function decodeBody(of: Kind, body: unknown): unknown {
  if (body === null) return {};
  if (typeof body !== "object" || Array.isArray(body)) {
    throw badRequest(`the object provided is unrecognized (must be of type ${of.kind})`);
  }
  const { kind } = body as KubeObject;
  return kind === undefined || kind === of.kind ? decodeObject(of.group, of.kind, body) : body;
}

function verbOf(
  method: string,
  path: ResourcePath,
  params: URLSearchParams,
  of: Kind | undefined,
): Verb | undefined {
  const named = path.name !== undefined;
  // Objects that live in a namespace are read across all of them, but written in one.
  const acrossNamespaces = of?.namespaced === true && path.namespace === undefined;
  switch (method) {
    case "GET":
    case "HEAD": {
      const watch = params.get("watch");
      if (path.subresource === undefined && (path.watch === true || (watch !== null && isTrue(watch)))) {
        return "watch";
      }
      return named ? "get" : "list";
    }
    case "POST":
      if (!named && acrossNamespaces) return undefined;
      return !named || (path.subresource !== undefined && path.subresource !== "status")
        ? "create"
        : undefined;
    case "PUT":
      return named ? "update" : undefined;
    case "PATCH":
      return named ? "patch" : undefined;
    case "DELETE":
      if (path.subresource !== undefined) return undefined;
      if (named) return "delete";
      return acrossNamespaces || of?.noDeleteCollection === true ? undefined : "deletecollection";
    default:
      return undefined;
  }
}

function checkSubresource(of: Kind, { subresource }: ResourcePath): void {
  if (subresource === undefined) return;
  const known = { ...of.subresources, ...(of.statusSubresource === true ? { status: true } : {}) };
  if (!Object.hasOwn(known, subresource)) throw unknownResource();
}

function methodNotAllowed(): Error {
  return apiError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );
}

/** Discovery, health and version. */
async function handlePath(
  server: ApiServer,
  user: UserInfo,
  url: URL,
  request: Request,
  response: Response,
): Promise<void> {
  const path = url.pathname;
  const { kinds } = server.registry.context;
  if (!mayReadPath(user, path)) throw pathForbidden(user, (request.method ?? "GET").toLowerCase(), path);
  if (/^\/(healthz|livez|readyz)(\/ping|\/log|\/etcd)?$/.test(path)) {
    const text = server.running ? "ok" : "stopping";
    return send(request, response, server.running ? 200 : 503, text, "text/plain; charset=utf-8");
  }
  if (path === "/openapi/v2") {
    const { body, type } = openApiAnswer(kinds, server.registry.context.version, header(request, "accept"));
    return send(request, response, 200, body, type);
  }
  const trimmed = path.length > 1 ? path.replace(/\/$/, "") : path;
  const [, root = "", group = "", version = "", ...rest] = trimmed.split("/");
  let document: object | undefined;
  if (trimmed === "/") document = rootPaths(kinds);
  else if (trimmed === "/version") document = versionDocument(server.registry.context.version);
  else if (trimmed === "/api")
    document = coreVersions(header(request, "host") ?? header(request, ":authority") ?? "");
  else if (trimmed === "/apis") document = groupList(kinds);
  else if (root === "api" && version === "") document = resourceList(kinds, "", group);
  else if (root === "apis" && version === "") document = oneGroup(kinds, group);
  else if (root === "apis" && rest.length === 0) document = resourceList(kinds, group, version);
  if (document === undefined) {
    if (path.startsWith("/openapi/v3")) {
      return send(request, response, 404, JSON.stringify(rootPaths(kinds)), "application/json");
    }
    if ((root === "api" || root === "apis") && kinds.all().some((kind) => kind.group === group))
      throw unknownResource();
    return send(request, response, 404, "404 page not found\n", "text/plain; charset=utf-8");
  }
  if (request.method !== "GET" && request.method !== "HEAD") throw methodNotAllowed();
  send(request, response, 200, JSON.stringify(document), "application/json");
}

function header(request: Request, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

function send(
  request: Request,
  response: Response,
  code: number,
  body: string | Uint8Array,
  type: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  let bytes = Buffer.from(body as string);
  const all: Record<string, string> = {
    "content-type": type,
    "cache-control": "no-cache, private",
    ...headers,
  };
  if (bytes.length >= gzipBytesMin && /\bgzip\b/.test(header(request, "accept-encoding") ?? "")) {
    bytes = gzipSync(bytes, { level: 4 });
    all["content-encoding"] = "gzip";
    all.vary = "Accept-Encoding";
  }
  all["content-length"] = String(bytes.length);
  const res = response as ServerResponse;
  res.writeHead(code, all);
  res.end(request.method === "HEAD" ? undefined : bytes);
}

function respondWithFailure(env: RuntimeEnv, request: Request, response: Response, error: unknown): void {
  const { status, code } = failureOf(env, error);
  if (response.headersSent) {
    response.end();
    return;
  }
  const retry = status.details?.retryAfterSeconds;
  const form = safeForm(request);
  const text = JSON.stringify(status);
  const body = form.encoding === "yaml" ? toYaml(text) : text;
  const headers = retry === undefined ? {} : { "retry-after": String(retry) };
  // A body that nobody will read must not hold the connection.
  request.resume();
  send(request, response, code, body, `application/${form.encoding}`, headers);
}

function failureOf(env: RuntimeEnv, error: unknown): { readonly status: Status; readonly code: number } {
  if (error instanceof KubeApiError) return { status: error.status, code: error.code };
  env.logger.error("request failed", { error });
  const status = apiError(500, "InternalError", `Internal error occurred: ${errorChain(error)}`).status;
  return { status, code: 500 };
}

function safeForm(request: Request): AnswerForm {
  try {
    return negotiate(header(request, "accept"));
  } catch {
    return { encoding: "json", version: "v1" };
  }
}
