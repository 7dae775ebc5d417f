/**
 * Leader election on a Lease: of several candidates at most one leads.
 *
 *     compete ──acquired──► lead ──lease may lapse, or lead() ended──► release ──► compete
 *
 * Invariants
 *  - The signal of `lead` aborts `renewDeadlineMs` after the beginning of the last renewal that
 *    succeeded; others wait `leaseDurationMs` from when they saw it. So two never lead at once, as
 *    long as `lead` ends promptly when its signal aborts.
 *  - The client of `lead` writes nothing after that, even when the signal is late because the process was
 *    suspended.
 *  - Durations are measured on the monotonic clock; the times in the Lease are only compared for change.
 *  - The lease is released only after `lead` has ended.
 */
import { setMaxListeners } from "node:events";
import {
  abortable,
  type Component,
  errorChain,
  type Meter,
  TaskGroup,
  type Timer,
  withDeadline,
} from "@longshore/runtime";
import type { Lease } from "kubernetes-types/coordination/v1.js";
import { createEventRecorder, type EventRecorder, involvedObject } from "../events/event-recorder.ts";
import { isAlreadyExists, isConflict, type KubeClient } from "../kube-client.ts";
import type { KubeEnv } from "../kube-env.ts";
import type { Stored } from "../kube-objects.ts";
import { resources } from "../resources.ts";
import { fencedClient, type Term } from "./fenced-client.ts";
import { LeadershipLostError } from "./leadership-lost-error.ts";
import {
  type Candidate,
  heldSpec,
  isHeldByOther,
  leaseFingerprint,
  type ObservedLease,
  releasedSpec,
} from "./lease-record.ts";

/** What is contended for, and how. */
export interface LeaderElectionOptions {
  /** Name of the Lease. */
  readonly name: string;
  readonly namespace: string;
  /** Names this candidate; unique among all. */
  readonly identity: string;
  /** Others wait so long after the last renewal they saw, in milliseconds; default 15 s. */
  readonly leaseDurationMs?: number;
  /** The leader stops leading when it cannot renew the lease for this time, in milliseconds; default 10 s. */
  readonly renewDeadlineMs?: number;
  /** Pause between attempts, in milliseconds; default 2 s. */
  readonly retryPeriodMs?: number;
  /** Whether a leader releases the lease on stop, so that others need not wait until it lapses; default true. */
  readonly releaseOnStop?: boolean;
  /** Labels of the Lease, where it is made or taken over. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether who leads, and who has ended, is recorded as events of the Lease, as client-go does; default false. */
  readonly recordEvents?: boolean;
  /**
   * The work of the leader; ends when the signal aborts. It writes through `kube`, which refuses writes once the
   * lease may have lapsed; `term` says when that is, for fencing writes to other systems than the API server.
   */
  readonly lead: (signal: AbortSignal, kube: KubeClient, term: Term) => Promise<void>;
  /** Called when leadership ended without `stop`, after `lead` has ended. */
  readonly onLost?: () => void;
}

/**
 * A running candidate. After a term it competes again. `stop` aborts the signal of `lead`, waits until it has ended,
 * releases the lease unless `releaseOnStop` is false, and resolves; it never rejects: a lease that cannot be released
 * lapses.
 */
export interface LeaderElection extends Component {
  /** True while `lead` may act. */
  isLeader(): boolean;
  /**
   * Milliseconds since the lease of a term lapsed while the term's `lead` has not ended. 0 normally; a growing value
   * means that `lead` is stuck, and only restarting its process helps.
   */
  overdueMs(): number;
}

/**
 * Competes for the lease until stopped.
 * @throws RangeError unless leaseDurationMs > renewDeadlineMs > 1.2 × retryPeriodMs
 */
export function startLeaderElection(env: KubeEnv, options: LeaderElectionOptions): LeaderElection {
  const election = new LeaseElection(env, options);
  election.start();
  return election;
}

