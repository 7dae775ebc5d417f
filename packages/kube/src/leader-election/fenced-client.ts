/**
 * A client for the term of a leader: it writes only while the lease cannot have lapsed.
 *
 * The signal that ends a term is not enough: a process that was suspended for a minute may reach its next write before
 * its timers fire. The fence reads the clock itself, before each write and again at the moment of sending. No write
 * stays in flight longer than the lease surely lasts: its signal aborts at the end of the lease. A write that was
 * already in flight when the process was suspended can still arrive late. No client can prevent that; such a write
 * carries the resource version that it was made from.
 */
import { abortable, type Clock } from "@longshore/runtime";
import { fenceSignal } from "../http/fence-signal.ts";
import { interceptWrites } from "../intercept-writes.ts";
import type { KubeClient } from "../kube-client.ts";
import { LeadershipLostError } from "./leadership-lost-error.ts";

/** Until when a term surely lasts. */
export interface Term {
  /** Name of the lease, for errors. */
  readonly lease: string;
  /** Milliseconds of the monotonic clock; moves on with each renewal, and to the past when the term ends. */
  endsMs(): number;
  /** Aborts at the end of the term. */
  readonly signal: AbortSignal;
}

/** The client with its writes fenced; a write outside the term fails with {@link LeadershipLostError}. */
export function fencedClient(kube: KubeClient, clock: Clock, term: Term): KubeClient {
  return interceptWrites(kube, async (_request, signal, send) => {
    signal.throwIfAborted();
    const look = () => {
      if (term.signal.aborted || clock.monotonicMs() >= term.endsMs())
        throw new LeadershipLostError(term.lease);
    };
    look();
    const fenced = new AbortController();
    fenceSignal(fenced.signal, look);
    const onAbort = () => fenced.abort(signal.reason);
    const onEnd = () => fenced.abort(new LeadershipLostError(term.lease));
    signal.addEventListener("abort", onAbort, { once: true });
    term.signal.addEventListener("abort", onEnd, { once: true });
    try {
      return await abortable(send(fenced.signal), fenced.signal);
    } finally {
      signal.removeEventListener("abort", onAbort);
      term.signal.removeEventListener("abort", onEnd);
    }
  });
}
