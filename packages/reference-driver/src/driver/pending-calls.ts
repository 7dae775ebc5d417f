/** One call at a time for each volume: a second one fails with ABORTED (CSI: operation pending), to be retried. */
import { CsiStatusError } from "@longshore/csi";

/** The volumes (or names of volumes to be) that are being worked on. Lost in a crash, as the work is. */
export class PendingCalls {
  readonly #busy = new Set<string>();

  /** @throws CsiStatusError ABORTED when another call for the same is under way */
  async alone<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy.has(what)) {
      throw new CsiStatusError("ABORTED", `another call for ${what} is under way: try again`);
    }
    this.#busy.add(what);
    try {
      return await work();
    } finally {
      this.#busy.delete(what);
    }
  }
}
