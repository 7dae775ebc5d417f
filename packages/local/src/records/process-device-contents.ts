/** Reads a device from its beginning to its end. */
import { readSync } from "node:fs";

const chunkBytes = 1 << 20;

/** Everything on the open device. A device says its size only by its end. */
export function readDevice(file: number): Uint8Array {
  const chunks: Uint8Array[] = [];
  let at = 0;
  for (;;) {
    const chunk = new Uint8Array(chunkBytes);
    const length = readSync(file, chunk, 0, chunkBytes, at);
    if (length === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, length));
    at += length;
  }
}
