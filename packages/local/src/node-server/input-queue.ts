/** What a client has sent on one stream and is not read yet. Bounded: the sender of {@link InputQueue.push} waits for room. */

/** Bytes that are not read yet, beyond which the sender waits. */
const queuedBytesMax = 256 * 1024;

/** One reader, one sender. */
export class InputQueue implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isFinished = false;
  #isReleased = false;
  #onMore = () => {};
  #onRoom = () => {};

  /** Whether there is nothing more to come. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#bytes -= chunk.length;
        this.#onRoom();
        yield chunk;
      } else if (this.#isFinished) return;
      else {
        await new Promise<void>((resolve) => {
          this.#onMore = resolve;
        });
      }
    }
  }

  /** Resolves once there is room for more. Without effect after the end. */
  async push(bytes: Uint8Array): Promise<void> {
    if (this.#isFinished) return;
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    this.#onMore();
    while (this.#bytes > queuedBytesMax && !this.#isFinished && !this.#isReleased) {
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve;
      });
    }
  }

  /** Nothing more will come. */
  finish(): void {
    this.#isFinished = true;
    this.#onMore();
    this.#onRoom();
  }

  /** The reader may have gone: the sender waits for it no longer. */
  release(): void {
    this.#isReleased = true;
    this.#onRoom();
  }
}
