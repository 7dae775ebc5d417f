/** The HTTP server of a sidecar: metrics and health, and nothing else. Real form. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Component, Logger, PrometheusMeter } from "@longshore/runtime";
import { UsageError } from "../../exit.ts";

/** What a path answers. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
}

/** Answers by path; looked up again for each request. */
export type Routes = Map<string, (signal: AbortSignal) => Promise<Answer>>;

/** Where the server listens, read from `host:port` as Go does: `:8080` is every address. */
export function listenAddress(
  flag: string,
  text: string,
): { readonly host: string | undefined; readonly port: number } {
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new UsageError(`${flag}: "${text}" is not an address: write host:port, or :port for every address`);
  }
  const host = match[1] ?? match[2] ?? "";
  return { host: host === "" ? undefined : host, port };
}

/**
 * Starts the server; resolves when it listens. A path that has no answer yet is answered once `complete` has resolved: a probe that
 * comes at once finds no 404. @throws when the address cannot be listened at
 */
export async function serveHttp(
  logger: Logger,
  flag: string,
  address: string,
  routes: Routes,
  complete: Promise<void> = Promise.resolve(),
): Promise<Component> {
  const { host, port } = listenAddress(flag, address);
  const stopping = new AbortController();
  const server = createServer((request, response) => {
    answer(routes, complete, request, stopping.signal).then(
      (found) => send(response, request, found),
      (error) => {
        logger.warn("a request for health or metrics failed", { path: request.url, error });
        send(response, request, { status: 500, body: "internal error; the log has the details" });
      },
    );
  });
  // Scrapers come rarely: an idle connection costs more than a new one.
  server.keepAliveTimeout = 5000;
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  }).catch((cause) => {
    throw new Error(`${flag}: cannot listen at ${address}: choose another address`, { cause });
  });
  const bound = server.address();
  logger.info("serving metrics and health", {
    address: typeof bound === "object" && bound !== null ? `${bound.address}:${bound.port}` : address,
  });
  return {
    async stop() {
      stopping.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      // `close` alone waits for clients that keep their connection.
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(
  routes: Routes,
  complete: Promise<void>,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Answer> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return { status: 405, body: "only GET is answered" };
  }
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  if (!routes.has(path)) await complete;
  const route = routes.get(path);
  return route === undefined ? { status: 404, body: "404 page not found" } : route(signal);
}

function send(response: ServerResponse, request: IncomingMessage, found: Answer): void {
  const { status, body, contentType = "text/plain; charset=utf-8" } = found;
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** The metrics of a meter. */
export function metricsRoute(meter: PrometheusMeter): () => Promise<Answer> {
  return async () => ({
    status: 200,
    body: await meter.exposition(),
    contentType: meter.contentType,
  });
}
