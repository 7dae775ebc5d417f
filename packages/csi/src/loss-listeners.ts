/** Who wants to know that a connection was lost; what both forms of connection share. */

/** Listeners that are called once, when a connection is lost. */
export class LossListeners {
  readonly #listeners = new Set<() => void>();
  #lost = false;
  #closed = false;

  /** Adds a listener; calls it at once when the connection is already lost. Returns a function that removes it. */
  add(listener: () => void): () => void {
    if (this.#lost && !this.#closed) {
      listener();
      return () => {};
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The connection is lost: calls all listeners, the first time. */
  tell(): void {
    if (this.#closed) return;
    this.#lost = true;
    const told = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of told) listener();
  }

  /** The owner closed the connection: no listener is called any more. */
  clear(): void {
    this.#closed = true;
    this.#listeners.clear();
  }
}
