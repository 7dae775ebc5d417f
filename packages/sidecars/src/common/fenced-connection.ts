/**
 * A driver's connection for the term of a leader, as `fencedClient` is for the API server: no call begins once the
 * lease may have lapsed. Without this, a process that was paused and resumes could detach what its successor attached.
 */
import { CsiCallError, type CsiConnection, interceptCalls } from "@longshore/csi";
import { LeadershipLostError, type Term } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";

/** The connection with its calls fenced; one outside the term fails with CANCELLED, unanswered. */
export function fencedConnection(connection: CsiConnection, clock: Clock, term: Term): CsiConnection {
  return interceptCalls(connection, async (method, _request, _options, send) => {
    // The clock as well: after a pause of the process, nothing may have aborted the signal yet.
    if (!term.signal.aborted && clock.monotonicMs() < term.endsMs()) return send();
    throw new CsiCallError(method.name, "CANCELLED", "the lease may have lapsed", {
      answered: false,
      cause: new LeadershipLostError(term.lease),
    });
  });
}
