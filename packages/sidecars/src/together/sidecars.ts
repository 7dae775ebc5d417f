/**
 * Several sidecars in one process: one connection to the driver, one cache a resource, a lease for each.
 *
 *     learn the driver ──► each sidecar it has a use for: (win its lease ──►) serve ──► stop
 *
 * Invariants
 *  - A lease has the reference's name, so that a replica of the reference and one of ours never both lead.
 *  - Losing one lease stops that sidecar alone, which then competes again.
 *  - Caches outlive leases: they are filled when the first lease that needs them is won, and kept.
 */
import {
  ComponentScope,
  type LeasePolicy,
  type SharedInformers,
  sharedInformers,
  startUnderLease,
} from "@longshore/kube";
import { type Component, stopAll, TaskGroup } from "@longshore/runtime";
import { leaseName } from "@longshore/storage";
import { fencedConnection } from "../common/fenced-connection.ts";
import { type Driver, learnDriver, type SidecarEnv } from "../common/sidecar-env.ts";
import { UnsupportedByDriverError } from "../common/unsupported-by-driver-error.ts";
import {
  type SidecarKind,
  type SidecarName,
  type SidecarOptions,
  sidecarKinds,
  sidecarNames,
} from "./sidecar-kinds.ts";

/** Which sidecars run, and how. */
export interface SidecarsOptions {
  /** The sidecars to run, each with its options: `{ attacher: {}, provisioner: {} }`. */
  readonly sidecars: Partial<SidecarOptions>;
  /** Contended for before anything is done; left out where there is one replica for sure. */
  readonly lease?: LeasePolicy;
  /** Deadline of the first calls to the driver, in milliseconds; default 10 s. */
  readonly timeoutMs?: number;
  /**
   * What becomes of a sidecar that the driver has no use for: it is left out, and the log says why (default). With
   * `fail` it starts anyway, as a single sidecar of the reference does; when it cannot run, all of them fail.
   */
  readonly unsupported?: "leaveOut" | "fail";
  /** What becomes of a sidecar that lost its lease: it competes again (default), or all of them fail. */
  readonly leaseLost?: "compete" | "fail";
}

/** Running sidecars. */
export interface Sidecars extends Component {
  /**
   * Settles when they cannot go on: the connection to the driver was lost, a sidecar failed. The process should then
   * exit, so that a restart connects to the driver, which may be a different one. The sidecars go on until stopped.
   */
  readonly failed: Promise<SidecarsFailedError>;
  /** Where each of the leases stands, by sidecar. */
  leases(): ReadonlyMap<SidecarName, LeaseState>;
}

/** Where the lease of one sidecar stands. */
export interface LeaseState {
  readonly isLeader: boolean;
  /** See `LeaderElection.overdueMs`. */
  readonly overdueMs: number;
}

