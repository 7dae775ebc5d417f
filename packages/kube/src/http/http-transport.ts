/**
 * Sends single HTTP requests over undici: connections, TLS and the mapping of failures. The only file
 * that knows undici; all time limits come in from outside, undici's own are switched off.
 */
import { setMaxListeners } from "node:events";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { DeadlineError, type TimeLimit, type Timer } from "@longshore/runtime";
import type { Agent, Dispatcher } from "undici";
import type { ClusterConfig, Credential } from "../config/cluster-config.ts";
import { KubeTransportError } from "../kube-client.ts";

/** One request. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query below the server's address. */
  readonly path: string;
  readonly contentType?: string;
  /** Media types of the answer; plain JSON when left out. */
  readonly accept?: string;
  readonly body?: string;
  /** Called when the request is about to be written to its connection; if it throws, the request is not sent. */
  readonly fence?: () => void;
}

/** An answer whose body is still to be read. */
export interface HttpResponse {
  readonly code: number;
  /** Reading throws what {@link transportError} makes of a broken connection. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Drops the connection. */
  discard(): void;
}

/** An answer that has been read whole. */
export interface HttpAnswer {
  readonly code: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
}

/** Maximum number of connections for calls; each watch uses a separate connection. */
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
  #undici: Undici | undefined;
  #closed = false;

  /** @param compression whether answers to calls may come compressed */
  constructor(config: ClusterConfig, compression: boolean) {
    this.#config = config;
    this.#compression = compression;
    const url = new URL(config.server);
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, "");
  }

  /** Sends the request over a separate connection. @throws KubeTransportError, or the signal's reason */
  async watch(request: HttpRequest, credential: Credential, signal: AbortSignal): Promise<HttpResponse> {
    signal.throwIfAborted();
    let response: Dispatcher.ResponseData;
    try {
      this.#undici ??= await import("undici");
      const { watches } = this.#connectionsFor(this.#undici, credential);
      const options = { ...this.#optionsOf(request, credential, false), signal };
      response = await watches.request(options);
    } catch (error) {
      throw this.#failure(request, error, signal);
    }
    const { body } = response;
    // Avoids an uncaught error when the body is discarded without being read.
    body.on("error", () => {});
    return {
      code: response.statusCode,
      body: this.#bytesOf(request, body, signal),
      discard: () => body.destroy(),
    };
  }

  /**
   * Sends the request over the connections for calls and reads the whole answer, without a stream in between: most
   * answers are one object. @throws KubeTransportError, DeadlineError, the signal's reason, or what the fence throws
   */
  async call(request: HttpRequest, credential: Credential, limit: TimeLimit): Promise<HttpAnswer> {
    const { signal } = limit;
    signal.throwIfAborted();
    const reader = new AnswerReader(request.fence, limit);
    try {
      // Loaded with the first request: a program that only makes a client in process does not wait for it.
      this.#undici ??= await import("undici");
      const { calls } = this.#connectionsFor(this.#undici, credential);
      calls.dispatch(this.#optionsOf(request, credential, this.#compression), reader);
      const { code, headers, body } = await reader.answer;
      const retryAfter = firstOf(headers["retry-after"]);
      const isPacked = headers["content-encoding"] === "gzip";
      return { code, retryAfter, body: isPacked ? await gunzipWhole(body) : body };
    } catch (error) {
      if (reader.refused !== undefined) throw reader.refused.error;
      throw this.#failure(request, error, signal);
    } finally {
      reader.release();
    }
  }

  #optionsOf(
    request: HttpRequest,
    { authorization }: Credential,
    compressed: boolean,
  ): Dispatcher.RequestOptions {
    const { method, path, body, accept = "application/json", contentType = "application/json" } = request;
    const headers: Record<string, string> = { accept, "user-agent": "longshore" };
    if (compressed) headers["accept-encoding"] = "gzip";
    if (authorization !== undefined) headers.authorization = authorization;
    if (body !== undefined) headers["content-type"] = contentType;
    // undici closes the connection after a DELETE with a body, for servers that do not read one. API servers do: it has the
    // preconditions.
    const reset = false;
    return { origin: this.#origin, path: this.#prefix + path, method, headers, body: body ?? null, reset };
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
    if (error instanceof DeadlineError) return error;
    return transportError(`${request.method} ${this.#origin}${this.#prefix}${pathOf(request)}`, error);
  }

  /** A new client certificate needs new connections; the old ones end when their requests have. */
  #connectionsFor(undici: Undici, { certificate }: Credential): Connections {
    if (this.#closed) throw new KubeTransportError("the client is closed");
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
      // No limit: a watch keeps its connection, so with a limit the next one might wait forever.
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

type Undici = typeof import("undici");

interface WholeAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Takes an answer as its parts come; aborts the request with the signal, and when the time is over. */
class AnswerReader implements Dispatcher.DispatchHandler {
  readonly answer: Promise<WholeAnswer>;
  /** What the fence threw. */
  refused: { readonly error: unknown } | undefined;
  readonly #fence: (() => void) | undefined;
  readonly #limit: TimeLimit;
  readonly #onAbort = () => this.#fail(this.#limit.signal.reason);
  readonly #timer: Timer;
  readonly #chunks: Buffer[] = [];
  /** Why the request was aborted. */
  #failed: { readonly reason: unknown } | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #code = 0;
  #headers: WholeAnswer["headers"] = {};
  #resolve: (answer: WholeAnswer) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(fence: (() => void) | undefined, limit: TimeLimit) {
    this.#fence = fence;
    this.#limit = limit;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Avoids an unhandled rejection when no caller awaits the answer.
    this.answer.catch(() => {});
    setMaxListeners(0, limit.signal); // One listener for each call in progress: many are no leak.
    limit.signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = limit.onEnd((error) => this.#fail(error));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It waited for a connection, and is not wanted any more.
    if (this.#failed !== undefined) throw this.#failed.reason;
    this.#limit.throwIfEnded();
    try {
      this.#fence?.();
    } catch (error) {
      this.refused = { error };
      throw error;
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    code: number,
    headers: WholeAnswer["headers"],
  ): void {
    this.#code = code;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const chunks = this.#chunks;
    const only = chunks.length === 1 ? chunks[0] : undefined;
    this.#resolve({ code: this.#code, headers: this.#headers, body: only ?? Buffer.concat(chunks) });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reject(error);
  }

  /** Must be called at the end, also after a failure. */
  release(): void {
    this.#timer.cancel();
    this.#limit.signal.removeEventListener("abort", this.#onAbort);
  }

  #fail(reason: unknown): void {
    this.#failed = { reason };
    this.#reject(reason);
    this.#controller?.abort(reason instanceof Error ? reason : new Error("aborted", { cause: reason }));
  }
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

const gunzipWhole = promisify(gunzip);

/** The path without its query, which may carry more than a log should. */
export function pathOf(request: HttpRequest): string {
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
