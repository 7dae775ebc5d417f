/**
 * Serving under a lease: of several replicas one works, and its work ends before another's begins.
 *
 *     compete ──► lead: serve in a scope of its own ──► lease lost or stopped ──► scope.stop() ──► compete, or stop
 *
 * Invariants
 *  - What the leader starts lives in the scope of its term: nothing of it continues in the next.
 *  - API server and driver are written to through fences, which look at the clock before each call.
 *  - What was begun is not undone: the next leader finds it in API objects and driver, and continues.
 */
import type { KubeClient } from "../kube-client.ts";
import type { KubeEnv } from "../kube-env.ts";
import { fencedClient, type Term } from "../leader-election/fenced-client.ts";
import { type LeaderElection, startLeaderElection } from "../leader-election/leader-election.ts";
import { LeadershipLostError } from "../leader-election/leadership-lost-error.ts";
import { ComponentScope } from "./component-scope.ts";

/** How replicas contend for leases; the defaults are those of the reference (docs/behaviour/sidecars.md 1). */
export interface LeasePolicy {
  readonly namespace: string;
  /** Names this replica; unique among all (the reference's is the host name). */
  readonly identity: string;
  /** Others wait so long after the last renewal they saw, in milliseconds; default 15 s. */
  readonly leaseDurationMs?: number;
  /** The leader gives up when it could not renew for so long, in milliseconds; default 10 s. */
  readonly renewDeadlineMs?: number;
  /** Pause between attempts, in milliseconds; default 5 s. */
  readonly retryPeriodMs?: number;
  /**
   * Whether a leader that stops releases the lease, so that the next need not wait (ReleaseLeaderElectionOnExit);
   * default false.
   */
  readonly releaseOnStop?: boolean;
  /** Labels of the Lease. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether who leads is recorded as events of the Lease (reason `LeaderElection`); default false. */
  readonly recordEvents?: boolean;
  /** Client for the lease alone, so that renewals never queue behind work; default that of the component. */
  readonly kube?: KubeClient;
}

/** What is done under a lease. */
export interface LedWork {
  /** Name of the Lease. */
  readonly lease: string;
  /** Begins to serve, as a `Serve` does; `kube` is fenced. */
  serve(kube: KubeClient, term: Term, scope: ComponentScope): Promise<void>;
  /** The lease was lost: all work of the term has ended, and the candidate competes again unless it is stopped. */
  onLost(): void;
  /** Serving failed for another reason. */
  onFailed(error: unknown): void;
}

/** Competes for the lease and serves while it is held, until stopped. */
export function startUnderLease(env: KubeEnv, policy: LeasePolicy, work: LedWork): LeaderElection {
  const { kube = env.kube, retryPeriodMs = 5000, releaseOnStop = false, ...rest } = policy;
  return startLeaderElection(
    { ...env, kube },
    {
      ...rest,
      name: work.lease,
      retryPeriodMs,
      releaseOnStop,
      async lead(signal, _kube, term) {
        try {
          await serveUntil(signal, (scope) =>
            // Not the election's client: work on it would delay the renewals.
            work.serve(fencedClient(env.kube, env.clock, term), term, scope),
          );
        } catch (error) {
          // A fence noticed the end of the term before the signal aborted: the election reports it.
          if (!(error instanceof LeadershipLostError)) work.onFailed(error);
        }
      },
      onLost: () => work.onLost(),
    },
  );
}

/** Serves in a scope until `signal` aborts, or a task of the scope fails; everything has ended then. */
async function serveUntil(
  signal: AbortSignal,
  serve: (scope: ComponentScope) => Promise<void>,
): Promise<void> {
  let end: (failure: { readonly error: unknown } | undefined) => void = () => {};
  const ended = new Promise<{ readonly error: unknown } | undefined>((resolve) => {
    end = resolve;
  });
  const scope = new ComponentScope((error) => end({ error }));
  const onAbort = () => {
    // Ends what waits in `serve`, too; what that still adds is stopped below.
    scope.stop().then(
      () => end(undefined),
      (error) => end({ error }),
    );
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await serve(scope);
    const failure = await ended;
    if (failure !== undefined) throw failure.error;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await scope.stop();
  }
}
