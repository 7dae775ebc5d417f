/**
 * How long a reflector rests after a failed pass: a pure function of what failed. A server that is being started
 * again refuses connections for a moment and is asked again soon, since asking costs nobody anything; one that
 * answers with failures is left alone for longer (client-go begins with 800 ms to 1.6 s in every case).
 */
import { type BackoffPolicy, backoffMs, type Random } from "@longshore/runtime";
import { KubeTransportError } from "../client.ts";
import { wasNeverSent } from "../http/http-transport.ts";

/** Nobody listens. */
const refused: BackoffPolicy = { initialMs: 50, maximumMs: 1_000, jitter: 1 };
/** After so many refusals in a row (about a minute) the server is more than being restarted. */
const REFUSALS_FAST = 60;
/** The connection broke, or nothing came in time. */
const broken: BackoffPolicy = { initialMs: 50, maximumMs: 30_000, jitter: 1 };
/** The server answered with a failure, or ended a watch at once. */
const failed: BackoffPolicy = { initialMs: 500, maximumMs: 30_000, jitter: 0.5 };

/** Milliseconds to rest after `failures` failures in a row, of which `problem` was the last. */
export function reflectorPauseMs(problem: unknown, failures: number, random: Random): number {
  if (wasNeverSent(problem) && failures <= REFUSALS_FAST) return backoffMs(refused, failures, random);
  const policy = problem instanceof KubeTransportError ? broken : failed;
  return backoffMs(policy, failures, random);
}
