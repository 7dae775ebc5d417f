/** Writing that waits for room. */
import type { Writable } from "node:stream";

const ends = ["drain", "close", "error"] as const;

/** Resolves once there is room for more, or no reader is left. Never rejects; the stream needs a listener of errors. */
export function writeToStream(stream: Writable, bytes: Uint8Array): Promise<void> {
  if (!stream.writable || stream.write(bytes)) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      for (const event of ends) stream.off(event, done);
      resolve();
    };
    for (const event of ends) stream.on(event, done);
  });
}
