/** Streams between a client and a node, whatever protocol carries them. */

/** One of a client's streams. */
export interface RemoteStream {
  /** What the client sends; ends when it closes its side, or with the connection. One reader. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Sends bytes; resolves once there is room for more. Without effect after the end. */
  write(bytes: Uint8Array): Promise<void>;
  /** Closes this side. */
  end(): Promise<void>;
}

/** A connection with the streams of one program, by their types. */
export interface RemoteConnection {
  readonly streams: ReadonlyMap<string, RemoteStream>;
  /** Aborts when the connection has ended, for whatever reason. */
  readonly signal: AbortSignal;
  /** Says that it ends, and closes. */
  close(): Promise<void>;
}
