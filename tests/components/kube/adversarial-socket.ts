/**
 * The adversary at the level of bytes: the server of `adversarial-server.ts` behind a real socket with TLS and HTTP/1.1,
 * which cuts connections at any byte, hands them over in pieces of any size, and leaves them half open. What it does is
 * drawn from a seed; when it does it depends on the sockets.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { createAuthority, issueCertificate } from "@longshore/apiserver";
import { KubeApiError, type KubeClient, type ListOptions, resources } from "@longshore/kube";
import type { Random } from "@longshore/runtime";

/** Where it listens, and how bad it is. */
export interface AdversarialSocket {
  readonly url: string;
  readonly ca: string;
  /** One in this many connections fails at some byte; 0: none. */
  faultRate: number;
  /** Connections that were cut, or fell silent. */
  readonly faults: number;
  /** Resolves when no activity is visible on the sockets. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** Maximum number of bytes that a connection carries before it fails. */
const BYTES_MAX = 6_000;

/** Serves `client` on a free port of the loopback. */
export async function serveAdversary(random: Random, client: KubeClient): Promise<AdversarialSocket> {
  const authority = await createAuthority("authority of the adversary", new Date());
  const pair = await issueCertificate(authority, {
    commonName: "adversary",
    hosts: ["127.0.0.1"],
    now: new Date(),
  });
  const server: Server = createServer({ cert: pair.certificate, key: pair.key }, (request, response) => {
    answer(request, response, client, random).catch(() => response.destroy());
  });
  const sockets = new Set<TLSSocket>();
  let faults = 0;
  let activity = 0;
  let handshakes = 0;
  server.on("connection", () => {
    handshakes++;
  });
  server.on("request", () => {
    activity++;
  });
  server.on("secureConnection", (socket) => {
    handshakes--;
    activity++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    const isBad = under.faultRate > 0 && random.below(under.faultRate, "bad connection") === 0;
    if (isBad) {
      faults++;
      spoil(socket, random.below(BYTES_MAX, "byte"), random.below(2, "silent") === 0);
    } else scatter(socket, random);
  });
  server.on("tlsClientError", () => {
    handshakes--;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const under = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: authority.certificate,
    faultRate: 0,
    get faults() {
      return faults;
    },
    async settled() {
      let before = -1;
      // A handshake takes a few milliseconds, and may be dropped without an event.
      for (let turns = 0; turns < 50 && (before !== activity || handshakes > 0); turns++) {
        before = activity;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return under;
}

type Write = (chunk: Uint8Array | string, ...rest: unknown[]) => boolean;

/** After this many bytes the connection is cut or falls silent. */
function spoil(socket: TLSSocket, bytes: number, isSilent: boolean): void {
  const write = socket.write.bind(socket) as Write;
  let left = bytes;
  socket.write = ((chunk: Uint8Array | string, ...rest: unknown[]) => {
    const buffer =
      typeof chunk === "string" ? Buffer.from(chunk, rest[0] as BufferEncoding) : Buffer.from(chunk);
    const done = rest.at(-1);
    const sent = buffer.subarray(0, left);
    left -= sent.length;
    if (sent.length > 0) write(sent);
    if (typeof done === "function") queueMicrotask(done as () => void);
    if (left === 0 && !isSilent) setImmediate(() => socket.destroy());
    return true;
  }) as typeof socket.write;
}

/** Every byte arrives, in pieces of any size. */
function scatter(socket: TLSSocket, random: Random): void {
  const write = socket.write.bind(socket) as Write;
  socket.write = ((chunk: Uint8Array | string, ...rest: unknown[]) => {
    const buffer =
      typeof chunk === "string" ? Buffer.from(chunk, rest[0] as BufferEncoding) : Buffer.from(chunk);
    const cut = random.below(buffer.length + 1, "cut");
    if (cut > 0) write(buffer.subarray(0, cut));
    const done = rest.at(-1);
    return typeof done === "function" ? write(buffer.subarray(cut), done) : write(buffer.subarray(cut));
  }) as typeof socket.write;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  client: KubeClient,
  random: Random,
): Promise<void> {
  const query = new URL(request.url ?? "/", "https://adversary").searchParams;
  const gone = new AbortController();
  response.on("close", () => gone.abort(new Error("the client is gone")));
  const text = (name: string) => query.get(name) ?? undefined;
  response.setHeader("content-type", "application/json");
  try {
    if (text("watch") === undefined) {
      const options = { limit: text("limit") && Number(text("limit")), continue: text("continue") };
      const page = await client.list(resources.configMaps, {
        ...options,
        signal: gone.signal,
      } as ListOptions);
      const { resourceVersion } = page;
      response.end(
        JSON.stringify({ metadata: { resourceVersion, continue: page.continue ?? "" }, items: page.items }),
      );
      return;
    }
    // Half of the refusals come with a code, half inside a stream that began well.
    if (random.below(2, "headers first") === 0) response.flushHeaders();
    const options = {
      resourceVersion: text("resourceVersion") ?? "0",
      timeoutSeconds: Number(text("timeoutSeconds")),
      signal: gone.signal,
    };
    for await (const event of client.watch(resources.configMaps, options)) {
      const object =
        event.type === "BOOKMARK"
          ? { kind: "ConfigMap", metadata: { resourceVersion: event.resourceVersion } }
          : event.object;
      response.write(`${JSON.stringify({ type: event.type, object })}\n`);
    }
    response.end();
  } catch (error) {
    if (!(error instanceof KubeApiError)) response.destroy();
    else if (response.headersSent) {
      response.end(`${JSON.stringify({ type: "ERROR", object: error.status })}\n`);
    } else response.writeHead(error.code).end(JSON.stringify(error.status));
  }
}
