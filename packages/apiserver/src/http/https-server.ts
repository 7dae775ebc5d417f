/**
 * The HTTPS front of a server: HTTP/2 and HTTP/1.1 on one port. Plain node:http2, no framework: every
 * path goes through one function, and watches need the response itself.
 */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest, ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { RuntimeEnv } from "@longshore/runtime";
import type { ApiServer } from "../api-server.ts";
import type { Credentials } from "../authentication/authenticator.ts";
import { type RequestLimits, requestLimitsDefault } from "./request-limits.ts";
import type { MetricsText } from "./request-metrics.ts";

/** How to serve. */
export interface HttpsOptions {
  /** Address to listen on; default the loopback address. */
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  /** The server's certificate and key, and the authority that signs client certificates; PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly clientCa: string;
  readonly limits?: Partial<RequestLimits>;
  /** Where `env.meter` can be read: requests are measured, and `/metrics` is served. Left out: neither. */
  readonly metrics?: MetricsText;
  /**
   * The unix socket on which a node answers for its containers: their logs, programs beside them, their ports. Undefined: the
   * node has none. Left out: nothing is passed on to nodes.
   */
  readonly nodeSocket?: (nodeName: string) => string | undefined;
  /** Called when an answer has been sent, for a watch when it ends. */
  readonly onAnswered?: () => void;
}

/** A server that listens. */
export interface HttpsServer {
  readonly url: string;
  readonly port: number;
  /**
   * Ends all connections and resolves when the port is free.
   * @param drainMs time that answers on their way may take until then; default 0
   */
  close(drainMs?: number): Promise<void>;
}

/** Serves `server` over HTTPS. @throws Error when it cannot listen, saying where */
export async function serveHttps(
  env: RuntimeEnv,
  server: ApiServer,
  options: HttpsOptions,
): Promise<HttpsServer> {
  // Loaded here, so that a server in process costs nothing of it.
  const { createSecureServer } = await import("node:http2");
  const { createHandler } = await import("./handler.ts");
  const host = options.host ?? "127.0.0.1";
  const limits = { ...requestLimitsDefault, ...options.limits };
  const { metrics, nodeSocket } = options;
  const more = { ...(metrics && { metrics }), ...(nodeSocket && { nodeSocket }) };
  const handling = { server, certificateOf, limits, ...more };
  const { answer: handler, upgrade } = createHandler(env, handling);
  // The handler refuses with a Status; what is longer still is cut off by the parsers.
  const headerBytesMax = limits.headerBytesMax + 16 * 1024;
  const answering = new Set<object>();
  let drained = () => {};
  const front = createSecureServer(
    {
      allowHTTP1: true,
      cert: options.certificate,
      key: options.key,
      ca: options.clientCa,
      requestCert: true,
      // A client with another authority's certificate may still have a token: `certificateOf` passes over the certificate.
      rejectUnauthorized: false,
      settings: { maxConcurrentStreams: 1000, maxHeaderListSize: headerBytesMax },
    },
    (request, response) => {
      answering.add(response);
      response.on("close", () => {
        answering.delete(response);
        if (answering.size === 0) drained();
        options.onAnswered?.();
      });
      void handler(request, response);
    },
  );
  // Of HTTP/1.1, whose connections read it from the server; the types do not know it.
  Object.assign(front, { maxHeaderSize: headerBytesMax });
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  front.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  // Of HTTP/1.1: programs beside containers, and their ports.
  front.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    upgrade(request, socket, head);
  });
  front.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.on("error", () => {});
  });
  front.on("sessionError", () => {});
  front.on("tlsClientError", () => {});
  await new Promise<void>((resolve, reject) => {
    front.once("error", (cause) =>
      reject(new Error(`the API server cannot listen on ${host}:${options.port}`, { cause })),
    );
    front.listen(options.port, host, resolve);
  });
  const { port } = front.address() as AddressInfo;
  return {
    port,
    url: `https://${host}:${port}`,
    close: (drainMs = 0) =>
      new Promise((resolve) => {
        front.close(() => resolve());
        // Sends GOAWAY: HTTP/2 clients begin no new requests here.
        if (drainMs > 0) for (const session of sessions) session.close();
        const cut = () => {
          limit.cancel();
          for (const session of sessions) session.destroy();
          for (const socket of sockets) socket.destroy();
        };
        const limit = env.clock.timer(drainMs, cut);
        if (answering.size === 0) cut();
        else drained = cut;
      }),
  };
}

/** The subject of a client certificate that our authority has signed. */
function certificateOf(request: IncomingMessage | Http2ServerRequest): Credentials["certificate"] {
  const socket = ((request as Http2ServerRequest).stream?.session?.socket ?? request.socket) as TLSSocket;
  if (socket.authorized !== true) return undefined;
  const { subject } = socket.getPeerCertificate();
  if (subject?.CN === undefined) return undefined;
  const groups = subject.O as string | readonly string[] | undefined;
  return {
    commonName: String(subject.CN),
    organizations: groups === undefined ? [] : typeof groups === "string" ? [groups] : groups,
  };
}