/** Jitter of an attempt as a share of the period, to avoid synchronized retries. */
const JITTER = 0.2;

/** How long events of the election may take when the candidate stops, in milliseconds: a stop does not wait longer for them. */
const eventsFlushMs = 1000;

/** Only a renewal of our own can come in between, and there is at most one. */
const releaseAttemptsMax = 3;

/** Under the names of k8s.io/component-base/metrics/prometheus/clientgo/leaderelection. */
function electionMetrics(meter: Meter, name: string) {
  const labels = ["name"];
  const status = meter.gauge("leader_election_master_status", {
    help: "Whether this replica leads: 1, or 0 for one that stands by",
    labels,
  });
  const slowPaths = meter.counter("leader_election_slowpath_total", {
    help: "Renewals that had to read the lease first",
    labels,
  });
  return {
    leads: (value: boolean) => status.set(value ? 1 : 0, { name }),
    slowPath: () => slowPaths.add(1, { name }),
  };
}

class LeaseElection implements LeaderElection {
  readonly #env: KubeEnv;
  readonly #options: LeaderElectionOptions;
  readonly #candidate: Candidate;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #tasks: TaskGroup;
  readonly #metrics: { leads(value: boolean): void; slowPath(): void };
  #leading = false;
  /** When the last renewal of the present term began; undefined while `lead` does not run. */
  #renewedMs: number | undefined;
  #observed: ObservedLease | undefined;
  /** What we last wrote, while we lead. */
  #held: Stored<Lease> | undefined;
  /** Of this term: each has events of its own, so that the right to create them is enough. */
  #events: EventRecorder | undefined;

  constructor(env: KubeEnv, options: LeaderElectionOptions) {
    const { name, namespace, identity, leaseDurationMs = 15_000 } = options;
    this.#env = env;
    this.#options = options;
    this.#candidate = { name, namespace, identity, leaseDurationMs };
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryPeriodMs = options.retryPeriodMs ?? 2_000;
    if (leaseDurationMs <= this.#renewDeadlineMs || this.#renewDeadlineMs <= this.#retryPeriodMs * 1.2) {
      throw new RangeError(
        `lease ${namespace}/${name}: leaseDurationMs (${leaseDurationMs}) must be above renewDeadlineMs ` +
          `(${this.#renewDeadlineMs}), and that above 1.2 × retryPeriodMs (${this.#retryPeriodMs})`,
      );
    }
    this.#metrics = electionMetrics(env.meter, name);
    this.#metrics.leads(false);
    this.#tasks = new TaskGroup((error) => env.logger.error("leader election ended", { lease: name, error }));
  }

  start(): void {
    this.#tasks.spawn((signal) => this.#compete(signal));
  }

  isLeader(): boolean {
    return this.#leading;
  }

  overdueMs(): number {
    if (this.#renewedMs === undefined) return 0;
    const lapsesMs = this.#renewedMs + this.#candidate.leaseDurationMs;
    return Math.max(0, this.#env.clock.monotonicMs() - lapsesMs);
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    const events = this.#events;
    if (events === undefined) return;
    await withDeadline(this.#env.clock, eventsFlushMs, new AbortController().signal, (signal) =>
      events.flush(signal),
    ).catch(() => {}); // An event may be lost.
    await events.stop();
  }

  /** Says on the Lease what this candidate did; never waits and never fails. */
  #record(lease: Stored<Lease> | undefined, what: "became leader" | "stopped leading"): void {
    if (lease === undefined || this.#options.recordEvents !== true) return;
    const { name, identity } = this.#candidate;
    if (what === "became leader") {
      void this.#events?.stop();
      // Source and text are those of csi-lib-utils `leaderelection` and of client-go's LeaseLock.
      this.#events = createEventRecorder(this.#env, { component: `${name}/${identity}` });
    }
    const text = `${identity} ${what}`;
    this.#events?.event(involvedObject(resources.leases, lease), "Normal", "LeaderElection", text);
  }

  async #compete(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const acquiredMs = await this.#attempt(signal);
      if (acquiredMs !== undefined) {
        await this.#leadUntilLost(acquiredMs, signal);
        if (!signal.aborted) this.#reportLost();
      }
      await this.#pause(signal);
    }
  }

