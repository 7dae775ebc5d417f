/**
 * An HTTPS server that answers AdmissionReviews of `admission.k8s.io/v1`. Each request has a deadline, a body a limit, and
 * whatever fails refuses the request with its reason: the API server says it to the client.
 */
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Logger } from "@longshore/runtime";

/** The request inside an AdmissionReview, as far as a handler reads it. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly kind: string;
  readonly operation: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly object: object;
  /** The object as it is stored, with an update. */
  readonly oldObject?: object;
}

/** What a handler decides. */
export interface Verdict {
  readonly allowed: boolean;
  /** A JSON patch (RFC 6902). */
  readonly patch?: readonly object[];
  /** Status code and message of a refusal. */
  readonly code?: number;
  readonly message?: string;
}

/** Decides about one request; what it throws refuses the request. */
export type Handler = (request: AdmissionRequest, signal: AbortSignal) => Promise<Verdict>;

/** How to serve. */
export interface AdmissionServerOptions {
  /** Address to listen on; default the loopback address. */
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  /** The server's certificate and key; PEM. */
  readonly certificate: string;
  readonly key: string;
  /** The handlers, by path. */
  readonly handlers: Readonly<Record<string, Handler>>;
}

/** A server that listens. */
export interface AdmissionServer {
  readonly url: string;
  /** Ends all connections and resolves when the port is free. */
  close(): Promise<void>;
}

/** An update has the object twice, each of at most 1.5 MiB as it is stored; JSON escapes make it longer. */
const bodyBytesMax = 8 * 1024 * 1024;
/** The API server waits 10 s by default, 30 s at most. */
const deadlineMsMax = 30_000;
const deadlineMsDefault = 10_000;

/** Starts to listen. @throws Error when it cannot listen */
export async function serveAdmission(
  env: { readonly logger: Logger },
  { host = "127.0.0.1", port, certificate, key, handlers }: AdmissionServerOptions,
): Promise<AdmissionServer> {
  const server = createServer({ cert: certificate, key, minVersion: "TLSv1.2" }, (request, response) => {
    void answer(env, handlers, request).then(({ status, body }) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });
  server.requestTimeout = deadlineMsMax;
  await listen(server, port, host);
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `https://${host}:${bound}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Answer {
  readonly status: number;
  readonly body: object;
}

/** A request that is no AdmissionReview: the API server reports it as a failure of the webhook. */
class BadRequest extends Error {
  override readonly name = "BadRequest";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function answer(
  { logger }: { readonly logger: Logger },
  handlers: AdmissionServerOptions["handlers"],
  incoming: IncomingMessage,
): Promise<Answer> {
  const { pathname, searchParams } = new URL(incoming.url ?? "/", "https://webhook");
  if (pathname === "/healthz") return { status: 200, body: { ok: true } };
  try {
    const handler = Object.hasOwn(handlers, pathname) ? handlers[pathname] : undefined;
    if (handler === undefined) throw new BadRequest(404, `${pathname}: no webhook is here`);
    if (incoming.method !== "POST")
      throw new BadRequest(405, `${incoming.method}: send an AdmissionReview with POST`);
    const request = requestOf(await bodyOf(incoming));
    const verdict = await decide(logger, handler, request, deadlineMs(searchParams.get("timeout")));
    return { status: 200, body: reviewOf(request.uid, verdict) };
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error;
    return { status: error.status, body: { error: error.message } };
  }
}

async function decide(
  logger: Logger,
  handler: Handler,
  request: AdmissionRequest,
  withinMs: number,
): Promise<Verdict> {
  try {
    return await handler(request, AbortSignal.timeout(withinMs));
  } catch (error) {
    const { kind, namespace, name } = request;
    logger.error("a request is refused, since it cannot be judged", { kind, namespace, name, error });
    return { allowed: false, code: 500, message: error instanceof Error ? error.message : String(error) };
  }
}

/** `?timeout=10s`: how long the API server waits. */
function deadlineMs(given: string | null): number {
  const seconds = Number(/^(\d{1,3})s$/.exec(given ?? "")?.[1] ?? Number.NaN);
  return Number.isNaN(seconds) ? deadlineMsDefault : Math.min(seconds * 1000, deadlineMsMax);
}

async function bodyOf(incoming: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new BadRequest(413, `the body has more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
  } catch (error) {
    throw new BadRequest(400, `the body is no JSON: ${(error as Error).message}`);
  }
}

interface Review {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly request?: {
    readonly uid?: unknown;
    readonly kind?: { readonly kind?: unknown } | null;
    readonly operation?: unknown;
    readonly name?: unknown;
    readonly namespace?: unknown;
    readonly object?: unknown;
    readonly oldObject?: unknown;
  } | null;
}

const reviewVersion = "admission.k8s.io/v1";

function requestOf(body: unknown): AdmissionRequest {
  const { apiVersion, kind, request } = (isObject(body) ? body : {}) as Review;
  if (apiVersion !== reviewVersion || kind !== "AdmissionReview") {
    throw new BadRequest(400, `the body is no AdmissionReview of ${reviewVersion}`);
  }
  const { uid, operation, object, oldObject } = request ?? {};
  const requestKind = request?.kind?.kind;
  if (typeof uid !== "string" || typeof requestKind !== "string" || typeof operation !== "string") {
    throw new BadRequest(400, "request.uid, request.kind.kind and request.operation must be strings");
  }
  if (!isObject(object)) {
    throw new BadRequest(400, "request.object must be an object: register only CREATE and UPDATE");
  }
  const { name, namespace } = request ?? {};
  return {
    uid,
    kind: requestKind,
    operation,
    object,
    ...(typeof name === "string" && { name }),
    ...(typeof namespace === "string" && { namespace }),
    ...(isObject(oldObject) && { oldObject }),
  };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function reviewOf(uid: string, { allowed, patch = [], code, message }: Verdict): object {
  const json = JSON.stringify(patch);
  return {
    apiVersion: reviewVersion,
    kind: "AdmissionReview",
    response: {
      uid,
      allowed,
      ...(patch.length > 0 && { patchType: "JSONPatch", patch: Buffer.from(json).toString("base64") }),
      ...(!allowed && { status: { code, message } }),
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
