/** One HTTPS request, with nothing between the test and the wire. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";

/** What to send. */
export interface Exchange {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** What came back. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Connections to one server, kept open between requests. */
export class HttpsConnections {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(url: string, tls: { readonly ca: string; readonly cert?: string; readonly key?: string }) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, ...tls });
  }

  /** Sends one request; resolves with the response as soon as it begins. */
  open({ method = "GET", path, headers = {}, body }: Exchange): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      // Said here because node announces the body of a DELETE in no way at all.
      const isAnnounced = body === undefined || headers["transfer-encoding"] !== undefined;
      const length = isAnnounced ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const { hostname, port } = new URL(this.#url);
      const sent = httpsRequest(
        {
          ...{ hostname, port, method, headers: { ...length, ...headers }, agent: this.#agent },
          // As it is, but for what no request line can carry: a URL would resolve the dots in it.
          path: path.replace(/[^\x21-\x7e]+/gu, encodeURIComponent),
        },
        resolve,
      );
      // An answer may come before the body is sent to its end; what happens to the rest does not matter.
      sent.on("error", reject);
      sent.end(body);
    });
  }

  /** Sends one request and reads its whole answer. */
  async send(exchange: Exchange): Promise<Answer> {
    const response = await this.open(exchange);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
  }

  /** The body of an answer as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every kind.
  async json(exchange: Exchange): Promise<any> {
    return JSON.parse((await this.send(exchange)).body.toString());
  }

  close(): void {
    this.#agent.destroy();
  }
}
