/** Takes a request for a resource to the registry: its verb, its body, and the form of the answer. */
import type { KubeObject } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import { excessOf } from "../api/bounded.ts";
import {
  apiError,
  badRequest,
  methodNotAllowed,
  notFound,
  unknownResource,
  unsupportedMediaType,
} from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import { customPatchTypes } from "../registry/custom-body.ts";
import type { Kind } from "../registry/kind.ts";
import { kindInVersion } from "../registry/kind-table.ts";
import type { ApiQuery, ApiRequest, PatchType, UserInfo, Verb } from "../registry/request.ts";
import { decodeObject } from "../schema/decode.ts";
import { type FieldChecks, fieldProblem, unknownFields } from "../schema/field-validation.ts";
import { hasMessage } from "../schema/messages.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { mediaType, parseBody, problemsOfText, readBody } from "./body.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { negotiate } from "./negotiate.ts";
import type { ResourcePath } from "./path.ts";
import { fieldValidationOf, isTrue, parseQuery } from "./query.ts";
import { renderList, renderObject } from "./render.ts";
import { sendPageNotFound, sendRendered } from "./respond.ts";
import { Warnings } from "./warnings.ts";
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
  const found = kinds.find(path.group, path.resource);
  if (found === undefined || !found.versions.includes(path.version)) {
    const isBuiltIn = kinds.all().some((kind) => kind.group === path.group && kind.custom === undefined);
    if (!isBuiltIn) return sendPageNotFound(request, response);
    throw unknownResource();
  }
  const of = kindInVersion(found, path.version);
  if (of.custom !== undefined && !of.namespaced && path.namespace !== undefined) {
    return sendPageNotFound(request, response);
  }
  const verb = verbOf(request.method ?? "GET", path, url.searchParams, of);
  checkSubresource(of, path);
  if (of.virtual === true && verb !== "create") throw methodNotAllowed();
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
    query: withTimeLimit(env, verb, parseQuery(url.searchParams)),
    user,
    userAgent: header(request, "user-agent") ?? "",
    fromWire: true,
  };
  const emulated = server.registry.context.version;
  const warnings = new Warnings();
  const deprecation = of.custom?.deprecation(version) ?? emulated.deprecation(of.group, version, of.kind);
  if (deprecation !== undefined) warnings.add(deprecation);
  const validation = isWrite(verb) ? fieldValidationOf(url.searchParams, emulated) : "Ignore";
  const asked = await withBody(base, of, request, emulated, { validation, inText: [], warn: warnings.add });
  if (!server.running) throw apiError(503, "ServiceUnavailable", "the API server is stopping");
  const answer = server.registry.handle(asked);
  await server.registry.context.store.durable();
  warnings.announce(response);
  const context = { kind: of, version, emulated, form, includeObject };
  if (answer.type === "watch") {
    return respondWithWatch(response, answer.stream, context, () => env.clock.now());
  }
  const rendering = { ...context, now: env.clock.now() };
  if (answer.type === "list") await sendRendered(request, response, 200, renderList(answer, rendering));
  else await sendRendered(request, response, answer.code, renderObject(answer.object, rendering));
}

/** A watch over HTTP ends after 30 to 60 minutes unless it asks for another time (`--min-request-timeout`). */
function withTimeLimit(env: RuntimeEnv, verb: Verb, query: ApiQuery): ApiQuery {
  if (verb !== "watch" || (query.timeoutSeconds ?? 0) !== 0) return query;
  const timeoutSeconds =
    minRequestTimeoutSeconds + env.random.below(minRequestTimeoutSeconds, "watch timeout");
  return { ...query, timeoutSeconds };
}

const minRequestTimeoutSeconds = 1800;

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
  checks: FieldChecks,
): Promise<ApiRequest> {
  if (base.verb === "get" || base.verb === "list" || base.verb === "watch") return base;
  const type = mediaType(header(request, "content-type"));
  if (base.verb === "patch") {
    const patchType = patchTypes[type];
    if (patchType === undefined)
      throw apiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
    const bytes = await readBody(request);
    const isApply = patchType === "apply";
    if (patchType === "strategic" && of.custom !== undefined) throw unsupportedMediaType(customPatchTypes);
    const body = isApply ? parseBody(bytes, "application/yaml") : parsePatch(bytes, patchType);
    const fields = withText(checks, bytes, isApply ? "application/yaml" : "application/json", body);
    if (!isApply) return { ...base, patchType, body, fields };
    // What an apply names beyond the type is refused in any case.
    const problem = fieldProblem(fields, () => []);
    if (problem !== undefined) throw badRequest(`error strict decoding YAML: ${problem}`);
    return { ...base, patchType, body };
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
  const fields = withText(checks, bytes, type, body);
  if (of.custom !== undefined)
    return { ...base, body: decodeBody(of, base.version, body, version, fields), fields };
  return { ...base, body: decodeBody(of, base.version, body, version, fields) };
}

/** The checks with what the text of the body shows. */
function withText(checks: FieldChecks, bytes: Buffer, type: string, value: unknown): FieldChecks {
  if (checks.validation === "Ignore") return checks;
  return { ...checks, inText: problemsOfText(bytes, type, value) };
}

const isWrite = (verb: Verb) => verb === "create" || verb === "update" || verb === "patch";

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
function decodeBody(
  of: Kind,
  servedVersion: string,
  body: unknown,
  version: EmulatedVersion,
  checks: FieldChecks,
): unknown {
  if (body === null) return {};
  if (typeof body !== "object" || Array.isArray(body)) {
    throw badRequest(`the object provided is unrecognized (must be of type ${of.kind})`);
  }
  // What is wrong with a custom resource is told by the registry, which knows its schema.
  if (of.custom !== undefined) return body;
  const { kind } = body as KubeObject;
  if (kind !== undefined && kind !== of.kind) return body;
  const decoded = decodeObject(of.group, of.kind, body, version, servedVersion);
  const problem = fieldProblem(checks, () => unknownFields(of, servedVersion, body, version));
  if (problem !== undefined) {
    throw badRequest(
      `${of.kind} in version ${JSON.stringify(servedVersion)} cannot be handled as a ${of.kind}: ${problem}`,
    );
  }
  return decoded;
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

function checkSubresource(of: Kind, { subresource, name }: ResourcePath): void {
  if (subresource === undefined) return;
  const known = { ...of.subresources, ...(of.statusSubresource === true ? { status: true } : {}) };
  if (Object.hasOwn(known, subresource)) return;
  throw of.custom === undefined
    ? unknownResource()
    : notFound({ group: of.group, resource: of.plural }, name ?? "");
}
