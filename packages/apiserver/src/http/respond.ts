/** Sends answers and failures: their encoding, their compression, their headers. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { KubeApiError, type KubeObject, type Status } from "@longshore/kube/basics";
import { errorChain, type RuntimeEnv } from "@longshore/runtime/basics";
import { apiError } from "../api/errors.ts";
import { objectToProtobuf, protobufType } from "../schema/object-to-protobuf.ts";
import { chunkBytes, inChunks } from "./chunks.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { type AnswerForm, negotiate } from "./negotiate.ts";
import type { Rendered } from "./render-object.ts";
import { toYaml } from "./yaml.ts";

/** Answers shorter than this are not compressed (apiserver endpoints/handlers/responsewriters). */
const gzipBytesMin = 128 * 1024;

/** Level of compression: the time it takes is worth more than the last bytes (apiserver, the same file). */
const gzipLevel = 1;

/** Headers of every answer with a body. */
function headersOf(type: string): Record<string, string> {
  return { "content-type": type, "cache-control": "no-cache, private" };
}

function acceptsGzip(request: Request): boolean {
  return /\bgzip\b/.test(header(request, "accept-encoding") ?? "");
}

/** Sends a short answer. */
export function send(
  request: Request,
  response: Response,
  code: number,
  body: string | Uint8Array,
  type: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (bytes.length >= gzipBytesMin && headers["content-encoding"] === undefined && acceptsGzip(request)) {
    void stream(request, response, code, [bytes], { ...headersOf(type), ...headers });
    return;
  }
  const res = response as ServerResponse;
  res.writeHead(code, { ...headersOf(type), ...headers, "content-length": String(bytes.length) });
  res.end(request.method === "HEAD" ? undefined : bytes);
}

/** Sends an answer of any length: no more of it is made than the client takes. */
export async function sendRendered(
  request: Request,
  response: Response,
  code: number,
  { type, parts }: Rendered,
): Promise<void> {
  if (Array.isArray(parts)) {
    // Most answers are one object.
    const bytes = (parts as readonly Uint8Array[]).reduce((sum, part) => sum + part.length, 0);
    if (bytes <= chunkBytes) {
      send(request, response, code, Buffer.concat(parts, bytes), type);
      return;
    }
  }
  const chunks = inChunks(parts)[Symbol.iterator]();
  const first = chunks.next();
  // One chunk goes out with its length; only what is longer is streamed.
  const second = first.done === true ? first : chunks.next();
  if (second.done === true) {
    send(request, response, code, first.done === true ? "" : first.value, type);
    return;
  }
  const all = (function* () {
    yield first.value as Buffer;
    yield second.value as Buffer;
    yield* { [Symbol.iterator]: () => chunks };
  })();
  await stream(request, response, code, all, headersOf(type));
}

/** Writes chunk after chunk, each when the one before has been taken; compresses them off this thread. */
async function stream(
  request: Request,
  response: Response,
  code: number,
  chunks: Iterable<Uint8Array>,
  headers: Record<string, string>,
): Promise<void> {
  const res = response as ServerResponse;
  const compressed = acceptsGzip(request);
  res.writeHead(
    code,
    compressed ? { ...headers, "content-encoding": "gzip", vary: "Accept-Encoding" } : headers,
  );
  if (request.method === "HEAD") {
    res.end();
    return;
  }
  let to: Writable = res;
  if (compressed) {
    const { createGzip } = await import("node:zlib");
    to = createGzip({ level: gzipLevel });
    to.pipe(res);
  }
  const gone = once(res, "close").catch(() => {});
  to.on("error", () => {});
  for (const chunk of chunks) {
    if (res.destroyed) break;
    if (!to.write(chunk)) await Promise.race([once(to, "drain").catch(() => {}), gone]);
  }
  if (res.destroyed) to.destroy();
  else to.end();
}

/** Sends a document as JSON. */
export function sendJson(request: Request, response: Response, document: object): void {
  send(request, response, 200, JSON.stringify(document), "application/json");
}

/** Sends plain text. */
export function sendText(request: Request, response: Response, code: number, text: string): void {
  send(request, response, code, text, "text/plain; charset=utf-8");
}

/** There is nothing at the path: not even a group of the API that could say so in its own words. */
export class PageNotFound extends Error {
  override readonly name = "PageNotFound";
}

/** Answers a path that nothing is at. */
export function sendPageNotFound(request: Request, response: Response): void {
  sendText(request, response, 404, "404 page not found\n");
}

/** Sends the Status that belongs to `error`, or ends an answer that has already begun. */
export function respondWithFailure(
  env: RuntimeEnv,
  request: Request,
  response: Response,
  error: unknown,
): void {
  if (error instanceof PageNotFound && !response.headersSent) {
    request.resume();
    sendPageNotFound(request, response);
    return;
  }
  const { status, code } = failureOf(env, error);
  if (response.headersSent) {
    response.end();
    return;
  }
  const retry = status.details?.retryAfterSeconds;
  const form = safeForm(request);
  const headers = retry === undefined ? {} : { "retry-after": String(retry) };
  // Discards the unread body, which would block the connection.
  request.resume();
  try {
    const { body, type } = statusBody(form, status);
    send(request, response, code, body, type, headers);
  } catch (sendError) {
    // What cannot even be written down ends this connection, and nothing else.
    env.logger.error("a failure could not be answered", { code, error: sendError });
    response.destroy();
  }
}

function statusBody(form: AnswerForm, status: Status): { body: string | Uint8Array; type: string } {
  if (form.encoding === "protobuf") {
    const bytes = objectToProtobuf(status as KubeObject);
    if (bytes !== undefined) return { body: bytes, type: protobufType };
  }
  const text = JSON.stringify(status);
  return form.encoding === "yaml"
    ? { body: toYaml(text), type: "application/yaml" }
    : { body: text, type: "application/json" };
}

function failureOf(env: RuntimeEnv, error: unknown): { readonly status: Status; readonly code: number } {
  if (error instanceof KubeApiError) return { status: error.status, code: error.code };
  env.logger.error("request failed", { error });
  const status = apiError(500, "InternalError", `Internal error occurred: ${errorChain(error)}`).status;
  return { status, code: 500 };
}

function safeForm(request: Request): AnswerForm {
  try {
    return negotiate(header(request, "accept"));
  } catch {
    return { encoding: "json", version: "v1" };
  }
}
