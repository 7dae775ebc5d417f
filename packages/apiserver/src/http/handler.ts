/**
 * The pipeline that every HTTP request goes through: who asks, as whom, whether there is room and whether they may,
 * and then to the one who answers.
 * Nothing of a request is read beyond its head before it is known to be allowed.
 */
import type { RuntimeEnv } from "@longshore/runtime";
import { apiError, badRequest } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import { assertAllowed } from "../authorization/authorizer.ts";
import type { Credentials } from "./authentication.ts";
import type { Request, Response } from "./exchange.ts";
import { impersonated } from "./impersonation.ts";
import { InFlight, type RequestLimits, requestLimitsDefault } from "./limits.ts";
import { resourcePath } from "./path.ts";
import { answerPath } from "./path-endpoints.ts";
import { attributesOf } from "./request-attributes.ts";
import { answerResource } from "./resource-endpoint.ts";
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
  const url = urlOf(request);
  const { authorizer, registry } = server;
  const sender = server.authenticate({
    authorization: request.headers.authorization,
    certificate: certificateOf(request),
  });
  const user = impersonated(authorizer, registry.context.version, sender, request);
  const path = resourcePath(url.pathname);
  const attributes = attributesOf(user, request.method ?? "GET", url, path);
  const end = inFlight.begin(attributes);
  response.on("close", end);
  try {
    assertAllowed(authorizer, attributes);
    const call = { server, user, url, request, response };
    if (path === undefined) await answerPath(call);
    else await answerResource(env, { ...call, path });
  } finally {
    end();
  }
}

/** @throws KubeApiError 431 */
function checkHeaders({ rawHeaders }: Request, bytesMax: number): void {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  if (bytesMax > 0 && bytes > bytesMax) {
    throw apiError(431, "", `the headers of the request are longer than ${bytesMax} bytes`);
  }
}

/** Where the request goes; the name of a host in it (proxies send one) means nothing. */
function urlOf({ url = "/" }: Request): URL {
  try {
    return new URL(url.startsWith("/") ? `https://localhost${url}` : url, "https://localhost");
  } catch {
    throw badRequest("the path of the request cannot be read");
  }
}
