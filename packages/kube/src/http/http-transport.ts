/**
 * Sends single HTTP requests over undici: connections, TLS and the mapping of failures. The only file
 * that knows undici; all time limits come in through signals, undici's own are switched off.
 */
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { Agent, Dispatcher } from "undici";
import { KubeTransportError } from "../client.ts";
import type { ClusterConfig, Credential } from "../config/cluster-config.ts";

/** One request. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query below the server's address. */
  readonly path: string;
  readonly contentType?: string;
  /** Media types of the answer; plain JSON when left out. */
  readonly accept?: string;
  readonly body?: string;
  /** Called when the request is about to be written to its connection; what it throws keeps it from being. */
  readonly fence?: () => void;
}

/** An answer whose body is still to be read. */
export interface HttpResponse {
  readonly code: number;
  readonly retryAfter: string | undefined;
  /** Reading throws what {@link transportError} makes of a broken connection. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Drops the connection. */
  discard(): void;
}

type Undici = typeof import("undici");

/** Connections for calls; each watch has one of its own. */
const CALL_CONNECTIONS = 32;
const CONNECT_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

interface Connections {
  readonly certificate: Credential["certificate"];
  readonly calls: Agent;
  readonly watches: Agent;
}

/** Connections to one server. */
export class HttpTransport {
  readonly #config: ClusterConfig;
  readonly #origin: string;
  readonly #prefix: string;
  #connections: Connections | undefined;
  readonly #compression: boolean;
  #closed = false;

  /** @param compression whether answers to calls may come compressed */
  constructor(config: ClusterConfig, compression: boolean) {
    this.#config = config;
    this.#compression = compression;
    const url = new URL(config.server);
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, "");
  }

  /** Sends the request; `kind` chooses the connections. @throws KubeTransportError, or the signal's reason */
  async send(
    request: HttpRequest,
    credential: Credential,
    kind: "calls" | "watches",
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    signal.throwIfAborted();
    if (this.#closed) throw new KubeTransportError("the client is closed");
    const { authorization } = credential;
    const { fence } = request;
    let refused: { readonly error: unknown } | undefined;
    let response: Dispatcher.ResponseData;
    try {
      // Loaded with the first request: whoever only makes a client in process need not wait for it.
      const undici = await import("undici");
      if (this.#closed) throw new KubeTransportError("the client is closed");
      const connections = this.#connectionsFor(undici, credential)[kind];
      const dispatcher =
        fence === undefined
          ? connections
          : fencedBy(connections, () => {
              try {
                fence();
              } catch (error) {
                refused = { error };
                throw error;
              }
            });
      response = await dispatcher.request({
        origin: this.#origin,
        path: this.#prefix + request.path,
        method: request.method,
        headers: {
          accept: request.accept ?? "application/json",
          "user-agent": "longshore",
          ...(this.#compression && kind === "calls" ? { "accept-encoding": "gzip" } : {}),
          ...(authorization === undefined ? {} : { authorization }),
          ...(request.body === undefined
            ? {}
            : { "content-type": request.contentType ?? "application/json" }),
        },
        body: request.body ?? null,
        signal,
      });
    } catch (error) {
      if (refused !== undefined) throw refused.error;
      throw this.#failure(request, error, signal);
    }
    const header = response.headers["retry-after"];
    const { body } = response;
    // A body that is dropped without being read ends with an error nobody waits for.
    body.on("error", () => {});
    return {
      code: response.statusCode,
      retryAfter: Array.isArray(header) ? header[0] : header,
      body: this.#bytesOf(request, unpacked(body, response.headers["content-encoding"]), signal),
      discard: () => body.destroy(),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connections = this.#connections;
    this.#connections = undefined;
    await Promise.all([connections?.calls.destroy(), connections?.watches.destroy()]);
  }

  async *#bytesOf(
    request: HttpRequest,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      throw this.#failure(request, error, signal);
    }
  }

  #failure(request: HttpRequest, error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    return transportError(`${request.method} ${this.#origin}${this.#prefix}${pathOf(request)}`, error);
  }

  /** A new client certificate needs new connections; the old ones end when their requests have. */
  #connectionsFor(undici: Undici, credential: Credential): Connections {
    const { certificate } = credential;
    const present = this.#connections;
    if (
      present !== undefined &&
      present.certificate?.cert === certificate?.cert &&
      present.certificate?.key === certificate?.key
    ) {
      return present;
    }
    void present?.calls.close().catch(() => {});
    void present?.watches.close().catch(() => {});
    const connections = {
      certificate,
      calls: this.#agent(undici, CALL_CONNECTIONS, certificate),
      watches: this.#agent(undici, null, certificate),
    };
    this.#connections = connections;
    return connections;
  }

  #agent(undici: Undici, connections: number | null, certificate: Credential["certificate"]): Agent {
    const { ca, tlsServerName, insecureSkipTlsVerify } = this.#config;
    return new undici.Agent({
      connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: CONNECT_TIMEOUT_MS,
        rejectUnauthorized: insecureSkipTlsVerify !== true,
        ...(ca === undefined ? {} : { ca }),
        ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
        ...(certificate === undefined ? {} : certificate),
      },
    });
  }
}

