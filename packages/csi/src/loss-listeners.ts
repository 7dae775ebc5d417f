/** Who wants to know that a connection was lost; what both forms of connection share. */

/** Listeners that are told once. */
export class LossListeners {
  readonly #listeners = new Set<() => void>();
  #lost = false;
  #closed = false;

  /** Adds a listener, which is told at once where the connection has been lost already; gives its removal. */
  add(listener: () => void): () => void {
    if (this.#lost && !this.#closed) {
      listener();
      return () => {};
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The connection is lost: tells everybody, the first time. */
  tell(): void {
    if (this.#closed) return;
    this.#lost = true;
    const told = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of told) listener();
  }

  /** The connection was closed by its owner: nobody is told any more. */
  clear(): void {
    this.#closed = true;
    this.#listeners.clear();
  }
}
