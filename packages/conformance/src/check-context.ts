/**
 * What a check works with: the driver's calls, names and paths of its own, and the ledger of what it makes. One
 * context a check; see `fixtures.ts` for volumes that are ready to use.
 */
import type { Clock, Host, Random } from "@longshore/runtime";
import { CheckFailure, CheckSkipped } from "./check-result.ts";
import type { ConformanceClients } from "./conformance-clients.ts";
import type { SettledOptions } from "./conformance-options.ts";
import type { DriverTarget } from "./driver-target.ts";
import type { Ledger } from "./ledger.ts";
import type { Observations } from "./observations.ts";

/** What the runner passes to a context. */
export interface CheckContextParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly host: Host;
  readonly clients: ConformanceClients;
  /** The same without secrets. */
  readonly bareClients: ConformanceClients;
  readonly target: DriverTarget;
  readonly ledger: Ledger;
  readonly observations: Observations;
  readonly signal: AbortSignal;
}

/** The context of one check. */
export class CheckContext {
  readonly #parts: CheckContextParts;
  constructor(parts: CheckContextParts) {
    this.#parts = parts;
  }

  get clients(): ConformanceClients {
    return this.#parts.clients;
  }
  /** The calls without secrets, whatever the run was given. */
  get bareClients(): ConformanceClients {
    return this.#parts.bareClients;
  }
  get identity(): ConformanceClients["identity"] {
    return this.#parts.clients.identity;
  }
  get controller(): ConformanceClients["controller"] {
    return this.#parts.clients.controller;
  }
  get groupController(): ConformanceClients["groupController"] {
    return this.#parts.clients.groupController;
  }
  get snapshotMetadata(): ConformanceClients["snapshotMetadata"] {
    return this.#parts.clients.snapshotMetadata;
  }
  get node(): ConformanceClients["node"] {
    return this.#parts.clients.node;
  }
  get target(): DriverTarget {
    return this.#parts.target;
  }
  get options(): SettledOptions {
    return this.#parts.target.options;
  }
  get host(): Host {
    return this.#parts.host;
  }
  get clock(): Clock {
    return this.#parts.clock;
  }
  get signal(): AbortSignal {
    return this.#parts.signal;
  }
  /** What all calls of the run so far have shown. */
  get observations(): Observations {
    return this.#parts.observations;
  }

  /** A name that nothing else has. */
  name(purpose: string): string {
    return `longshore-check-${purpose}-${this.#parts.random.uuid("name").slice(0, 13)}`;
  }

  /** An id that the driver cannot know, in the form of a name. */
  unknownId(purpose: string): string {
    return `longshore-check-unknown-${purpose}-${this.#parts.random.uuid("id").slice(0, 8)}`;
  }

  /** An empty directory of its own to stage a volume in. @param name its last part; default one of its own */
  async stagingPath(name = this.name("staging")): Promise<string> {
    const path = `${this.options.stagingDir}/${name}`;
    await this.#makeDirectory(path);
    return path;
  }

  /** A path whose parent is there and which is not: the driver makes it (CSI, NodePublishVolume). */
  async targetPath(name = this.name("target")): Promise<string> {
    const parent = `${this.options.targetDir}/${name}`;
    await this.#makeDirectory(parent);
    // Added after its parent and so removed before it, should the driver leave it behind.
    this.#parts.ledger.add({ kind: "directory", path: `${parent}/mount` });
    return `${parent}/mount`;
  }

  async #makeDirectory(path: string): Promise<void> {
    await this.host.makeDirectory(path);
    this.#parts.ledger.add({ kind: "directory", path });
  }

  /** Ends the driver without warning, starts it again and waits until it is ready. @throws CheckFailure when it does not come back */
  async restartDriver(): Promise<void> {
    await restarted(this.#parts, this.options);
  }

  /** Repeats `look` until it returns a value. @throws CheckFailure when that takes too long */
  async eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const { clock } = this.#parts;
    const untilMs = clock.monotonicMs() + this.options.settleTimeoutMs;
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, 5000)) {
      const found = await look();
      if (found !== undefined) return found;
      if (clock.monotonicMs() >= untilMs) {
        throw new CheckFailure(`${what} not within ${this.options.settleTimeoutMs / 1000} s`);
      }
      await clock.sleep(pauseMs, this.signal);
    }
  }

  /** Ends the check as one that could not be done. */
  skip(reason: string): never {
    throw new CheckSkipped(reason);
  }
}

/** Restarts the driver and waits until it is ready again. */
export async function restarted(
  parts: Pick<CheckContextParts, "clock" | "clients" | "signal">,
  options: SettledOptions,
): Promise<void> {
  const { clock, clients, signal } = parts;
  await options.restartDriver?.(signal);
  const untilMs = clock.monotonicMs() + options.settleTimeoutMs;
  for (;;) {
    const ready = await clients.identity.probe({}).then(
      (answer) => answer.ready !== false,
      () => false,
    );
    if (ready) {
      // The controller may be a process of its own.
      const controllerReady = await clients.controllerIdentity.probe({}).then(
        (answer) => answer.ready !== false,
        () => false,
      );
      if (controllerReady) return;
    }
    if (clock.monotonicMs() >= untilMs) {
      throw new CheckFailure(
        `the driver is not ready ${options.settleTimeoutMs / 1000} s after it was restarted`,
      );
    }
    await clock.sleep(200, signal);
  }
}