/** The connections for one request that is kept from being written when `fence` throws. */
function fencedBy(connections: Agent, fence: () => void): Dispatcher {
  return connections.compose(
    (dispatch) => (options, handler) =>
      dispatch(options, {
        onRequestStart(controller, context) {
          fence();
          handler.onRequestStart?.(controller, context);
        },
        onResponseStart: (...args) => handler.onResponseStart?.(...args),
        onResponseData: (...args) => handler.onResponseData?.(...args),
        onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
        onResponseError: (...args) => handler.onResponseError?.(...args),
      }),
  );
}

/** The body as it was before it was compressed. */
function unpacked(body: Readable, encoding: string | string[] | undefined): AsyncIterable<Uint8Array> {
  if (encoding !== "gzip") return body;
  const gunzip = createGunzip();
  body.on("error", (error) => gunzip.destroy(error));
  gunzip.on("close", () => body.destroy());
  return body.pipe(gunzip);
}

/** The path without its query, which may carry more than a log should. */
function pathOf(request: HttpRequest): string {
  return request.path.split("?")[0] ?? "";
}

const notSentCodes: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** True when no connection came about, so that nothing was sent. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof KubeTransportError && notSentCodes.has(codeOf(error.cause));
}

/** The error of a request that got no usable answer: what failed, why, and what to look at. */
export function transportError(request: string, cause: unknown): KubeTransportError {
  return new KubeTransportError(`${request}: ${explain(cause)}`, { cause });
}

function explain(cause: unknown): string {
  const code = codeOf(cause);
  switch (code) {
    case "ECONNREFUSED":
      return "connection refused: is the API server running, and its address right?";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the host name cannot be resolved: check the server's address";
    case "UND_ERR_CONNECT_TIMEOUT":
      return "no connection came about in time: check the address and the network";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return "the server's certificate is for another name: check the address, or set tls-server-name";
    case "CERT_HAS_EXPIRED":
      return "the server's certificate has expired";
  }
  if (code.startsWith("ERR_OSSL")) return "a certificate or key of the kubeconfig cannot be used";
  if (code === "EPROTO" || code === "ERR_SSL_WRONG_VERSION_NUMBER") {
    return "the server does not speak TLS on this port: check its address";
  }
  if (/CERT|SELF_SIGNED|VERIFY|ISSUER/.test(code)) {
    return "the server's certificate is not trusted: check certificate-authority";
  }
  if (code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE") {
    return "the connection broke";
  }
  return "the request failed";
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code === "string") return code;
  // Several addresses of one host were tried.
  const first = error instanceof AggregateError ? error.errors[0] : undefined;
  return first === undefined ? "" : codeOf(first);
}
