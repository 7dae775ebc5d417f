/**
 * A last look before a request is written to its connection. Between the decision to write and the writing a request
 * may wait: for a credential, for its turn, for a free connection, for a retry. A process that was stopped while it
 * waited goes on with what came in meanwhile before any of its timers, so an aborted signal comes too late; only a
 * look at the clock in the last moment does not.
 *
 * The fence rides on the signal of the call, which every layer between passes on as it is.
 */

const fences = new WeakMap<AbortSignal, () => void>();

/** Lets `look` be called right before each attempt of the calls with this signal; what it throws ends the call, unsent. */
export function fenceSignal(signal: AbortSignal, look: () => void): void {
  fences.set(signal, look);
}

/** The fence of a signal. */
export function fenceOf(signal: AbortSignal): (() => void) | undefined {
  return fences.get(signal);
}
