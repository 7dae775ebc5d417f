/** Sends answers and failures: their encoding, their compression, their headers. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { KubeApiError, type Status } from "@longshore/kube";
import { errorChain, type RuntimeEnv } from "@longshore/runtime";
import { apiError } from "../api/errors.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { type AnswerForm, negotiate } from "./negotiate.ts";
import { toYaml } from "./render.ts";

/** Answers shorter than this are not compressed (apiserver endpoints/handlers/responsewriters). */
const gzipBytesMin = 128 * 1024;

/** Sends a whole answer. */
export function send(
  request: Request,
  response: Response,
  code: number,
  body: string | Uint8Array,
  type: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  let bytes = Buffer.from(body as string);
  const all: Record<string, string> = {
    "content-type": type,
    "cache-control": "no-cache, private",
    ...headers,
  };
  if (bytes.length >= gzipBytesMin && /\bgzip\b/.test(header(request, "accept-encoding") ?? "")) {
    bytes = gzipSync(bytes, { level: 4 });
    all["content-encoding"] = "gzip";
    all.vary = "Accept-Encoding";
  }
  all["content-length"] = String(bytes.length);
  const res = response as ServerResponse;
  res.writeHead(code, all);
  res.end(request.method === "HEAD" ? undefined : bytes);
}

/** Sends a document as JSON. */
export function sendJson(request: Request, response: Response, document: object): void {
  send(request, response, 200, JSON.stringify(document), "application/json");
}

/** Sends plain text. */
export function sendText(request: Request, response: Response, code: number, text: string): void {
  send(request, response, code, text, "text/plain; charset=utf-8");
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
  const { status, code } = failureOf(env, error);
  if (response.headersSent) {
    response.end();
    return;
  }
  const retry = status.details?.retryAfterSeconds;
  const form = safeForm(request);
  const text = JSON.stringify(status);
  const body = form.encoding === "yaml" ? toYaml(text) : text;
  const headers = retry === undefined ? {} : { "retry-after": String(retry) };
  // A body that nobody will read must not hold the connection.
  request.resume();
  send(request, response, code, body, `application/${form.encoding}`, headers);
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
