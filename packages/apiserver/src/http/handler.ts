/**
 * The pipeline that every HTTP request goes through: who asks, whether they may, and then to the one who answers.
 * Nothing of a request is read beyond its head before it is known to be allowed.
 */
import type { RuntimeEnv } from "@longshore/runtime";
import { badRequest } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import { assertAllowed } from "../authorization/authorizer.ts";
import type { Authenticator, Credentials } from "./authentication.ts";
import type { Request, Response } from "./exchange.ts";
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
  readonly authenticate: Authenticator;
  readonly certificateOf: (request: Request) => Credentials["certificate"];
}

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
  { server, authenticate, certificateOf }: HandlerOptions,
  request: Request,
  response: Response,
): Promise<void> {
  const url = urlOf(request);
  const user = authenticate({
    authorization: request.headers.authorization,
    certificate: certificateOf(request),
  });
  const path = resourcePath(url.pathname);
  assertAllowed(server.authorizer, attributesOf(user, request.method ?? "GET", url, path));
  const call = { server, user, url, request, response };
  if (path === undefined) await answerPath(call);
  else await answerResource(env, { ...call, path });
}

/** Where the request goes; the name of a host in it (proxies send one) means nothing. */
function urlOf({ url = "/" }: Request): URL {
  try {
    return new URL(url.startsWith("/") ? `https://localhost${url}` : url, "https://localhost");
  } catch {
    throw badRequest("the path of the request cannot be read");
  }
}
