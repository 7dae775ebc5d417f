/** The streams of one program over SPDY: the client opens them, and says of each what it is. */
import type { Duplex } from "node:stream";
import { type Clock, withDeadline } from "@longshore/runtime";
import type { RemoteConnection } from "./remote-stream.ts";
import { type SpdyStream, serveSpdy } from "./spdy-connection.ts";

/** How long a client may take to open its streams, in milliseconds. */
const streamsTimeoutMs = 30_000;

/**
 * Serves the connection, and waits for streams of these types.
 *
 * @throws Error when the client does not open them in time, or the connection ends before
 */
export async function openProgramStreams(
  clock: Clock,
  socket: Duplex,
  head: Buffer,
  types: readonly string[],
  stopped: AbortSignal,
): Promise<RemoteConnection> {
  const streams = new Map<string, SpdyStream>();
  let onStream = () => {};
  const connection = serveSpdy(socket, head, (stream) => {
    streams.set(stream.headers.get("streamtype") ?? "", stream);
    onStream();
  });
  const ended = new AbortController();
  void connection.closed.then(() => ended.abort());
  const signal = AbortSignal.any([stopped, ended.signal]);
  await withDeadline(clock, streamsTimeoutMs, signal, async (until) => {
    while (!types.every((type) => streams.has(type))) {
      await new Promise<void>((resolve, reject) => {
        onStream = resolve;
        until.addEventListener("abort", () => reject(until.reason), { once: true });
      });
    }
  });
  return { streams, signal, close: () => connection.close() };
}
