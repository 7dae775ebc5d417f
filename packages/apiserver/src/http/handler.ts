/**
 * The pipeline that every HTTP request goes through: authentication, impersonation, parsing, limits, authorization,
 * and then the endpoint.
 * The same parsed value is authorized and carried out; later code never reads method or path again.
 * The body of a request is read only after the request is allowed.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { RuntimeEnv } from "@longshore/runtime";
import type { UserInfo } from "../api/api-request.ts";
import { apiError } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import type { Credentials } from "../authentication/authenticator.ts";
import { answerPath } from "./answer-path.ts";
import { answerResource } from "./answer-resource.ts";
import { connectOptions, connectRequest } from "./connect-options.ts";
import type { Request, Response } from "./exchange.ts";
import {
  isNodeProxy,
  isPodLog,
  type NodeSocket,
  passLog,
  passNodeProxy,
  passUpgrade,
  refuseUpgrade,
  upgradeAsCreation,
} from "./http-node-proxy.ts";
import { impersonated } from "./impersonation.ts";
import {
  attributesOfParsed,
  type Operation,
  type ParsedRequest,
  parseRequest,
  type ResourceRequest,
} from "./parsed-request.ts";
import { InFlight, type RequestLimits, requestLimitsDefault } from "./request-limits.ts";
import { type MetricsText, RequestMetrics } from "./request-metrics.ts";
import { requestTarget } from "./request-target.ts";
import { respondWithFailure } from "./respond.ts";

/** Handles requests; its functions never throw. */
export interface HttpHandler {
  /** Handles one request to its end. */
  answer(request: Request, response: Response): Promise<void>;
  /** Handles one that asks for another protocol on its connection. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** What the handler works with. */
export interface HandlerOptions {
  readonly server: ApiServer;
  readonly certificateOf: (request: Request) => Credentials["certificate"];
  readonly limits?: Partial<RequestLimits>;
  /** As in `HttpsOptions`. */
  readonly metrics?: MetricsText;
  /** The socket of a node, as in `HttpsOptions`. */
  readonly nodeSocket?: NodeSocket;
}

/** See {@link HttpHandler}. */
export function createHandler(env: RuntimeEnv, options: HandlerOptions): HttpHandler {
  const limits = { ...requestLimitsDefault, ...options.limits };
  const inFlight = new InFlight(limits);
  let measured: RequestMetrics | undefined;
  // Made with the first request: the server is there the sooner.
  const measure: Measure = (parsed, params, response) => {
    if (options.metrics === undefined) return;
    const { context } = options.server.registry;
    measured ??= new RequestMetrics(env.clock, env.meter, inFlight, context);
    const ended = measured.begin(parsed, params);
    response.on("close", () => ended(response.statusCode));
  };
  return {
    async answer(request, response) {
      try {
        checkHeaders(request, limits.headerBytesMax);
        await handle(env, options, inFlight, measure, request, response);
      } catch (error) {
        respondWithFailure(env, request, response, error);
      }
    },
    upgrade(request, socket, head) {
      socket.on("error", () => {});
      const handled = async () => {
        checkHeaders(request, limits.headerBytesMax);
        await handleUpgrade(env, options, request, socket, head);
      };
      handled().catch((error) => refuseUpgrade(env, socket, error));
    },
  };
}

/** Measures a request from here to its end. */
type Measure = (parsed: ParsedRequest, params: URLSearchParams, response: Response) => void;

/** Authenticated and authorized like any request; then the node has the connection. */
async function handleUpgrade(
  { clock }: RuntimeEnv,
  options: HandlerOptions,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const { user, parsed, to } = authorized(options, request, () => {});
  const { registry } = options.server;
  registry.authorize(attributesOfParsed(user, upgradeAsCreation(parsed, request)));
  if (parsed.type === "resource") {
    await askAboutConnection(options.server, parsed, user, to.params, (closed) =>
      socket.once("close", closed),
    );
  }
  const call = { clock, registry, nodeSocket: options.nodeSocket, parsed, params: to.params };
  await passUpgrade(call, request, socket, head);
}

/** Who asks for what, once it is allowed. @throws KubeApiError 401, 403 */
function authorized(
  { server, certificateOf }: HandlerOptions,
  request: Request,
  before: (
    attributes: ReturnType<typeof attributesOfParsed>,
    parsed: ParsedRequest,
    params: URLSearchParams,
  ) => void,
) {
  const { authorizer, registry } = server;
  const sender = server.authenticate({
    authorization: request.headers.authorization,
    certificate: certificateOf(request),
  });
  const user = impersonated(authorizer, registry.context.version, sender, request);
  const to = requestTarget(request.url ?? "/");
  const parsed = parseRequest(request.method ?? "GET", to, registry.context.kinds);
  const attributes = attributesOfParsed(user, parsed);
  before(attributes, parsed, to.params);
  registry.authorize(attributes);
  return { user, parsed, to };
}

async function handle(
  env: RuntimeEnv,
  options: HandlerOptions,
  inFlight: InFlight,
  measure: Measure,
  request: Request,
  response: Response,
): Promise<void> {
  const { server } = options;
  let end = () => {};
  try {
    const { user, parsed, to } = authorized(options, request, (attributes, asked, params) => {
      measure(asked, params, response);
      // Before authorization, as in the reference's chain of filters (apiserver server/config.go).
      end = inFlight.begin(attributes);
      response.on("close", end);
    });
    const call = { server, user, params: to.params, request, response };
    if (parsed.type === "path") {
      const { metrics } = options;
      await answerPath({
        ...call,
        ...(metrics && { metrics }),
        method: request.method ?? "GET",
        path: parsed.path,
      });
    } else {
      const { nodeSocket } = options;
      const { registry } = server;
      const nodeCall = { clock: env.clock, registry, nodeSocket, parsed, params: to.params };
      if (nodeSocket !== undefined && isNodeProxy(parsed)) {
        await askAboutConnection(server, parsed, user, to.params, (closed) => response.once("close", closed));
        return await passNodeProxy(nodeCall, response);
      }
      const operation = operationOf(parsed);
      if (nodeSocket !== undefined && isPodLog(parsed)) await passLog(nodeCall, response);
      else await answerResource(env, { ...call, operation });
    }
  } finally {
    end();
  }
}

/** Asks the webhooks about a connection to a node or to a pod of it, where some concern it. @throws KubeApiError when one refuses */
async function askAboutConnection(
  { registry, requests }: ApiServer,
  parsed: ResourceRequest,
  user: UserInfo,
  params: URLSearchParams,
  onClose: (closed: () => void) => void,
): Promise<void> {
  const { group, resource, subresource = "" } = parsed.asked;
  const kind = registry.context.kinds.find(group, resource)?.subresources?.[subresource]?.kind;
  if (kind === undefined) return;
  await requests.connect(connectRequest(parsed, user), connectOptions(parsed, params, kind), {
    warn: () => {},
    signal() {
      const gone = new AbortController();
      onClose(() => gone.abort(new Error("the client is gone")));
      return gone.signal;
    },
  });
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
