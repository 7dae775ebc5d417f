/**
 * Runs the checks, one after the other, each with a context and a ledger of its own that is emptied after it.
 *
 * Invariants
 *  - What a check made is removed before the next begins, and also when the run is interrupted.
 *  - A driver that is gone fails the check that lost it and skips those that follow: one cause, one failure.
 *  - No secret value is in a result.
 */
import { CsiCallError, type CsiConnection } from "@longshore/csi";
import { errorChain, foreignText, HostError, withDeadline } from "@longshore/runtime";
import type { Check } from "./check.ts";
import { CheckContext, restarted } from "./check-context.ts";
import type { CallRecord, CheckResult } from "./check-result.ts";
import { CheckSkipped, groupOf } from "./check-result.ts";
import { checks as allChecks } from "./checks/index.ts";
import { verbOf } from "./checks/verbs.ts";
import { type ConformanceClients, conformanceClients } from "./conformance-clients.ts";
import {
  type ConformanceEnv,
  type ConformanceOptions,
  type SettledOptions,
  settleOptions,
} from "./conformance-options.ts";
import { secretStripper } from "./driver-secrets.ts";
import { type DriverTarget, observeTarget } from "./driver-target.ts";
import { Ledger } from "./ledger.ts";
import { Observations } from "./observations.ts";
import { undoAll } from "./undo-all.ts";

/** The outcome of a run. */
export interface ConformanceReport {
  readonly driver: {
    readonly name: string;
    readonly vendorVersion: string;
    readonly nodeId: string;
    readonly capabilities: {
      readonly plugin: readonly string[];
      readonly controller: readonly string[];
      readonly groupController: readonly string[];
      readonly node: readonly string[];
    };
  };
  readonly results: readonly CheckResult[];
  readonly passed: number;
  readonly failed: number;
  /** Checks of a SHOULD, or of our advice, that did not hold; these do not fail the driver. */
  readonly warned: number;
  readonly skipped: number;
  /** Checks that were not run since the run was interrupted; left out: it was not. */
  readonly notRun?: number;
  /** What the suite made and could not remove, a sentence each. */
  readonly leftovers: readonly string[];
  readonly elapsedMs: number;
}

/**
 * The run was interrupted, and what it had made has been removed. `cause` is the reason of the signal; `report` has the results until
 * then, the check that was interrupted not among them.
 */
export class ConformanceInterruptedError extends Error {
  override readonly name = "ConformanceInterruptedError";
  readonly report: ConformanceReport;
  constructor(report: ConformanceReport, cause: unknown) {
    super(`interrupted: ${errorChain(cause)}`, { cause });
    this.report = report;
  }
}

/** Things that the suite made are still there; the message names them. */
export class CleanupError extends Error {
  override readonly name = "CleanupError";
}

/** How the reason begins for which checks are skipped once the driver is gone; the check that lost it follows. */
export const goneSince = "the driver has been gone since ";

/** Calls of a failed check that are reported: the last ones, which are closest to the failure. */
const callsMax = 20;
/** Characters of what a driver says of itself that are reported. */
const driverTextMax = 256;
/** How long removing may take in all, in milliseconds, however long single calls may. */
const cleanupMs = 120_000;
/** How long a driver that went away may take to be back, where something else restarts it. */
const returnMs = 10_000;

/** A run in progress: a driver that is known, and its checks. */
export class ConformanceSession {
  readonly target: DriverTarget;
  readonly #env: ConformanceEnv;
  readonly #options: SettledOptions;
  readonly #connections: readonly CsiConnection[];
  readonly #observations: Observations;
  readonly #strip: (text: string) => string;
  readonly #failedIds = new Set<string>();
  readonly #leftovers: string[] = [];
  #goneSince: string | undefined;

  private constructor(
    env: ConformanceEnv,
    options: SettledOptions,
    connections: readonly CsiConnection[],
    observations: Observations,
    target: DriverTarget,
  ) {
    this.#env = env;
    this.#options = options;
    this.#connections = connections;
    this.#observations = observations;
    this.#strip = secretStripper(options.secrets);
    this.target = target;
  }

