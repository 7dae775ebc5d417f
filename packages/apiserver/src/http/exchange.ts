/** One HTTP request and its response, of HTTP/1.1 or HTTP/2. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** An incoming request. */
export type Request = IncomingMessage | Http2ServerRequest;

/** An outgoing response. */
export type Response = ServerResponse | Http2ServerResponse;

/** The value of a header (its name in lower case); several values are joined. */
export function header(request: Request, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}
