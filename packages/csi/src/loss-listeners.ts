/** Listeners for the loss of a connection; both forms of connection share them. */

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
  notify(): void {
    if (this.#closed) return;
    this.#lost = true;
    const notified = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of notified) listener();
  }

  /** The owner closed the connection: no listener is called any more. */
  clear(): void {
    this.#closed = true;
    this.#listeners.clear();
  }
}
