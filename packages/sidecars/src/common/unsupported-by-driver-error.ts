/** The error of a sidecar whose driver has no use for it. */

/**
 * The driver lacks what the sidecar is for. Thrown by a `Serve` before it has begun anything: a process that runs
 * this sidecar alone ends with it, one that runs several leaves this one out.
 */
export class UnsupportedByDriverError extends Error {
  override readonly name = "UnsupportedByDriverError";
}
