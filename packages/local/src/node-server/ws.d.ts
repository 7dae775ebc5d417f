/** What this package uses of the library, which carries no types of its own. Source: ws 8, doc/ws.md. */
declare module "ws" {
  import type { IncomingMessage } from "node:http";
  import type { Duplex } from "node:stream";

  export class WebSocket {
    /** A client; `ws+unix:SOCKET:PATH` is on a unix socket. */
    constructor(url: string, protocols: readonly string[]);
    readonly protocol: string;
    /** Messages come as Buffers while `binaryType` is the default. */
    on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): this;
    on(event: "close", listener: () => void): this;
    on(event: "open", listener: () => void): this;
    on(event: "error", listener: (error: Error) => void): this;
    send(data: Uint8Array, options: { readonly binary: true }, sent?: (error?: Error) => void): void;
    pause(): void;
    resume(): void;
    close(code?: number): void;
    terminate(): void;
  }

  export class WebSocketServer {
    constructor(options: {
      readonly noServer: true;
      readonly clientTracking: false;
      readonly perMessageDeflate: false;
      readonly maxPayload: number;
    });
    /** The lines of the answer to a handshake, to which more may be added. */
    on(event: "headers", listener: (headers: string[]) => void): this;
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      done: (connection: WebSocket) => void,
    ): void;
  }

  export function createWebSocketStream(connection: WebSocket): Duplex;
}
