/**
 * Keeps what is registered equal to the registration sockets that exist. Key: the path of a socket.
 * Source: docs/behaviour/node-agent.md 1.
 */
import type { CsiConnector } from "@longshore/csi";
import {
  type Actions,
  type Controller,
  type Next,
  observeAgain,
  type Pass,
  settled,
  source,
  startController,
} from "@longshore/kube";
import {
  backoffMs,
  type Component,
  errorChain,
  type Host,
  type RuntimeEnv,
  stopAll,
} from "@longshore/runtime";
import { operationBackoff } from "../../framework/operation-backoff.ts";
import { kubeletPaths } from "../../framework/volume-host.ts";
import type { PluginCandidate, RegistrationHandler } from "./csi-registration-handler.ts";
import {
  decidePluginStep,
  type ObservedPlugin,
  type PluginStep,
  type RegistrationAttempt,
} from "./decide-plugin-step.ts";
import { type PluginSocketScan, startPluginSocketScan } from "./plugin-socket-scan.ts";
import { Registrars, type RegistrationOutcome } from "./registrars.ts";

/** The registrar presented something that cannot be registered. */
export class PluginRegistrationError extends Error {
  override readonly name = "PluginRegistrationError";
}

type Env = RuntimeEnv & { readonly host: Host; readonly connector: CsiConnector };

interface Registered {
  /** Identity of the socket through which the plugin was registered. */
  readonly identity: string;
  readonly name: string;
  readonly handler: RegistrationHandler;
  /** Its registration succeeded, and no other socket has brought the plugin since. */
  readonly serves: boolean;
}

/** How plugins are registered. */
export interface PluginRegistrationOptions {
  readonly rootDir: string;
  /** By plugin type, e.g. `CSIPlugin`. */
  readonly handlers: Readonly<Record<string, RegistrationHandler>>;
  /**
   * Whether there is something to register plugins on: as long as it is false, registrars are left waiting rather than
   * refused, since a refused one exits. Left out: always.
   */
  readonly mayRegister?: () => boolean;
}

/** A running registration of plugins. */
export interface PluginRegistration extends Component {
  /** Looks again, since `mayRegister` may have changed. */
  wake(): void;
}

/**
 * Starts looking for registration sockets below `rootDir`; returns at once. Each plugin is registered with the handler of
 * its type while its socket is there, and deregistered when that goes. A registration that fails is repeated with growing
 * delays, each socket on its own. `stop` deregisters nothing.
 */
export function startPluginRegistration(env: Env, options: PluginRegistrationOptions): PluginRegistration {
  return new RunningRegistration(env, options);
}

class RunningRegistration implements PluginRegistration {
  readonly #env: Env;
  readonly #options: PluginRegistrationOptions;
  readonly #scan: PluginSocketScan;
  readonly #registrars: Registrars;
  readonly #controller: Controller;
  readonly #registered = new Map<string, Registered>();
  /** By socket: failed registrations in a row, and when the next may begin. */
  readonly #failures = new Map<string, { readonly count: number; readonly retryAtMs: number }>();

  constructor(env: Env, options: PluginRegistrationOptions) {
    this.#env = env;
    this.#options = options;
    this.#registrars = new Registrars(env.connector);
    this.#scan = startPluginSocketScan(env, kubeletPaths.registrationDir(options.rootDir));
    this.#controller = startController<ObservedPlugin, PluginStep>(env, {
      name: "plugin_registration",
      sources: [source((wake) => this.#scan.onScan(() => this.#wakeAll(wake)))],
      // Each socket on its own: a driver that does not answer delays no other.
      workers: Number.POSITIVE_INFINITY,
      observe: (path) => this.#observe(path),
      decide: decidePluginStep,
      actions: this.#actions(),
    });
  }

  async stop(): Promise<void> {
    await stopAll([{ stop: async () => this.#registrars.closeAll() }, this.#controller, this.#scan]);
  }

  wake(): void {
    this.#wakeAll((path) => this.#controller.wake(path));
  }

  /** What is registered comes first: a driver may go from one socket and come by another in the same look. */
  #wakeAll(wake: (path: string) => void): void {
    this.#forgetOldFailures();
    for (const path of new Set([...this.#registered.keys(), ...this.#scan.sockets.keys()])) wake(path);
  }

  /** A failure counts for the next delay no longer than the longest delay. */
  #forgetOldFailures(): void {
    const nowMs = this.#nowMs();
    for (const [path, { retryAtMs }] of this.#failures)
      if (nowMs - retryAtMs > operationBackoff.maximumMs) this.#failures.delete(path);
  }

  #observe(path: string): ObservedPlugin {
    return {
      nowMs: this.#nowMs(),
      retryAtMs: this.#failures.get(path)?.retryAtMs ?? 0,
      found: this.#scan.sockets.get(path),
      registered: this.#registered.get(path)?.identity,
      mayRegister: this.#options.mayRegister?.() !== false,
      attempt: undefined,
    };
  }

  #nowMs(): number {
    return this.#env.clock.monotonicMs();
  }

  // Act

  #actions(): Actions<ObservedPlugin, PluginStep> {
    return {
      settle: () => settled,
      wait: ({ ms }) => ({ requeueAfterMs: ms }),
      deregister: (_step, _observed, pass) => this.#deregister(pass),
      ask: ({ identity }, observed, pass) => this.#attempted(observed, pass, () => this.#ask(identity, pass)),
      register: (step, observed, pass) => this.#attempted(observed, pass, () => this.#register(step, pass)),
      reportRegistered: async ({ candidate }, _observed, pass) => {
        await this.#report({ pluginRegistered: true, error: "" }, pass);
        this.#registrars.close(pass.key);
        this.#failures.delete(pass.key);
        const { name, endpoint } = candidate;
        this.#env.logger.info("plugin registered", { plugin: name, endpoint });
        // The socket may have gone meanwhile, when it was in no table that a look at the directory wakes.
        return observeAgain;
      },
      reportFailure: async ({ error }, observed, pass) => {
        const isKnown = await this.#report({ pluginRegistered: false, error: errorChain(error) }, pass);
        // A registrar that does not know of it waits for ever: it is asked again, after the back-off.
        if (!isKnown && this.#registered.get(pass.key)?.serves === false) this.#registered.delete(pass.key);
        return { observed: { ...observed, attempt: { stage: "failed", error, mayReport: false } } };
      },
      recordFailure: ({ error }, _observed, { key }) => this.#recordFailure(key, error),
    };
  }

  async #deregister({ key, signal }: Pass): Promise<Next<ObservedPlugin>> {
    const entry = this.#registered.get(key);
    if (entry === undefined) return observeAgain;
    this.#registered.delete(key);
    this.#failures.delete(key);
    const others = this.#othersOf(entry);
    if (others.some(([, { serves }]) => serves)) {
      this.#env.logger.info("socket gone of a plugin that another serves", {
        plugin: entry.name,
        socket: key,
      });
      return observeAgain;
    }
    // They are to register it once it is gone: before the first await, so that none is taken for registered.
    for (const [path] of others) this.#registered.delete(path);
    try {
      return await this.#deregisterByName(entry, key, signal);
    } finally {
      for (const [path] of others) this.#controller.wake(path);
    }
  }

