/**
 * What the resizer keeps about claims in memory only: how their last attempts ended. A restart loses it, at the cost of
 * one more attempt.
 */

/** The last attempt to give a claim another size, or other attributes. */
export interface Attempt {
  /** The server did not keep how far the expansion is: it is older than the field. */
  readonly classic?: boolean;
  /** The driver refused permanently, so that nothing is under way and another size or class may be tried. */
  readonly refused?: boolean;
  /** The driver expands only volumes that are not in use. */
  readonly inUse?: boolean;
  /** This size or class can never be had; not tried again before the time, in milliseconds of the monotonic clock. */
  readonly infeasible?: { readonly request: string; readonly untilMs: number };
}

/** By UID of the claim. Bounded by the claims there are: a claim that is gone is forgotten. */
export class ClaimMemory {
  readonly #attempts = new Map<string, Attempt>();

  of(uid: string): Attempt {
    return this.#attempts.get(uid) ?? {};
  }

  remember(uid: string, attempt: Attempt): void {
    this.#attempts.set(uid, attempt);
  }

  forget(uid: string): void {
    this.#attempts.delete(uid);
  }
}
