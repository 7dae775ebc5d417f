/**
 * One crossing at a time in a cluster, from wherever it is run: the work runs under the Lease `kube-system/longshore-crossing`. A run
 * that loses the Lease, as while the API server is unreachable, ends its work, and begins it again once it holds the Lease again: every
 * step of a crossing first looks whether it is done already.
 */
import {
  type KubeClient,
  type KubeEnv,
  type Lease,
  resources,
  type Stored,
  startLeaderElection,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { crossingNamespace } from "./journal-store.ts";
import type { Wait } from "./wait.ts";
import { waitFor } from "./waits.ts";

/** Name of the Lease. */
export const crossingLeaseName = "longshore-crossing";

/** Another process carries the cluster, or the Lease cannot be taken. */
export class CrossingLeaseError extends Error {
  override readonly name = "CrossingLeaseError";
}

/** How the work runs. */
export interface LeaseOptions {
  /** Names this process; unique among all. */
  readonly identity: string;
  /** Receives what is waited for while the Lease is not held. */
  readonly onWaiting?: (wait: Wait) => void;
}

/** Under which of its terms the work runs. */
export interface LeaseTerm {
  /** The work had begun before, and lost the Lease: what it needs is known to be there, so that it waits for an API server that is unreachable. */
  readonly isLater: boolean;
}

const object = `Lease ${crossingNamespace}/${crossingLeaseName}`;
const leaseRef = { namespace: crossingNamespace, name: crossingLeaseName };
const pollMs = 1000;
/** A server that answers and grants nothing in this time, in milliseconds, will not: another's Lease has lapsed by then. */
const grantMs = 60_000;

/**
 * Runs `work` while this process holds the Lease, again after each loss, and releases it. Writes of `kube` are refused once the Lease
 * may have lapsed. @throws CrossingLeaseError when another process renews it, or it is not granted; what `work` throws
 */
export async function underCrossingLease<T>(
  env: KubeEnv,
  { identity, onWaiting = () => {} }: LeaseOptions,
  signal: AbortSignal,
  work: (kube: KubeClient, signal: AbortSignal, term: LeaseTerm) => Promise<T>,
): Promise<T> {
  // At once: a server that does not answer, or refuses this account, is an error of the start.
  await env.kube.get(resources.leases, leaseRef, { signal });
  const ended = new AbortController();
  const within = AbortSignal.any([signal, ended.signal]);
  let isHeld = false;
  let isLater = false;
  let succeed: (result: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const outcome = new Promise<T>((resolve, reject) => {
    succeed = resolve;
    fail = reject;
  });
  const election = startLeaderElection(env, {
    ...leaseRef,
    identity,
    async lead(term, kube) {
      if (ended.signal.aborted) return;
      isHeld = true;
      try {
        succeed(await work(kube, AbortSignal.any([signal, term]), { isLater }));
      } catch (error) {
        // A lost term is followed by another one, in which the work goes on.
        if (signal.aborted || !term.aborted) fail(error);
      } finally {
        isHeld = false;
        isLater = true;
      }
    },
  });
  const watching = watchLease(env, identity, () => isHeld, onWaiting, within).catch((error: unknown) => {
    // While the work runs it ends by itself, and says how.
    if (!isHeld) fail(error);
  });
  try {
    return await outcome;
  } finally {
    ended.abort(new Error("the run has ended"));
    await watching;
    await election.stop();
  }
}

/** Looks at the Lease while this process does not hold it. @throws CrossingLeaseError when it will not come to hold it */
async function watchLease(
  { kube, clock }: KubeEnv,
  identity: string,
  isHeld: () => boolean,
  onWaiting: (wait: Wait) => void,
  signal: AbortSignal,
): Promise<never> {
  let first: Stored<Lease> | undefined;
  let grantedMs = clock.monotonicMs();
  for (;;) {
    await clock.sleep(pollMs, signal);
    if (isHeld()) {
      first = undefined;
      grantedMs = clock.monotonicMs();
      continue;
    }
    let lease: Stored<Lease> | undefined;
    try {
      lease = await kube.get(resources.leases, leaseRef, { signal });
    } catch (error) {
      if (signal.aborted) throw error;
      grantedMs = clock.monotonicMs();
      onWaiting(waitFor("API server", "", `does not answer: ${errorChain(error)}`));
      continue;
    }
    const holder = lease?.spec?.holderIdentity ?? "";
    const isOthers = holder !== "" && holder !== identity;
    if (
      isOthers &&
      first !== undefined &&
      first.spec?.renewTime !== lease?.spec?.renewTime &&
      first.spec?.holderIdentity === holder
    ) {
      throw new CrossingLeaseError(
        `${object} (spec.holderIdentity) is renewed by ${holder}, which carries the cluster: wait for its end, or end it, and run this again`,
      );
    }
    if (clock.monotonicMs() - grantedMs >= grantMs) {
      throw new CrossingLeaseError(
        `${object} cannot be taken: see that this account may get, create and update it`,
      );
    }
    onWaiting(
      waitFor(
        "Lease",
        `${crossingNamespace}/${crossingLeaseName}`,
        isOthers ? `held by ${holder}, to lapse` : "to be taken",
      ),
    );
    if (isOthers && first?.spec?.holderIdentity !== holder) first = lease;
  }
}
