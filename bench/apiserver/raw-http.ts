/**
 * One HTTP/1.1 connection over TLS, written and read by hand: the load must cost as little as can be, so that what
 * is measured is the server. One request at a time.
 */

import { connect, type TLSSocket } from "node:tls";

/** Where requests go, and the user they are sent as. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** PEM of the authority. */
  readonly ca: string;
  readonly token: string;
}

/** An answer; `body` only where it was requested. */
export interface Answer {
  readonly status: number;
  readonly bytes: number;
  readonly body: string;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly keep: boolean;
}

const CRLF = Buffer.from("\r\n");
const headEnd = Buffer.from("\r\n\r\n");

/** See the head of this file. */
export class Connection {
  readonly #socket: TLSSocket;
  readonly #target: Target;
  #waiting: Waiting | undefined;
  #pending: Buffer = Buffer.alloc(0);
  #state: "head" | "body" | "chunkSize" | "chunk" | "chunkEnd" | "trailer" = "head";
  #left = 0;
  #status = 0;
  #bytes = 0;
  #kept: Buffer[] = [];
  /** Takes the bytes of a body as they come, e.g. of a watch. */
  onData: ((data: Buffer) => void) | undefined;

  private constructor(socket: TLSSocket, target: Target) {
    this.#socket = socket;
    this.#target = target;
    socket.setNoDelay(true);
    socket.on("data", (data) => this.#read(data));
    const fail = (error?: Error) =>
      this.#waiting?.reject(error ?? new Error("the server closed the connection"));
    socket.on("error", fail);
    socket.on("close", () => fail());
  }

  static open(target: Target): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const { host, port, ca } = target;
      const socket = connect({ host, port, ca, ALPNProtocols: ["http/1.1"] }, () =>
        resolve(new Connection(socket, target)),
      );
      socket.once("error", reject);
    });
  }

  /** Sends a request; `keep`: the text of the answer is wanted too. */
  send(
    method: string,
    path: string,
    body?: Buffer,
    options: { keep?: boolean; type?: string; agent?: string } = {},
  ): Promise<Answer> {
    let head = `${method} ${path} HTTP/1.1\r\nHost: ${this.#target.host}:${this.#target.port}\r\nAuthorization: Bearer ${this.#target.token}\r\nAccept: application/json\r\nUser-Agent: ${options.agent ?? "bench/v1"}\r\n`;
    if (body !== undefined) {
      head += `Content-Type: ${options.type ?? "application/json"}\r\nContent-Length: ${body.length}\r\n`;
    }
    this.#socket.write(Buffer.concat([Buffer.from(`${head}\r\n`), ...(body === undefined ? [] : [body])]));
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject, keep: options.keep ?? false };
    });
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #read(data: Buffer): void {
    let rest = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    this.#pending = rest.subarray(0, 0);
    while (rest.length > 0) {
      switch (this.#state) {
        case "head": {
          const end = rest.indexOf(headEnd);
          if (end < 0) {
            this.#pending = rest;
            return;
          }
          this.#begin(rest.toString("latin1", 0, end).toLowerCase());
          rest = rest.subarray(end + 4);
          break;
        }
        case "body":
        case "chunk": {
          const part = rest.subarray(0, this.#left);
          this.#left -= part.length;
          this.#take(part);
          rest = rest.subarray(part.length);
          if (this.#left > 0) break;
          if (this.#state === "body") this.#end();
          else this.#state = "chunkEnd";
          break;
        }
        case "chunkEnd":
          if (rest.length < 2) {
            this.#pending = rest;
            return;
          }
          rest = rest.subarray(2);
          this.#state = "chunkSize";
          break;
        case "chunkSize": {
          const end = rest.indexOf(CRLF);
          if (end < 0) {
            this.#pending = rest;
            return;
          }
          this.#left = Number.parseInt(rest.toString("latin1", 0, end), 16);
          rest = rest.subarray(end + 2);
          this.#state = this.#left === 0 ? "trailer" : "chunk";
          break;
        }
        case "trailer":
          if (rest.length < 2) {
            this.#pending = rest;
            return;
          }
          rest = rest.subarray(2);
          this.#end();
          break;
      }
    }
  }

  #begin(head: string): void {
    this.#status = Number(head.slice(9, 12));
    this.#bytes = 0;
    this.#kept = [];
    if (head.includes("transfer-encoding: chunked")) this.#state = "chunkSize";
    else {
      this.#left = Number(/content-length: *(\d+)/.exec(head)?.[1] ?? 0);
      this.#state = "body";
      if (this.#left === 0) this.#end();
    }
  }

  #take(part: Buffer): void {
    this.#bytes += part.length;
    if (this.onData !== undefined) this.onData(part);
    else if (this.#waiting?.keep === true || this.#status >= 300) this.#kept.push(part);
  }

  #end(): void {
    this.#state = "head";
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({
      status: this.#status,
      bytes: this.#bytes,
      body: Buffer.concat(this.#kept).toString(),
    });
  }
}
