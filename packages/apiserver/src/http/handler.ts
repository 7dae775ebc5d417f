/**
 * The pipeline that every HTTP request goes through: authentication, impersonation, parsing, limits, authorization,
 * and then the endpoint.
 * The same parsed value is authorized and carried out; later code never reads method or path again.
 * The body of a request is read only after the request is allowed.
 */
import type { RuntimeEnv } from "@longshore/runtime";
import { apiError } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import type { Credentials } from "../authentication/authenticator.ts";
import { answerPath } from "./answer-path.ts";
import { answerResource } from "./answer-resource.ts";
import type { Request, Response } from "./exchange.ts";
import { impersonated } from "./impersonation.ts";
import { attributesOfParsed, type Operation, parseRequest, type ResourceRequest } from "./parsed-request.ts";
import { InFlight, type RequestLimits, requestLimitsDefault } from "./request-limits.ts";
import { requestTarget } from "./request-target.ts";
import { respondWithFailure } from "./respond.ts";

/** Handles one request to its end; never throws. */
export type HttpHandler = (request: Request, response: Response) => Promise<void>;

/** What the handler works with. */
export interface HandlerOptions {
  readonly server: ApiServer;
  readonly certificateOf: (request: Request) => Credentials["certificate"];
  readonly limits?: Partial<RequestLimits>;
}

/** See {@link HttpHandler}. */
export function createHandler(env: RuntimeEnv, options: HandlerOptions): HttpHandler {
  const limits = { ...requestLimitsDefault, ...options.limits };
  const inFlight = new InFlight(limits);
  return async (request, response) => {
    try {
      checkHeaders(request, limits.headerBytesMax);
      await handle(env, options, inFlight, request, response);
    } catch (error) {
      respondWithFailure(env, request, response, error);
    }
  };
}

async function handle(
  env: RuntimeEnv,
  { server, certificateOf }: HandlerOptions,
  inFlight: InFlight,
  request: Request,
  response: Response,
): Promise<void> {
  const { method = "GET", url = "/" } = request;
  const to = requestTarget(url);
  const { authorizer, registry } = server;
  const sender = server.authenticate({
    authorization: request.headers.authorization,
    certificate: certificateOf(request),
  });
  const user = impersonated(authorizer, registry.context.version, sender, request);
  const parsed = parseRequest(method, to, registry.context.kinds);
  const attributes = attributesOfParsed(user, parsed);
  // Before authorization, as in the reference's chain of filters (apiserver server/config.go).
  const end = inFlight.begin(attributes);
  response.on("close", end);
  try {
    registry.authorize(attributes);
    const call = { server, user, params: to.params, request, response };
    if (parsed.type === "path") await answerPath({ ...call, method, path: parsed.path });
    else await answerResource(env, { ...call, operation: operationOf(parsed) });
  } finally {
    end();
  }
}

/** @throws KubeApiError 404, 405, PageNotFound when nothing of the kind is served */
function operationOf({ outcome }: ResourceRequest): Operation {
  if ("refusal" in outcome) throw outcome.refusal();
  return outcome.operation;
}

/** @throws KubeApiError 431 */
function checkHeaders({ rawHeaders }: Request, bytesMax: number): void {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  if (bytesMax > 0 && bytes > bytesMax) {
    throw apiError(431, "", `the headers of the request are longer than ${bytesMax} bytes`);
  }
}
