/**
 * Writes pictures to one watcher. A watcher that reads slowly gets fewer pictures, never a longer
 * queue: at most one waits, and a newer one takes its place.
 */

/** Where the text goes. `write` returns false when the buffer is full; `onDrain` fires when there is room again. */
export interface TextSink {
  write(text: string): boolean;
  onDrain(listener: () => void): void;
}

/** A bounded writer. */
export interface LatestWins {
  /** Writes now, or keeps the text until there is room, in place of one that waits. */
  send(text: string): void;
  /** True while the sink is full. */
  readonly blocked: boolean;
}

/** Makes the writer. */
export function latestWins(sink: TextSink): LatestWins {
  let blocked = false;
  let waiting: string | undefined;
  const send = (text: string) => {
    if (blocked) waiting = text;
    else blocked = !sink.write(text);
  };
  sink.onDrain(() => {
    blocked = false;
    const next = waiting;
    waiting = undefined;
    if (next !== undefined) send(next);
  });
  return {
    send,
    get blocked() {
      return blocked;
    },
  };
}
