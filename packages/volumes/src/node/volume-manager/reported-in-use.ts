/**
 * Which volumes stand in the `volumesInUse` that the API server has of this node, for certain and
 * for as long as no newer list without them may be on its way. Source: docs/behaviour/node-agent.md 8.
 */
export class ReportedInUse {
  #reported: ReadonlySet<string> = new Set();
  #handedOut: ReadonlySet<string> | undefined;

  /** A list is handed out to be posted: what it does not name may stop being reported any moment. */
  handOut(names: readonly string[]): void {
    this.#handedOut = new Set(names);
    this.#reported = new Set([...this.#reported].filter((name) => this.#handedOut?.has(name)));
  }

  /** This list is stored. @returns whether that makes a difference */
  posted(names: readonly string[]): boolean {
    const handedOut = this.#handedOut;
    const before = this.#reported;
    // An older list may be stored late: what the newest leaves out is about to be withdrawn.
    this.#reported = new Set(names.filter((name) => handedOut === undefined || handedOut.has(name)));
    return this.#reported.size !== before.size || [...this.#reported].some((name) => !before.has(name));
  }

  /** The stored list does not name it any more, until a newer one is posted. */
  withdraw(name: string): void {
    this.#reported = new Set([...this.#reported].filter((each) => each !== name));
  }

  has(name: string): boolean {
    return this.#reported.has(name);
  }
}