  /**
   * Connects and asks the driver what it is.
   * @throws DriverUnreachableError when there is no driver; CsiEndpointError when the endpoint is none
   */
  static async open(
    env: ConformanceEnv,
    given: ConformanceOptions,
    signal: AbortSignal,
  ): Promise<ConformanceSession> {
    const options = settleOptions(given);
    // A driver is judged by what it says, not by what others make of it.
    const connection = env.connector.connect(options.endpoint, { answers: "raw" });
    const separate =
      options.controllerEndpoint !== undefined && options.controllerEndpoint !== options.endpoint;
    const controllerConnection = separate
      ? env.connector.connect(options.controllerEndpoint ?? options.endpoint, { answers: "raw" })
      : connection;
    const connections = separate ? [connection, controllerConnection] : [connection];
    try {
      const clients = conformanceClients({
        clock: env.clock,
        connection,
        controllerConnection,
        timeoutMs: options.timeoutMs,
        secrets: options.secrets,
        strip: secretStripper(options.secrets),
        watchers: [{ onStart: (rpc) => options.onEvent?.({ kind: "callStarted", rpc }) }],
        signal,
      });
      const target = await observeTarget(clients, options);
      signal.throwIfAborted();
      return new ConformanceSession(env, options, connections, new Observations(options.secrets), target);
    } catch (error) {
      for (const each of connections) each.close();
      signal.throwIfAborted();
      throw error;
    }
  }

  /** What the checks have made and could not remove. */
  get leftovers(): readonly string[] {
    return this.#leftovers;
  }

