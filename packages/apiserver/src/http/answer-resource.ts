/** Takes a request for a resource to the registry: its verb, its body, and the form of the answer. */

import { KubeApiError, type KubeObject } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import type { ApiAnswer, ApiQuery, ApiRequest, PatchType, UserInfo, Verb } from "../api/api-request.ts";
import { excessOf } from "../api/bounded.ts";
import { apiError, badRequest, unsupportedMediaType } from "../api/errors.ts";
import type { FieldChecks } from "../api/field-checks.ts";
import { parseJson } from "../api/json.ts";
import type { Kind } from "../api/kind.ts";
import type { ApiServer } from "../api-server.ts";
import { customPatchTypes } from "../registry/custom-body.ts";
import { decodeObject } from "../schema/decode-object.ts";
import { hasMessage } from "../schema/message-fields.ts";
import { protobufType } from "../schema/object-to-protobuf.ts";
import { fieldProblem, unknownFields } from "../schema/unknown-fields.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { negotiate } from "./negotiate.ts";
import { fieldValidationOf, parseQuery } from "./parse-query.ts";
import type { Operation } from "./parsed-request.ts";
import { mediaType, parseBody, problemsOfText, readBody } from "./read-body.ts";
import { renderList, renderObject } from "./render-object.ts";
import { sendRendered } from "./respond.ts";
import { respondWithWatch } from "./respond-with-watch.ts";
import { Warnings } from "./warnings.ts";

/** An authorized operation of a user. */
export interface ResourceCall {
  readonly server: ApiServer;
  readonly user: UserInfo;
  readonly operation: Operation;
  readonly params: URLSearchParams;
  readonly request: Request;
  readonly response: Response;
}

/** Carries out the operation and sends the answer. @throws KubeApiError */
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
  const body = await bodyOf(base, request);
  // Only now: the server may have stopped while the body came.
  if (!server.running) throw apiError(503, "ServiceUnavailable", "the API server is stopping");
  const { registry } = server;
  const checks = { validation, inText: [], warn: warnings.add };
  let answer: ApiAnswer;
  try {
    const answered = server.requests.answer(base, {
      signal: () => goneSignal(response),
      warn: warnings.add,
      // What the body holds is found out in the same time.
      ...(body === undefined ? {} : { make: () => withBody(base, of, body, emulated, checks) }),
    });
    answer = answered instanceof Promise ? await answered : answered;
    if (answer.type === "object" && answer.code === 201 && target.subresource === undefined) {
      const warning = server.creationWarning(of);
      if (warning !== undefined) warnings.add(warning);
    }
  } finally {
    // A refusal has them, too.
    if (!response.headersSent) warnings.announce(response);
  }
  // Reads wait as well: they may have seen a commit that the disk does not have yet.
  await registry.context.store.durable();
  const context = { kind: of, version, emulated, form, includeObject };
  if (answer.type === "watch") {
    return respondWithWatch(response, answer.stream, context, () => env.clock.now());
  }
  const rendering = { ...context, now: env.clock.now() };
  const render = () =>
    answer.type === "list" ? renderList(answer, rendering) : renderObject(answer.object, rendering);
  // Only lists have a time limit here: a write is already committed and must be answered.
  const rendered = verb === "list" ? registry.inTime(render) : render();
  await sendRendered(request, response, answer.type === "list" ? 200 : answer.code, rendered);
}

/** Aborts when the client is gone. */
function goneSignal(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the client is gone")));
  return gone.signal;
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

/** A body that has been read. */
interface Body {
  readonly bytes: Buffer;
  readonly type: string;
  /** The type of the patch, where the body is one. */
  readonly patchType: PatchType | undefined;
}

/** The body of the request; undefined where none is read. @throws KubeApiError 413, 415 */
async function bodyOf({ verb }: ApiRequest, request: Request): Promise<Body | undefined> {
  if (isRead(verb) || verb === "watch") return undefined;
  const type = mediaType(header(request, "content-type"));
  const patchType = patchTypes[type];
  if (verb === "patch" && patchType === undefined)
    throw apiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
  return { bytes: await readBody(request), type, patchType };
}

/** The request with what its body holds. */
function withBody(
  base: ApiRequest,
  of: Kind,
  { bytes, type, patchType }: Body,
  version: EmulatedVersion,
  checks: FieldChecks,
): ApiRequest {
  if (base.verb === "patch" && patchType !== undefined) {
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
  if (base.verb === "delete" || base.verb === "deletecollection") {
    if (bytes.length === 0) return base;
    try {
      return { ...base, body: decodeObject("meta", "DeleteOptions", parseBody(bytes, type)) };
    } catch (error) {
      if (error instanceof KubeApiError && error.code === 504) throw error;
      throw apiError(500, "", `cannot read the DeleteOptions: ${(error as Error).message}`);
    }
  }
  if (type === protobufType && base.subresource === undefined && !hasMessage(of.group, of.kind)) {
    throw unsupportedMediaType(["application/json", "application/yaml"]);
  }
  const isWhole = takesWholeObject(of, base.subresource);
  const body = parseBody(bytes, type, isWhole && of.custom === undefined);
  if (!isWhole) return { ...base, body };
  const fields = withText(checks, bytes, type, body);
  if (of.custom !== undefined)
    return { ...base, body: decodeBody(of, base.version, body, version, fields), fields };
  return { ...base, body: decodeBody(of, base.version, body, version, fields) };
}

/** The body is an object of the kind itself, as at `approval` of a CertificateSigningRequest: it is read as one. */
function takesWholeObject({ kind, subresources }: Kind, subresource: string | undefined): boolean {
  if (subresource === undefined || subresource === "status" || subresource === "finalize") return true;
  return subresources?.[subresource]?.kind === kind;
}

/** The checks with what the text of the body shows. */
function withText(checks: FieldChecks, bytes: Buffer, type: string, value: unknown): FieldChecks {
  if (checks.validation === "Ignore") return checks;
  return { ...checks, inText: problemsOfText(bytes, type, value) };
}

const isRead = (verb: Verb) => verb === "get" || verb === "list";
const isWrite = (verb: Verb) => verb === "create" || verb === "update" || verb === "patch";

function parsePatch(bytes: Buffer, type: PatchType): unknown {
  let patch: unknown;
  try {
    patch = parseJson(bytes.toString("utf8"));
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
  // The registry reports problems of a custom resource: it knows the schema.
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
