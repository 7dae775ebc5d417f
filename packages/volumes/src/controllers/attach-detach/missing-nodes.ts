/**
 * Since when nodes have been missing that something is attached to (docs/contract.md C2). A Node that is deleted while its machine runs is
 * made again by its agent, so nothing is taken from it at once.
 */
import type { Clock } from "@longshore/runtime";

/** How long a Node is missing before its machine counts as gone, in milliseconds: as long as a lease lasts. */
export const missingNodeMs = 40_000;

/** The nodes that were deleted of late. */
export class MissingNodes {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  readonly #deletedAtMs = new Map<string, number>();

  /** @param clock what is missing from the beginning counts from now on */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  /** Of a node that is missing, the monotonic time at which it was seen to go, in milliseconds. */
  sinceMs(nodeName: string): number {
    return this.#deletedAtMs.get(nodeName) ?? this.#startedAtMs;
  }

  deleted(nodeName: string): void {
    const nowMs = this.#clock.monotonicMs();
    // Without an entry, a node has been missing since the start: what is older need not be kept.
    for (const [name, atMs] of this.#deletedAtMs) {
      if (nowMs - atMs < missingNodeMs) break;
      this.#deletedAtMs.delete(name);
    }
    this.#deletedAtMs.delete(nodeName);
    this.#deletedAtMs.set(nodeName, nowMs);
  }
}
