/**
 * The node's side of a WebSocket, as current kubectl opens it: for a program the first byte of each message is the number of a
 * channel, for ports the messages are pieces of a SPDY connection. Source: Kubernetes remotecommand `v4.channel.k8s.io` and
 * `v5.channel.k8s.io`, KEP-4006; RFC 6455 is the library's part.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import { InputQueue } from "./input-queue.ts";
import type { RemoteConnection, RemoteStream } from "./remote-stream.ts";

/** The protocols of programs' streams, best first. */
export const channelProtocols: readonly string[] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
/** The protocol of ports. */
export const tunnelProtocol = "SPDY/3.1+portforward.k8s.io";

/** Numbers of the channels. */
const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
/** In `v5` the client closes a channel with a message on this one, which holds its number. */
const closeChannel = 255;
/** Those on which the client sends. */
const sending: readonly string[] = ["stdin", "resize"];
const messageBytesMax = 1024 * 1024;
const normalClosure = 1000;

/** The protocols that the client offers, in its order. */
export function offeredProtocols({ headers }: IncomingMessage): readonly string[] {
  const offered = headers["sec-websocket-protocol"] ?? "";
  return offered
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

/** A request that is upgraded to one of the offered protocols. */
export interface WebSocketUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What has arrived already. */
  readonly head: Buffer;
  readonly protocol: string;
}

/**
 * Answers the handshake and opens the channels of the types, which are named as SPDY's streams are.
 *
 * @throws Error for a handshake that breaks the protocol, once it has been refused with 400 and the socket has closed
 */
export async function openChannels(
  upgrade: WebSocketUpgrade,
  types: readonly string[],
): Promise<RemoteConnection> {
  const connection = await accept(upgrade);
  const opened = new Channels(connection, types, upgrade.protocol === channelProtocols[0]);
  await opened.greet();
  return opened;
}

/** Answers the handshake; what is read and written are the bytes of the tunnel. @throws Error as {@link openChannels} */
export async function openTunnel(upgrade: WebSocketUpgrade): Promise<Duplex> {
  return createWebSocketStream(await accept(upgrade));
}

function accept({ request, socket, head, protocol }: WebSocketUpgrade): Promise<WebSocket> {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
  });
  // The name of the tunnel's protocol holds a slash, which the grammar of the header forbids: the library is not asked.
  delete request.headers["sec-websocket-protocol"];
  server.on("headers", (headers) => headers.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve, reject) => {
    socket.once("close", () => reject(new Error("the connection has ended before its handshake")));
    server.handleUpgrade(request, socket, head, resolve);
  });
}

class Channels implements RemoteConnection {
  readonly streams: ReadonlyMap<string, Channel>;
  readonly signal: AbortSignal;
  readonly #connection: WebSocket;
  readonly #closed: Promise<void>;
  readonly #byNumber: ReadonlyMap<number, Channel>;
  readonly #knowsClose: boolean;
  #taking: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(connection: WebSocket, types: readonly string[], knowsClose: boolean) {
    this.#connection = connection;
    this.#knowsClose = knowsClose;
    this.streams = new Map(types.map((type) => [type, new Channel(numberOf(type), this.#send)]));
    this.#byNumber = new Map(
      sending.flatMap((type) => {
        const channel = this.streams.get(type);
        return channel === undefined ? [] : [[channel.number, channel] as const];
      }),
    );
    const ended = new AbortController();
    this.signal = ended.signal;
    // Each is followed by a close, which ends everything.
    connection.on("error", () => {});
    connection.on("message", (message) => this.#take(message));
    this.#closed = new Promise((resolve) => {
      connection.on("close", () => {
        for (const channel of this.streams.values()) channel.input.finish();
        ended.abort();
        resolve();
      });
    });
  }

  /** An empty message, from which older clients see that the connection stands (apiserver util/wsstream). */
  async greet(): Promise<void> {
    const first = ["stdout", "stderr", "error"].find((type) => this.streams.has(type));
    if (first !== undefined) await this.#send(Buffer.of(numberOf(first)));
  }

  async close(): Promise<void> {
    this.#connection.close(normalClosure);
    await this.#closed;
  }

  /** Messages are handled one after another. Those of one read come at once; further ones wait on the client's side. */
  #take(message: Buffer): void {
    this.#connection.pause();
    this.#waiting++;
    this.#taking = this.#taking
      .then(() => this.#deliver(message))
      .then(() => {
        this.#waiting--;
        if (this.#waiting === 0) this.#connection.resume();
      });
  }

  async #deliver(message: Buffer): Promise<void> {
    const [number, closed] = message;
    if (number === closeChannel) {
      if (this.#knowsClose && closed !== undefined) this.#byNumber.get(closed)?.input.finish();
    } else if (number !== undefined && message.length > 1) {
      await this.#byNumber.get(number)?.input.push(message.subarray(1));
    }
  }

  readonly #send = (message: Uint8Array): Promise<void> =>
    // A failure is that of the connection, which then closes.
    new Promise((resolve) => this.#connection.send(message, { binary: true }, () => resolve()));
}

function numberOf(type: string): number {
  const number = (channels as Readonly<Record<string, number>>)[type];
  if (number === undefined) throw new Error(`no channel carries "${type}"`);
  return number;
}

class Channel implements RemoteStream {
  readonly number: number;
  readonly input = new InputQueue();
  readonly #send: (message: Uint8Array) => Promise<void>;
  #isOver = false;

  constructor(number: number, send: (message: Uint8Array) => Promise<void>) {
    this.number = number;
    this.#send = send;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#isOver && bytes.length > 0) await this.#send(Buffer.concat([Buffer.of(this.number), bytes]));
  }

  /** The protocol has no end of one channel towards the client: it ends with the connection. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.input.release();
  }
}