  /** The other sockets that have brought the same plugin. */
  #othersOf({ name, handler }: Registered): readonly (readonly [string, Registered])[] {
    return [...this.#registered].filter(([, other]) => other.name === name && other.handler === handler);
  }

  async #deregisterByName(
    entry: Registered,
    key: string,
    signal: AbortSignal,
  ): Promise<Next<ObservedPlugin>> {
    try {
      await entry.handler.deRegisterPlugin(entry.name, signal);
    } catch (error) {
      signal.throwIfAborted();
      // The next registration overwrites what was left; it waits a little.
      this.#failures.set(key, { count: 0, retryAtMs: this.#nowMs() + operationBackoff.initialMs });
      this.#env.logger.warn("plugin_deregistration failed", { socket: key, error: errorChain(error) });
      return observeAgain;
    }
    this.#env.logger.info("plugin deregistered", { plugin: entry.name, socket: key });
    return observeAgain;
  }

  /** An attempt that fails is a matter of the decision, not of the queue. */
  async #attempted(
    observed: ObservedPlugin,
    { signal }: Pass,
    work: () => Promise<RegistrationAttempt>,
  ): Promise<Next<ObservedPlugin>> {
    try {
      return { observed: { ...observed, attempt: await work() } };
    } catch (error) {
      signal.throwIfAborted();
      // A registrar that did not answer gets no report.
      const mayReport = observed.attempt !== undefined;
      return { observed: { ...observed, attempt: { stage: "failed", error, mayReport } } };
    }
  }

  async #ask(identity: string, { key, signal }: Pass): Promise<RegistrationAttempt> {
    const { type, candidate } = await this.#registrars.ask(key, signal);
    const asked = { stage: "asked", identity, type, candidate } as const;
    try {
      this.#handlerFor(key, type, candidate);
      return { ...asked, refusal: undefined };
    } catch (error) {
      return { ...asked, refusal: { error } };
    }
  }

  async #register(
    { identity, type, candidate }: Extract<PluginStep, { readonly step: "register" }>,
    { key, signal }: Pass,
  ): Promise<RegistrationAttempt> {
    // Validated again immediately before it enters the table: another socket may have brought the driver meanwhile.
    const handler = this.#handlerFor(key, type, candidate);
    const entry = { identity, name: candidate.name, handler, serves: false };
    this.#registered.set(key, entry);
    await handler.registerPlugin(candidate, signal);
    for (const [path, other] of this.#othersOf(entry))
      this.#registered.set(path, { ...other, serves: false });
    this.#registered.set(key, { ...entry, serves: true });
    return { stage: "registered", candidate };
  }

  /** The handler that takes the plugin. @throws PluginRegistrationError for an unknown type, and what the handler refuses it with */
  #handlerFor(path: string, type: string, candidate: PluginCandidate): RegistrationHandler {
    const handler = this.#options.handlers[type];
    if (handler === undefined) {
      throw new PluginRegistrationError(`${path}: no handler for plugins of type "${type}"`);
    }
    handler.validatePlugin(candidate);
    return handler;
  }

  /** Whether the registrar has answered that it knows the outcome. */
  async #report(outcome: RegistrationOutcome, { key, signal }: Pass): Promise<boolean> {
    try {
      await this.#registrars.report(key, outcome, signal);
      return true;
    } catch (error) {
      this.#env.logger.warn("the outcome of a registration could not be reported to its registrar", {
        error: errorChain(error),
      });
      return false;
    }
  }

  #recordFailure(path: string, error: unknown): Next<ObservedPlugin> {
    this.#registrars.close(path);
    const count = (this.#failures.get(path)?.count ?? 0) + 1;
    const retryInMs = backoffMs(operationBackoff, count);
    this.#failures.set(path, { count, retryAtMs: this.#nowMs() + retryInMs });
    this.#env.logger.warn("plugin_registration failed", { socket: path, error: errorChain(error) });
    return { requeueAfterMs: retryInMs };
  }
}