  /** Ends the connections. */
  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  /** Runs one check and removes what it made. @throws the signal's reason when it aborts, after the removal */
  async run(check: Check, signal: AbortSignal): Promise<CheckResult> {
    const startedMs = this.#env.clock.monotonicMs();
    const calls: CallRecord[] = [];
    const verb = verbOf(check.id);
    const end = (outcome: CheckResult["outcome"], message?: string): CheckResult => ({
      id: check.id,
      sentence: check.sentence,
      spec: check.spec,
      verb,
      outcome,
      ...(message === undefined ? {} : { message: this.#strip(message) }),
      ...(outcome === "failed" || outcome === "warned" ? { calls: calls.slice(-callsMax) } : {}),
      elapsedMs: this.#env.clock.monotonicMs() - startedMs,
    });
    const reason = this.#reasonToSkip(check);
    if (reason !== undefined) return end("skipped", reason);
    const ledger = new Ledger();
    try {
      await check.run(this.#contextOf(ledger, calls, signal));
      return end("passed");
    } catch (error) {
      // An interrupted check has no outcome: how it ended says nothing of the driver.
      signal.throwIfAborted();
      if (error instanceof CheckSkipped) return end("skipped", error.message);
      const missingRight = missingRightOf(error);
      if (missingRight !== undefined) return end("skipped", missingRight);
      this.#failedIds.add(check.id);
      if (error instanceof CsiCallError && !error.answered) {
        // A driver that is slow is still there; one whose connection broke may be restarting.
        const isBack = error.code === "DEADLINE_EXCEEDED" || (await this.#awaitReturn(signal));
        if (!isBack) this.#goneSince = check.id;
        return end("failed", lostAnswer(error, isBack));
      }
      // Only a broken MUST fails the driver; no answer at all fails it, whatever the check.
      return end(verb === "MUST" ? "failed" : "warned", errorChain(error));
    } finally {
      await this.#cleanUp(ledger);
    }
  }

  #reasonToSkip(check: Check): string | undefined {
    // Those over all answers need no driver any more.
    if (this.#goneSince !== undefined && groupOf(check.id) !== "protocol")
      return `${goneSince}${this.#goneSince}`;
    for (const need of check.needs ?? []) {
      const reason = need(this.target);
      if (reason !== undefined) return reason;
    }
    // One cause is to be one failure (decision 0014).
    const broken = check.after?.find((id) => this.#failedIds.has(id));
    return broken === undefined ? undefined : `it says nothing while ${broken} fails`;
  }

  #contextOf(ledger: Ledger, calls: CallRecord[], signal: AbortSignal): CheckContext {
    const { clock, random, host } = this.#env;
    const clients = this.#clients(signal, ledger, calls);
    return new CheckContext({
      clock,
      random,
      host,
      clients,
      bareClients: this.#clients(signal, ledger, calls, { secrets: {} }),
      target: this.target,
      ledger,
      observations: this.#observations,
      signal,
    });
  }

  #clients(
    signal: AbortSignal,
    ledger: Ledger | undefined,
    calls: CallRecord[],
    over: { readonly secrets?: Readonly<Record<string, never>> } = {},
  ): ConformanceClients {
    const { options, connection, controllerConnection } = this.#ends();
    return conformanceClients({
      clock: this.#env.clock,
      connection,
      controllerConnection,
      timeoutMs: options.timeoutMs,
      secrets: over.secrets ?? options.secrets,
      strip: this.#strip,
      watchers: [
        { onStart: (rpc) => options.onEvent?.({ kind: "callStarted", rpc }) },
        { onEnd: (_outcome, record) => void calls.push(record) },
        this.#observations,
        ...(ledger === undefined ? [] : [ledger]),
      ],
      signal,
    });
  }

  #ends() {
    const [connection] = this.#connections;
    const controllerConnection = this.#connections.at(-1);
    if (connection === undefined || controllerConnection === undefined) throw new Error("no connection");
    return { options: this.#options, connection, controllerConnection };
  }

  /** Waits for a driver that is gone, after a crash or a restart. */
  async #awaitReturn(signal: AbortSignal): Promise<boolean> {
    // Without ledger and calls: these probes are the runner's, not the check's.
    const parts = { clock: this.#env.clock, clients: this.#clients(signal, undefined, []), signal };
    const settleTimeoutMs =
      this.#options.restartDriver === undefined ? returnMs : this.#options.settleTimeoutMs;
    return restarted(parts, { ...this.#options, settleTimeoutMs }).then(
      () => true,
      () => {
        signal.throwIfAborted();
        return false;
      },
    );
  }

  async #cleanUp(ledger: Ledger): Promise<void> {
    if (ledger.size === 0) return;
    this.#options.onEvent?.({ kind: "cleaningUp", things: ledger.size });
    // Not with the run's signal: what was made is removed also when the run was interrupted.
    const { clock, host } = this.#env;
    const left = await withDeadline(clock, cleanupMs, new AbortController().signal, (signal) =>
      undoAll({ clock, host, clients: this.#clients(signal, ledger, []) }, ledger, signal),
    );
    this.#leftovers.push(...left.map((sentence) => this.#strip(sentence)));
  }
}

/** What this process may not look at says nothing about the driver. */
function missingRightOf(error: unknown): string | undefined {
  if (!(error instanceof HostError) || !["EACCES", "EPERM"].includes(error.code)) return undefined;
  return `this process may not look at what the driver makes, or change it (${error.code}): run as the driver's user`;
}

function lostAnswer(error: CsiCallError, isBack: boolean): string {
  if (error.code === "DEADLINE_EXCEEDED") return `${error.rpc} got ${error.detail}`;
  const fate = isBack ? "it answers again" : "it is gone";
  return `the driver did not answer ${error.rpc}: ${error.detail} (${fate})`;
}

/**
 * Checks a driver.
 * @throws DriverUnreachableError when there is none; ConformanceInterruptedError with the results until then when the signal aborts,
 * after everything that was made has been removed, and CleanupError instead where that was not possible
 */
export async function runConformance(
  env: ConformanceEnv,
  options: ConformanceOptions,
  signal: AbortSignal,
  checks: readonly Check[] = allChecks,
): Promise<ConformanceReport> {
  const startedMs = env.clock.monotonicMs();
  const session = await ConformanceSession.open(env, options, signal);
  const selected = checks.filter(({ id }) => options.select?.(id) ?? true);
  const results: CheckResult[] = [];
  try {
    for (const [index, check] of selected.entries()) {
      signal.throwIfAborted();
      options.onEvent?.({ kind: "checkStarted", id: check.id, index, total: selected.length });
      const result = await session.run(check, signal);
      results.push(result);
      options.onEvent?.({ kind: "checkEnded", result });
    }
  } catch (error) {
    if (session.leftovers.length > 0) {
      throw new CleanupError(`could not remove ${session.leftovers.join("; ")}`, { cause: error });
    }
    if (!signal.aborted) throw error;
    const left = selected.length - results.length;
    const report = { ...reportOf(session, results, env.clock.monotonicMs() - startedMs), notRun: left };
    throw new ConformanceInterruptedError(report, error);
  } finally {
    session.close();
  }
  return reportOf(session, results, env.clock.monotonicMs() - startedMs);
}

function reportOf(
  { target, leftovers }: ConformanceSession,
  results: readonly CheckResult[],
  elapsedMs: number,
): ConformanceReport {
  const count = (outcome: CheckResult["outcome"]) => results.filter((r) => r.outcome === outcome).length;
  return {
    driver: {
      name: foreignText(target.name, driverTextMax),
      vendorVersion: foreignText(target.vendorVersion, driverTextMax),
      nodeId: foreignText(target.nodeInfo?.nodeId ?? "", driverTextMax),
      capabilities: {
        plugin: [...target.plugin].sort(),
        controller: [...target.controller].sort(),
        groupController: [...target.groupController].sort(),
        node: [...target.node].sort(),
      },
    },
    results,
    passed: count("passed"),
    failed: count("failed"),
    warned: count("warned"),
    skipped: count("skipped"),
    leftovers,
    elapsedMs,
  };
}

/** Whether the driver keeps the contract, as far as it was looked at. */
export function isConformant(report: Pick<ConformanceReport, "failed" | "leftovers">): boolean {
  return report.failed === 0 && report.leftovers.length === 0;
}