  async #leadUntilLost(acquiredMs: number, parent: AbortSignal): Promise<void> {
    const { logger, clock } = this.#env;
    const term = new AbortController();
    setMaxListeners(0, term.signal); // One listener for each write in progress: many are no leak.
    const onParentAbort = () => term.abort(parent.reason);
    parent.addEventListener("abort", onParentAbort, { once: true });
    // A signal that has aborted already calls no new listener.
    if (parent.aborted) onParentAbort();
    let expiry: Timer | undefined;
    let endsMs = 0;
    const leadUntil = (sinceMs: number) => {
      expiry?.cancel();
      this.#renewedMs = sinceMs;
      endsMs = sinceMs + this.#renewDeadlineMs;
      expiry = clock.timer(sinceMs + this.#renewDeadlineMs - clock.monotonicMs(), () => {
        this.#leading = false;
        term.abort(new LeadershipLostError(this.#options.name));
      });
    };
    this.#leading = true;
    this.#metrics.leads(true);
    leadUntil(acquiredMs);
    const lease = this.#held;
    this.#record(lease, "became leader");
    logger.info("became leader", { lease: this.#options.name, identity: this.#candidate.identity });
    const work = this.#runLead(term, {
      lease: this.#options.name,
      endsMs: () => endsMs,
      signal: term.signal,
    });
    await this.#renewUntil(term, leadUntil);
    this.#leading = false;
    await work;
    this.#record(lease, "stopped leading");
    this.#renewedMs = undefined;
    this.#metrics.leads(false);
    expiry?.cancel();
    parent.removeEventListener("abort", onParentAbort);
    if (this.#options.releaseOnStop === false && parent.aborted) this.#held = undefined;
    else await this.#release();
  }

  /** Runs `lead`; when it ends by itself, the term is over too. */
  async #runLead(control: AbortController, term: Term): Promise<void> {
    try {
      await this.#options.lead(term.signal, fencedClient(this.#env.kube, this.#env.clock, term), term);
    } catch (error) {
      if (!term.signal.aborted) this.#env.logger.error("the leader failed", { error });
    }
    this.#leading = false;
    control.abort(new LeadershipLostError(this.#options.name));
  }

  async #renewUntil(term: AbortController, leadUntil: (sinceMs: number) => void): Promise<void> {
    const signal = term.signal;
    while (!signal.aborted) {
      await this.#env.clock.sleep(this.#retryPeriodMs, signal).catch(() => {});
      if (signal.aborted) return;
      const renewedMs = await this.#attempt(signal);
      if (signal.aborted) return;
      if (renewedMs !== undefined) leadUntil(renewedMs);
      else if (this.#held === undefined) {
        // Not a failed call: someone else is in the record.
        this.#leading = false;
        term.abort(new LeadershipLostError(this.#options.name));
      }
    }
  }

  /** Takes or renews the lease. Returns when the attempt began, or undefined when the lease is not ours. */
  async #attempt(parent: AbortSignal): Promise<number | undefined> {
    // Before the call: others count from when they see the renewal, which is never earlier.
    const startedMs = this.#env.clock.monotonicMs();
    try {
      // Half the time that is left to a leader, so that after one call that hangs there is time for another.
      const ours = await withDeadline(this.#env.clock, this.#renewDeadlineMs / 2, parent, (signal) =>
        abortable(this.#takeOrRenew(signal), signal),
      );
      return ours ? startedMs : undefined;
    } catch (error) {
      if (!parent.aborted) {
        this.#env.logger.debug("lease could not be taken or renewed", {
          lease: this.#options.name,
          error: errorChain(error),
        });
      }
      return undefined;
    }
  }

  async #takeOrRenew(signal: AbortSignal): Promise<boolean> {
    if (this.#held !== undefined) {
      try {
        // As client-go: a leader renews from what it wrote last; a conflict shows that someone else has written.
        await this.#write(this.#held, signal);
        return true;
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
      this.#metrics.slowPath();
    }
    const { name, namespace } = this.#candidate;
    const lease = await this.#env.kube.get(resources.leases, { name, namespace }, { signal });
    if (lease === undefined) return await this.#create(signal);
    const nowMs = this.#env.clock.monotonicMs();
    const fingerprint = leaseFingerprint(lease);
    if (this.#observed?.fingerprint !== fingerprint) this.#observed = { fingerprint, sinceMs: nowMs };
    if (isHeldByOther(lease, this.#candidate, this.#observed, nowMs)) {
      this.#held = undefined;
      return false;
    }
    try {
      await this.#write(lease, signal);
      return true;
    } catch (error) {
      if (!isConflict(error)) throw error;
      return false;
    }
  }

  async #create(signal: AbortSignal): Promise<boolean> {
    const { name, namespace } = this.#candidate;
    this.#held = undefined;
    const lease: Lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: this.#labelled({ name, namespace }),
      spec: heldSpec(this.#candidate, undefined, this.#env.clock.now()),
    };
    try {
      this.#held = await this.#env.kube.create(resources.leases, lease, { signal });
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return false;
    }
  }

  async #write(lease: Stored<Lease>, signal: AbortSignal): Promise<void> {
    const spec = { ...lease.spec, ...heldSpec(this.#candidate, lease.spec, this.#env.clock.now()) };
    const metadata = this.#labelled(lease.metadata);
    this.#held = await this.#env.kube.update(resources.leases, { ...lease, metadata, spec }, { signal });
  }

  #labelled<M extends NonNullable<Lease["metadata"]>>(metadata: M): M {
    const { labels } = this.#options;
    return labels === undefined ? metadata : { ...metadata, labels: { ...metadata.labels, ...labels } };
  }

  /** Releases the lease if it is still ours. If the server cannot be reached, the lease lapses. */
  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    const never = new AbortController().signal;
    try {
      await withDeadline(this.#env.clock, this.#renewDeadlineMs / 2, never, (signal) =>
        abortable(this.#writeReleased(held, signal), signal),
      );
    } catch (error) {
      this.#env.logger.debug("lease could not be released", { error: errorChain(error) });
    }
  }

  /** A renewal in flight at the end of the term may still succeed: on a conflict, reads the lease and tries again. */
  async #writeReleased(held: Stored<Lease>, signal: AbortSignal): Promise<void> {
    let lease: Stored<Lease> | undefined = held;
    for (let attempt = 1; lease?.spec?.holderIdentity === this.#candidate.identity; attempt++) {
      const released: Lease = { ...lease, spec: releasedSpec(lease.spec, this.#env.clock.now()) };
      try {
        await this.#env.kube.update(resources.leases, released, { signal });
        return;
      } catch (error) {
        if (!isConflict(error) || attempt === releaseAttemptsMax) throw error;
      }
      // After the deadline the next term may have begun: a release would end it.
      signal.throwIfAborted();
      const { name, namespace } = this.#candidate;
      lease = await this.#env.kube.get(resources.leases, { name, namespace }, { signal });
      signal.throwIfAborted();
    }
  }

  #reportLost(): void {
    this.#env.logger.warn("leadership ended", { lease: this.#options.name });
    try {
      this.#options.onLost?.();
    } catch (error) {
      this.#env.logger.error("onLost failed", { error });
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const jitter = (JITTER * this.#retryPeriodMs * this.#env.random.below(1024, "election jitter")) / 1024;
    await this.#env.clock.sleep(this.#retryPeriodMs + jitter, signal).catch(() => {});
  }
}
