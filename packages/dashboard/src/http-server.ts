/**
 * Serves the page and its stream of pictures. All of it lies below a path that holds the token, so
 * that the page's own relative links carry it, without cookie or script.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Clock } from "@longshore/runtime";
import fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import type { PageFile } from "./http-page-files.ts";
import { latestWins } from "./latest-wins.ts";
import type { StateFeed } from "./state-feed.ts";

/** What the server shows, and the token that it requires. */
export interface DashboardServerOptions {
  readonly clock: Clock;
  readonly feed: StateFeed;
  readonly files: ReadonlyMap<string, PageFile>;
  readonly token: string;
}

/** Most watchers at a time. */
export const watchersMax = 16;
/** Pause between two signs of life on a quiet stream. */
const heartbeatMs = 15_000;
/** A watcher that has not read for so long is given up. */
const stalledMs = 60_000;

/** Nothing from other origins, nothing inline, no frame around the page, and no Referer header. */
const headers: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** Makes the server; it does not listen yet. Closing it ends every stream. */
export function createDashboardServer(options: DashboardServerOptions): FastifyInstance {
  const { files } = options;
  const server = fastify({ logger: false, forceCloseConnections: true });
  const isToken = tokenCheck(options.token);
  const watchers = new Set<() => void>();
  server.addHook("preClose", async () => {
    for (const end of watchers) end();
  });
  server.addHook("onSend", async (_request, reply) => {
    reply.headers(headers);
  });
  server.get<{ Params: { token: string; "*": string } }>("/:token/*", (request, reply) => {
    if (!isToken(request.params.token)) return refuse(reply, 403, wrongToken);
    const name = request.params["*"] || "index.html";
    if (name === "events") {
      if (watchers.size >= watchersMax) return refuse(reply, 503, "too many watch already: close a page");
      reply.hijack();
      watchers.add(stream(reply.raw, options, (end) => watchers.delete(end)));
      return reply;
    }
    const file = files.get(name);
    if (file === undefined) return refuse(reply, 404, "there is no such page");
    return reply.type(file.contentType).send(file.body);
  });
  server.setNotFoundHandler((_request, reply) => refuse(reply, 403, wrongToken));
  return server;
}

const wrongToken = "this address needs the token that `longshore dashboard` printed";

function refuse(reply: FastifyReply, code: number, text: string): FastifyReply {
  return reply.code(code).type("text/plain; charset=utf-8").send(`${text}\n`);
}

/** Compares digests: neither length nor contents of the token show in the time it takes. */
function tokenCheck(token: string): (given: string) => boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const wanted = digest(token);
  return (given) => timingSafeEqual(digest(given), wanted);
}

/** Streams pictures until the watcher leaves. @returns a function that ends the stream */
function stream(
  response: ServerResponse,
  { clock, feed }: DashboardServerOptions,
  onEnd: (end: () => void) => void,
): () => void {
  response.writeHead(200, { ...headers, "content-type": "text/event-stream; charset=utf-8" });
  const writer = latestWins({
    write: (text) => response.write(text),
    onDrain: (listener) => response.on("drain", listener),
  });
  writer.send("retry: 1000\n\n");
  const send = (json: string) => writer.send(`data: ${json}\n\n`);
  send(feed.latest());
  const unsubscribe = feed.subscribe(send);
  let blockedMs = 0;
  const beat = () => {
    blockedMs = writer.blocked ? blockedMs + heartbeatMs : 0;
    // An event, not a comment: the page uses it to detect a connection that broke without being closed.
    if (!writer.blocked) writer.send("event: alive\ndata:\n\n");
    if (blockedMs < stalledMs) timer = clock.timer(heartbeatMs, beat);
    // No `end`: what it sends waits for a watcher that does not read.
    else response.destroy();
  };
  let timer = clock.timer(heartbeatMs, beat);
  const end = () => {
    unsubscribe();
    timer.cancel();
    response.end();
    onEnd(end);
  };
  response.on("close", end);
  response.on("error", end);
  return end;
}