/** Why the sidecars cannot go on. */
export class SidecarsFailedError extends Error {
  override readonly name = "SidecarsFailedError";
  readonly reason: "driverLost" | "leaseLost" | "unsupported" | "failed";
  constructor(reason: SidecarsFailedError["reason"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Starts the sidecars of the driver behind `env.csi`; they wait for it in the background. */
export function startSidecars(env: SidecarEnv, options: SidecarsOptions): Sidecars {
  const running = new RunningSidecars(env, options);
  running.start();
  return running;
}

class RunningSidecars implements Sidecars {
  readonly failed: Promise<SidecarsFailedError>;
  readonly #env: SidecarEnv;
  readonly #options: SidecarsOptions;
  readonly #timeoutMs: number;
  readonly #informers: SharedInformers;
  readonly #tasks: TaskGroup;
  readonly #parts: Component[] = [];
  readonly #leases = new Map<SidecarName, ReturnType<typeof startUnderLease>>();
  #fail: (error: SidecarsFailedError) => void = () => {};
  #offLost: () => void = () => {};

  constructor(env: SidecarEnv, options: SidecarsOptions) {
    this.#env = env;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#informers = sharedInformers(env);
    this.#tasks = new TaskGroup((error) => this.#failed(undefined, error));
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
  }

  start(): void {
    this.#offLost = this.#env.csi.onLost(() =>
      this.#fail(new SidecarsFailedError("driverLost", "Lost connection to CSI driver, exiting")),
    );
    this.#tasks.spawn(async (signal) => {
      const driver = await learnDriver(this.#env, this.#timeoutMs, signal);
      signal.throwIfAborted();
      const { name: driverName, inTreeName } = driver;
      this.#env.logger.info("the driver is ready", {
        driver: driverName,
        ...(inTreeName === undefined ? {} : { migratesFrom: inTreeName }),
      });
      await Promise.all(sidecarNames.map((name) => this.#startOne(name, driver, signal)));
    });
  }

  leases(): ReadonlyMap<SidecarName, LeaseState> {
    const states = [...this.#leases].map(
      ([name, lease]) => [name, { isLeader: lease.isLeader(), overdueMs: lease.overdueMs() }] as const,
    );
    return new Map(states);
  }

  async stop(): Promise<void> {
    this.#offLost();
    await this.#tasks.stop();
    // In parallel: each releases its lease when its own work has ended.
    await Promise.all(this.#parts.map((part) => part.stop()));
    // Last: until they have ended, the parts read the caches.
    await stopAll([this.#informers]);
  }

  async #startOne<N extends SidecarName>(name: N, driver: Driver, signal: AbortSignal): Promise<void> {
    const options: SidecarOptions[N] | undefined = this.#options.sidecars[name];
    if (options === undefined) return;
    const kind: SidecarKind<SidecarOptions[N]> = sidecarKinds[name];
    const { lease, unsupported } = this.#options;
    if (unsupported !== "fail") {
      const why = await kind.useless(driver, { signal, timeoutMs: this.#timeoutMs });
      signal.throwIfAborted();
      if (why !== undefined) return this.#leaveOut(name, why);
    }
    if (lease === undefined) {
      const scope = new ComponentScope((error) => this.#failed(name, error));
      this.#parts.push(scope);
      const context = { env: this.#env, driver, informers: this.#informers };
      scope.spawn(() => kind.serve(context, options, scope));
      return;
    }
    const election = startUnderLease(this.#env, lease, {
      lease: leaseName(name, driver.name),
      serve: (kube, term, scope) => {
        const fence = (connection: Driver["csi"]) => fencedConnection(connection, this.#env.clock, term);
        const env = { ...this.#env, kube, csi: fence(this.#env.csi) };
        const fenced = { ...driver, csi: fence(driver.csi) };
        return kind.serve({ env, driver: fenced, informers: this.#informers }, options, scope);
      },
      onLost: () => {
        if (this.#options.leaseLost !== "fail") return;
        this.#fail(new SidecarsFailedError("leaseLost", `the ${name} lost its lease`));
      },
      onFailed: (error) => this.#failed(name, error),
    });
    this.#parts.push(election);
    this.#leases.set(name, election);
  }

  #leaveOut(name: SidecarName, why: string): void {
    this.#env.logger.info(`the ${name} is left out`, { why });
    const lease = this.#leases.get(name);
    this.#leases.delete(name);
    this.#tasks.spawn(async () => lease?.stop());
  }

  #failed(name: SidecarName | undefined, error: unknown): void {
    const isUnsupported = error instanceof UnsupportedByDriverError;
    if (name !== undefined && isUnsupported && this.#options.unsupported !== "fail") {
      this.#leaveOut(name, error.message);
      return;
    }
    const message = name === undefined ? "the sidecars could not be started" : `the ${name} failed`;
    this.#env.logger.error(message, { error });
    this.#fail(new SidecarsFailedError(isUnsupported ? "unsupported" : "failed", message, { cause: error }));
  }
}
