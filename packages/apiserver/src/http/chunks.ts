/** Puts many small pieces of an answer together to few larger ones, made only as they are requested. */

/** Bytes of a chunk: enough to make the cost of each small, few enough to hold no one up for long. */
export const chunkBytes = 128 * 1024;

/** The bytes of `parts` in chunks of {@link chunkBytes}; a longer part is a separate chunk. */
export function* inChunks(parts: Iterable<Uint8Array>): Generator<Buffer, void> {
  let chunk: Buffer | undefined;
  let used = 0;
  for (const part of parts) {
    if (chunk !== undefined && used + part.length > chunk.length) {
      // It may be on its way for a while: the next pieces get another.
      yield chunk.subarray(0, used);
      chunk = undefined;
    }
    if (part.length >= chunkBytes) {
      yield Buffer.from(part.buffer, part.byteOffset, part.length);
      continue;
    }
    if (chunk === undefined) {
      chunk = Buffer.allocUnsafe(chunkBytes);
      used = 0;
    }
    chunk.set(part, used);
    used += part.length;
  }
  if (chunk !== undefined) yield chunk.subarray(0, used);
}
