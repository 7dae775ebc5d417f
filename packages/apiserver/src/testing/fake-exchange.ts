/** Requests to the handler without a socket: what a test of very many of them can afford. */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { RuntimeEnv } from "@longshore/runtime";
import type { ApiServer } from "../api-server.ts";
import { createHandler } from "../http/handler.ts";

/** What a handler answered. */
export interface FakeAnswer {
  readonly status: number;
  readonly body: string;
}

/** Sends one request. The client of a watch disconnects after the events that are available at once. */
export type FakeSend = (
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body?: Uint8Array | string,
) => Promise<FakeAnswer>;

/** Sends to a handler of the server. */
export function fakeExchange(env: RuntimeEnv, server: ApiServer): FakeSend {
  const { answer: handler } = createHandler(env, { server, certificateOf: () => undefined });
  return async (method, url, headers, body = "") => {
    const response = new FakeResponse();
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const request = Object.assign(Readable.from(bytes.length === 0 ? [] : [bytes]), {
      method,
      url,
      headers,
      rawHeaders: Object.entries(headers).flat(),
    });
    await handler(request as never as IncomingMessage, response as never as ServerResponse);
    return { status: response.status, body: response.body };
  };
}

class FakeResponse extends EventEmitter {
  status = 0;
  body = "";
  headersSent = false;
  setHeader(): void {}
  writeHead(status: number): void {
    this.status = status;
    this.headersSent = true;
  }
  flushHeaders(): void {
    setImmediate(() => this.emit("close"));
  }
  write(bytes: Uint8Array): boolean {
    this.body += Buffer.from(bytes).toString();
    return true;
  }
  end(body?: Uint8Array): void {
    this.body += body === undefined ? "" : Buffer.from(body).toString();
  }
}
