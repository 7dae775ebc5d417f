/** Takes a request for a resource to the registry: its verb, its body, and the form of the answer. */
import type { KubeObject } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import { excessOf } from "../api/bounded.ts";
import { apiError, badRequest, unsupportedMediaType } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import { customPatchTypes } from "../registry/custom-body.ts";
import type { Kind } from "../registry/kind.ts";
import type { ApiQuery, ApiRequest, PatchType, UserInfo, Verb } from "../registry/request.ts";
import { decodeObject } from "../schema/decode.ts";
import { type FieldChecks, fieldProblem, unknownFields } from "../schema/field-validation.ts";
import { hasMessage } from "../schema/messages.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { mediaType, parseBody, problemsOfText, readBody } from "./body.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { negotiate } from "./negotiate.ts";
import type { Operation } from "./parsed-request.ts";
import { fieldValidationOf, parseQuery } from "./query.ts";
import { renderList, renderObject } from "./render.ts";
import { sendRendered } from "./respond.ts";
import { Warnings } from "./warnings.ts";
import { respondWithWatch } from "./watch-response.ts";

/** An operation that is to be done for a user who may. */
export interface ResourceCall {
  readonly server: ApiServer;
  readonly user: UserInfo;
  readonly operation: Operation;
  readonly params: URLSearchParams;
  readonly request: Request;
  readonly response: Response;
}

/** Does it, and answers. @throws KubeApiError */
export async function answerResource(env: RuntimeEnv, call: ResourceCall): Promise<void> {
  const { server, user, operation, params, request, response } = call;
  const { of, target } = operation;
  const { verb, version } = target;
  const protobuf = hasMessage(of.group, of.kind);
  const form = negotiate(header(request, "accept"), { protobuf, stream: verb === "watch" });
  const includeObject = params.get("includeObject") ?? undefined;
  const base: ApiRequest = {
    ...target,
    query: withTimeLimit(env, verb, parseQuery(params)),
    user,
    userAgent: header(request, "user-agent") ?? "",
    fromWire: true,
  };
  const emulated = server.registry.context.version;
  const warnings = new Warnings();
  const deprecation = of.custom?.deprecation(version) ?? emulated.deprecation(of.group, version, of.kind);
  if (deprecation !== undefined) warnings.add(deprecation);
  const validation = isWrite(verb) ? fieldValidationOf(params, emulated) : "Ignore";
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
