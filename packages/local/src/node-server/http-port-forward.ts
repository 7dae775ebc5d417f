/**
 * Connections of clients to ports of a pod: `kubectl port-forward`. Source: Kubernetes portforward.k8s.io: each connection
 * has a stream for data and one for errors, with the same number. Containers share the machine's network, so a pod's port is
 * one of the machine.
 */
import { connect } from "node:net";
import type { SpdyStream } from "./spdy-connection.ts";

/** Pairs the streams of each connection, and connects it. */
export class PortForwarder {
  readonly #errors = new Map<string, SpdyStream>();

  /** Takes a stream that the client has opened: the one for errors comes first. */
  take(stream: SpdyStream): void {
    const number = stream.headers.get("requestid") ?? "";
    if (stream.headers.get("streamtype") === "error") {
      this.#errors.set(number, stream);
      return;
    }
    const errors = this.#errors.get(number);
    this.#errors.delete(number);
    void forward(stream, errors);
  }
}

async function forward(data: SpdyStream, errors: SpdyStream | undefined): Promise<void> {
  const port = Number(data.headers.get("port"));
  try {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error("the stream names no port");
    await connectPort(data, port);
  } catch (error) {
    const message = `cannot forward to port ${port}: ${(error as Error).message}`;
    await errors?.write(Buffer.from(message));
  } finally {
    await Promise.all([errors?.end(), data.end()]);
  }
}

async function connectPort(data: SpdyStream, port: number): Promise<void> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const toPort = async () => {
    for await (const bytes of data.input) {
      if (!socket.writable) return;
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
    }
    socket.end();
  };
  socket.on("error", () => {});
  void toPort();
  try {
    for await (const bytes of socket as AsyncIterable<Buffer>) await data.write(bytes);
  } finally {
    socket.destroy();
  }
}
