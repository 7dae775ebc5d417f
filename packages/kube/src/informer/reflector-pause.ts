/**
 * How long a reflector waits after a failed pass: a pure function of the failures. A server that restarts, or a proxy
 * in front of it, refuses or breaks connections for a while. The reflector retries soon, since a retry is cheap; the
 * pauses grow long only when that has lasted for most of a minute. After an error response the reflector waits longer
 * (client-go begins with 800 ms to 1.6 s in every case).
 */
import { type BackoffPolicy, backoffMs, type Random } from "@longshore/runtime";
import { KubeTransportError } from "../kube-client.ts";

/** No answer came. */
const unreachable: BackoffPolicy = { initialMs: 50, maximumMs: 1_000, jitter: 1 };
/** Failures with the short pauses: about forty seconds. */
const UNREACHABLE_FAILURES = 30;
/** Unreachable for longer than a restart takes. */
const unreachableForLong: BackoffPolicy = { initialMs: 2_000, maximumMs: 30_000, jitter: 0.5 };
/** The server answered with a failure, or ended a watch at once. */
const failed: BackoffPolicy = { initialMs: 500, maximumMs: 30_000, jitter: 0.5 };

/** Milliseconds to wait after `failures` failures in a row, of which `problem` was the last. */
export function reflectorPauseMs(problem: unknown, failures: number, random: Random): number {
  if (!(problem instanceof KubeTransportError)) return backoffMs(failed, failures, random);
  if (failures <= UNREACHABLE_FAILURES) return backoffMs(unreachable, failures, random);
  return backoffMs(unreachableForLong, failures - UNREACHABLE_FAILURES, random);
}
