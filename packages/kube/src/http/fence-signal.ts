/**
 * A last check before a request is written to its connection. After the decision to send it, a request may still wait
 * for a credential, for the rate limit, for a free connection or for a retry. If the process is suspended meanwhile, it
 * handles pending I/O before its timers when it resumes, so the signal aborts too late. Only reading the clock right
 * before sending is safe.
 *
 * The fence is attached to the signal of the call, which every layer passes on unchanged.
 */

const fences = new WeakMap<AbortSignal, () => void>();

/** Calls `look` right before each attempt of calls with this signal. If it throws, the call fails and is not sent. */
export function fenceSignal(signal: AbortSignal, look: () => void): void {
  fences.set(signal, look);
}

/** The fence of a signal. */
export function fenceOf(signal: AbortSignal): (() => void) | undefined {
  return fences.get(signal);
}
