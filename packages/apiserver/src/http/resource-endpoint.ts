/** Takes a request for a resource to the registry: its verb, its body, and the form of the answer. */
import type { KubeObject } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import { excessOf } from "../api/bounded.ts";
import { apiError, badRequest, unknownResource } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import type { Kind } from "../registry/kind.ts";
import type { ApiRequest, PatchType, UserInfo, Verb } from "../registry/request.ts";
import { decodeObject } from "../schema/decode.ts";
import { hasMessage } from "../schema/messages.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { mediaType, parseBody, readBody } from "./body.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { negotiate } from "./negotiate.ts";
import type { ResourcePath } from "./path.ts";
import { methodNotAllowed } from "./path-endpoints.ts";
import { isTrue, parseQuery } from "./query.ts";
import { renderList, renderObject } from "./render.ts";
import { sendPageNotFound, sendRendered } from "./respond.ts";
import { respondWithWatch } from "./watch-response.ts";

/** A request for a resource, of which nothing has been looked at yet but its path. */
export interface ResourceCallOfAnyKind {
  readonly server: ApiServer;
  readonly user: UserInfo;
  readonly path: ResourcePath;
  readonly url: URL;
  readonly request: Request;
  readonly response: Response;
}

interface ResourceCall {
  readonly of: Kind;
  readonly path: ResourcePath;
  readonly verb: Verb;
  readonly url: URL;
}

/** Answers the request of a user who may make it. @throws KubeApiError */
export async function answerResource(env: RuntimeEnv, call: ResourceCallOfAnyKind): Promise<void> {
  const { server, user, path, url, request, response } = call;
  const { kinds } = server.registry.context;
  const of = kinds.find(path.group, path.resource);
  if (of === undefined || !of.versions.includes(path.version)) {
    const groupKnown = kinds.all().some((kind) => kind.group === path.group);
    if (!groupKnown) return sendPageNotFound(request, response);
    throw unknownResource();
  }
  const verb = verbOf(request.method ?? "GET", path, url.searchParams, of);
  checkSubresource(of, path);
  const subresource = of.subresources?.[path.subresource ?? ""];
  if (verb === undefined || (subresource !== undefined && !subresource.verbs.includes(verb))) {
    throw methodNotAllowed();
  }
  await handleResource(env, server, user, { of, path, verb, url }, request, response);
}

async function handleResource(
  env: RuntimeEnv,
  server: ApiServer,
  user: UserInfo,
  { of, path, verb, url }: ResourceCall,
  request: Request,
  response: Response,
): Promise<void> {
  const protobuf = hasMessage(of.group, of.kind);
  const form = negotiate(header(request, "accept"), { protobuf, stream: verb === "watch" });
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
  const asked = await withBody(base, of, request, server.registry.context.version);
  if (!server.running) throw apiError(503, "ServiceUnavailable", "the API server is stopping");
  const answer = server.registry.handle(asked);
  await server.registry.context.store.durable();
  const context = { kind: of, version, emulated: server.registry.context.version, form, includeObject };
  if (answer.type === "watch") {
    return respondWithWatch(response, answer.stream, context, () => env.clock.now());
  }
  const rendering = { ...context, now: env.clock.now() };
  if (answer.type === "list") await sendRendered(request, response, 200, renderList(answer, rendering));
  else await sendRendered(request, response, answer.code, renderObject(answer.object, rendering));
}

const patchTypes: Readonly<Record<string, PatchType>> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

/** The request with what its body holds. */
async function withBody(
  base: ApiRequest,
  of: Kind,
  request: Request,
  version: EmulatedVersion,
): Promise<ApiRequest> {
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
  return { ...base, body: decodeBody(of, base.version, body, version) };
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
function decodeBody(of: Kind, servedVersion: string, body: unknown, version: EmulatedVersion): unknown {
  if (body === null) return {};
  if (typeof body !== "object" || Array.isArray(body)) {
    throw badRequest(`the object provided is unrecognized (must be of type ${of.kind})`);
  }
  const { kind } = body as KubeObject;
  return kind === undefined || kind === of.kind
    ? decodeObject(of.group, of.kind, body, version, servedVersion)
    : body;
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
