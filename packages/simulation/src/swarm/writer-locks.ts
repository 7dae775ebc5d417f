/**
 * The lock that a program takes on the file that it writes, as a database does. Two pods of one node may have a volume at the same time
 * (ReadWriteOnce is for a node), and pods on a share always may: that one of them writes is theirs to see to.
 */

/** Of all programs of one world. A share's locks hold between nodes; that no disk is on two nodes the contract's own checks look at. */
export class WriterLocks {
  /** What ends when the lock is free again. */
  readonly #held = new Map<string, Promise<void>>();

  /**
   * Does the work once no other has the lock, and has it until the work has ended.
   *
   * @param signal ends the wait
   * @throws the signal's reason when it is aborted meanwhile; what the work throws
   */
  alone(file: string, signal: AbortSignal, work: () => Promise<number>): Promise<number> {
    const before = this.#held.get(file);
    if (before !== undefined) {
      return unlessAborted(before, signal).then(() => this.alone(file, signal, work));
    }
    const working = work();
    const release = () => {
      this.#held.delete(file);
    };
    this.#held.set(file, working.then(release, release));
    return working;
  }
}

function unlessAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    return wait.then(resolve).finally(() => signal.removeEventListener("abort", abort));
  });
}
