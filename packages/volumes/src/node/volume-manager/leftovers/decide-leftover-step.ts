/**
 * What comes next for a directory that reconstruction did not understand. A volume that is mounted there again is
 * known, and the directory is its own; otherwise it is unmounted by name once nothing can use it.
 *
 * Invariant: nothing is unmounted that a pod may use or is about to use.
 */

/** A directory as a pass sees it. */
export interface ObservedLeftover {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** A volume of the actual state is, for a staging directory may be, mounted there. */
  readonly isKnownAgain: boolean;
  /** No pod uses it, or may, or wants a volume that would be mounted there, or may want one that is not known. */
  readonly mayUnmount: boolean;
  /** Monotonic time in milliseconds before which it is not tried again. */
  readonly retryAtMs: number;
}

/** What comes next for a directory. */
export type LeftoverStep =
  | { readonly step: "forget" }
  | { readonly step: "unmount" }
  /** Unmounting failed: again after this time, in milliseconds. */
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "settle" };

/** Decides for a directory; pure. */
export function decideLeftoverStep(observed: ObservedLeftover): LeftoverStep {
  const { nowMs, isKnownAgain, mayUnmount, retryAtMs } = observed;
  if (isKnownAgain) return { step: "forget" };
  if (!mayUnmount) return { step: "settle" };
  return retryAtMs > nowMs ? { step: "wait", ms: retryAtMs - nowMs } : { step: "unmount" };
}
