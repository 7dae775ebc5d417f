/** One at a time for each key, in the order of asking. */

/** Serialises work by key; a failure of one does not concern the next. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs `work` when all earlier work of `key` has settled, and settles like it. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const tail = result.then(
      () => {},
      () => {},
    );
    this.#tails.set(key, tail);
    void tail.then(() => {
      // Work that came later has put its own tail there.
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    return result;
  }
}
