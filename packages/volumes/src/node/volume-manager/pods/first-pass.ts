/** The first look at every pod that is here when the agent begins: until it is over nothing is released. */
export class FirstPass {
  /** Pods still to be looked at; undefined before it begins. */
  #left: Set<string> | undefined;

  get hasBegun(): boolean {
    return this.#left !== undefined;
  }

  get isOver(): boolean {
    return this.#left?.size === 0;
  }

  /** Begins with these pods; once. */
  begin(podUIDs: Iterable<string>): void {
    this.#left ??= new Set(podUIDs);
  }

  /** The pod has been looked at. @returns whether it was the last one */
  done(podUID: string): boolean {
    return this.#left?.delete(podUID) === true && this.isOver;
  }
}
