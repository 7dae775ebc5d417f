/**
 * The server's side of a SPDY/3.1 connection, as far as Kubernetes uses it: streams that the client opens, data both ways,
 * pings. Source: SPDY Protocol, Draft 3.1. Kubernetes clients send without regard to windows, and so does this side: the
 * socket itself holds a sender back.
 *
 * Invariants
 *  - What arrives and is not read yet is bounded: the socket is read no further.
 *  - A frame that breaks the protocol ends the connection.
 */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { InputQueue } from "./input-queue.ts";
import type { RemoteStream } from "./remote-stream.ts";
import { HeaderCoder, type SpdyHeaders } from "./spdy-headers.ts";

/** A stream that the client has opened. */
export interface SpdyStream extends RemoteStream {
  readonly headers: SpdyHeaders;
}

/** A connection; `closed` resolves when it has ended, for whatever reason. */
export interface SpdyConnection {
  readonly closed: Promise<void>;
  /** Says goaway and closes. */
  close(): Promise<void>;
}

const frameBytesMax = 1024 * 1024;
const streamsMax = 1000;
const writeBytesMax = 32 * 1024;

const control = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7 } as const;
const refusedStream = 3;
const finFlag = 1;

/** Serves the connection; `head` is what has arrived already. @param onStream called for each stream that is opened */
export function serveSpdy(
  socket: Duplex,
  head: Uint8Array,
  onStream: (stream: SpdyStream) => void,
): SpdyConnection {
  return new Connection(socket, head, onStream);
}

class Connection implements SpdyConnection {
  readonly closed: Promise<void>;
  readonly #socket: Duplex;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #coder = new HeaderCoder();
  readonly #streams = new Map<number, Stream>();
  #lastStream = 0;
  /** Frames are written one after another. */
  #writing: Promise<void> = Promise.resolve();

  constructor(socket: Duplex, head: Uint8Array, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    socket.on("error", () => {});
    this.closed = this.#read(head)
      .catch(() => {})
      .then(() => {
        for (const stream of this.#streams.values()) stream.finishInput();
        this.#streams.clear();
        this.#coder.close();
        socket.destroy();
      });
  }

  async close(): Promise<void> {
    await this.#sendControl(control.goAway, 0, () => uint32s(this.#lastStream, 0));
    this.#socket.end();
    await this.closed;
  }

  async #read(head: Uint8Array): Promise<void> {
    let bytes: Buffer = Buffer.from(head);
    bytes = await this.#takeFrames(bytes);
    for await (const chunk of this.#socket as AsyncIterable<Buffer>) {
      bytes = await this.#takeFrames(bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]));
    }
  }

  /** Handles the whole frames; returns what is left. @throws Error for a frame that is too long */
  async #takeFrames(bytes: Buffer): Promise<Buffer> {
    let at = 0;
    while (bytes.length - at >= 8) {
      const length = bytes.readUIntBE(at + 5, 3);
      if (length > frameBytesMax) throw new Error("a frame is too long");
      if (bytes.length - at < 8 + length) break;
      const first = bytes.readUInt32BE(at);
      const flags = bytes[at + 4] ?? 0;
      const body = bytes.subarray(at + 8, at + 8 + length);
      at += 8 + length;
      if (first >= 0x8000_0000) await this.#takeControl(first & 0xffff, flags, body);
      else await this.#takeData(first, flags, body);
    }
    return bytes.subarray(at);
  }

  async #takeData(id: number, flags: number, body: Buffer): Promise<void> {
    const stream = this.#streams.get(id);
    // What comes after the end of a stream was on its way.
    if (stream === undefined) return;
    if (body.length > 0) await stream.input.push(body);
    if ((flags & finFlag) !== 0) stream.finishInput();
  }

  async #takeControl(type: number, flags: number, body: Buffer): Promise<void> {
    switch (type) {
      case control.synStream:
        return this.#openStream(flags, body);
      case control.rstStream: {
        const id = body.readUInt32BE(0);
        this.#streams.get(id)?.reset();
        this.#streams.delete(id);
        return;
      }
      case control.ping:
        return this.#sendControl(control.ping, 0, () => body);
      default:
        // Settings, windows and the end of the other side ask for nothing.
        return;
    }
  }

  async #openStream(flags: number, body: Buffer): Promise<void> {
    const id = body.readUInt32BE(0) & 0x7fff_ffff;
    // Also of a stream that is refused: the block is part of the connection's compression.
    const headers = await this.#coder.decode(body.subarray(10));
    if (id <= this.#lastStream || id % 2 === 0) throw new Error("a stream has a wrong number");
    this.#lastStream = id;
    if (this.#streams.size >= streamsMax) {
      return this.#sendControl(control.rstStream, 0, () => uint32s(id, refusedStream));
    }
    const stream = new Stream(headers, {
      send: (bytes, isLast) => this.#sendData(id, bytes, isLast),
      forget: () => void this.#streams.delete(id),
    });
    this.#streams.set(id, stream);
    if ((flags & finFlag) !== 0) stream.finishInput();
    await this.#sendControl(control.synReply, 0, async () =>
      Buffer.concat([uint32s(id), await this.#coder.encode(new Map())]),
    );
    this.#onStream(stream);
  }

  async #sendData(id: number, bytes: Uint8Array, isLast: boolean): Promise<void> {
    for (let at = 0; at < bytes.length || isLast; at += writeBytesMax) {
      const part = bytes.subarray(at, at + writeBytesMax);
      const isEnd = isLast && at + writeBytesMax >= bytes.length;
      const head = uint32s(id, ((isEnd ? finFlag : 0) << 24) | part.length);
      await this.#write(async () => Buffer.concat([head, part]));
      if (isEnd) return;
    }
  }

  #sendControl(type: number, flags: number, body: () => Buffer | Promise<Buffer>): Promise<void> {
    return this.#write(async () => {
      const bytes = await body();
      return Buffer.concat([uint32s(0x8003_0000 + type, (flags << 24) | bytes.length), bytes]);
    });
  }

  /** The frame is made when it is its turn: header blocks are compressed in the order in which they are sent. */
  #write(frame: () => Promise<Buffer>): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      if (!this.#socket.writable) return;
      const bytes = await frame();
      if (!this.#socket.write(bytes)) {
        await Promise.race([once(this.#socket, "drain"), once(this.#socket, "close")]).catch(() => {});
      }
    });
    return this.#writing;
  }
}

/** What a stream uses of its connection. */
interface StreamLink {
  send(bytes: Uint8Array, isLast: boolean): Promise<void>;
  forget(): void;
}

class Stream implements SpdyStream {
  readonly headers: SpdyHeaders;
  readonly input = new InputQueue();
  readonly #link: StreamLink;
  #isOutputOver = false;

  constructor(headers: SpdyHeaders, link: StreamLink) {
    this.headers = headers;
    this.#link = link;
  }

  finishInput(): void {
    this.input.finish();
    if (this.#isOutputOver) this.#link.forget();
  }

  /** The client does not want the stream any more. */
  reset(): void {
    this.#isOutputOver = true;
    this.finishInput();
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#isOutputOver && bytes.length > 0) await this.#link.send(bytes, false);
  }

  async end(): Promise<void> {
    if (this.#isOutputOver) return;
    this.#isOutputOver = true;
    this.input.release();
    await this.#link.send(new Uint8Array(0), true);
    if (this.input.isFinished) this.#link.forget();
  }
}

function uint32s(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, 4 * i);
  return bytes;
}
