/**
 * Finds Flexvolume drivers as they are installed, replaced and removed, and hands their plugins over. A driver is asked in the
 * background: no lookup of a plugin waits for one. Source: docs/behaviour/flexvolume.md 2 and 3.
 */
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
import { backoffMs, errorChain, type Host, invariant, type RuntimeEnv, stopAll } from "@longshore/runtime";
import type { DynamicPluginProber, PluginEvent } from "../../framework/dynamic-plugin-prober.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import {
  type DriverStep,
  decideDriverStep,
  type LoadedDriver,
  type ObservedDriver,
} from "./decide-driver-step.ts";
import { FlexVolumeDriver } from "./driver-calls.ts";
import type { InstalledDriver } from "./driver-directory.ts";
import { type DriverDirectoryScan, startDriverDirectoryScan } from "./driver-directory-scan.ts";
import { defaultDriverDirectory } from "./flexvolume-names.ts";
import { flexVolumePlugin } from "./flexvolume-plugin.ts";
import { initDriver } from "./init-driver.ts";

/** The seams of a prober. */
export type FlexVolumeProberEnv = RuntimeEnv & { readonly host: Host };

/** How a prober runs. */
export interface FlexVolumeProberOptions {
  /** The driver directory; default that of kubelets. */
  readonly directory?: string;
  /** Shortest time between two looks at the directory, in milliseconds; default 1000, 0: no limit, as Kubernetes 1.20. */
  readonly minIntervalMs?: number;
}

/** Drivers that are asked at a time. */
const workers = 8;
/** Longest wait of `init` for the drivers, in milliseconds: one that hangs does not keep a component from its start. */
const initMs = 30_000;
/** How long a driver that does not work waits until it is tried again. */
const retryBackoff = { initialMs: 5_000, maximumMs: 300_000 };

/** A prober of the drivers in a directory. It does nothing before its `init`. */
export function flexVolumeProber(
  env: FlexVolumeProberEnv,
  options: FlexVolumeProberOptions = {},
): DynamicPluginProber {
  return new FlexVolumeProber(env, options);
}

class FlexVolumeProber implements DynamicPluginProber {
  readonly #env: FlexVolumeProberEnv;
  readonly #options: FlexVolumeProberOptions;
  /** By the name of the driver's directory. */
  readonly #loaded = new Map<string, LoadedDriver>();
  /** Drivers that have worked; they outlive their removal, for the volumes that are in use then. */
  readonly #drivers = new Map<string, FlexVolumeDriver>();
  /** Not taken over yet: the last one of each plugin. */
  readonly #events = new Map<string, PluginEvent>();
  #volumeHost: VolumeHost | undefined;
  #running: { readonly scan: DriverDirectoryScan; readonly controller: Controller } | undefined;
  #isStopped = false;
  /** Called after each pass. */
  #afterPass = () => {};

  constructor(env: FlexVolumeProberEnv, options: FlexVolumeProberOptions) {
    this.#env = env;
    this.#options = options;
  }

  async init(host: VolumeHost): Promise<void> {
    invariant(this.#running === undefined, "a prober is initialised once");
    if (this.#isStopped) return;
    this.#volumeHost = host;
    const { directory = defaultDriverDirectory, minIntervalMs = 1000 } = this.#options;
    const scan = startDriverDirectoryScan(this.#env, { directory, minIntervalMs });
    const controller = startController<ObservedDriver, DriverStep>(this.#env, {
      name: "flexvolume_drivers",
      workers,
      sources: [source((wake) => scan.onLook(() => this.#wakeAll(scan, wake)))],
      observe: (name) => this.#observe(scan, name),
      decide: decideDriverStep,
      actions: this.#actions(),
    });
    this.#running = { scan, controller };
    await this.#firstDrivers(scan);
  }

  probe(): readonly PluginEvent[] {
    if (this.#events.size === 0) return [];
    const events = [...this.#events.values()];
    this.#events.clear();
    return events;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#running !== undefined) await stopAll([this.#running.scan, this.#running.controller]);
    this.#afterPass();
  }

  /** Resolves when every driver of the first look has been asked, when that look fails, or after {@link initMs}. */
  #firstDrivers(scan: DriverDirectoryScan): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel();
        this.#afterPass = () => {};
        resolve();
      };
      const timer = this.#env.clock.timer(initMs, end);
      const check = () => {
        const isDone = scan.looks > 0 && [...scan.drivers.keys()].every((name) => this.#loaded.has(name));
        if (isDone || this.#isStopped) end();
      };
      this.#afterPass = check;
      scan.onLook(check);
    });
  }

  /** What is loaded comes first: a driver may go from one directory and come in another in the same look. */
  #wakeAll(scan: DriverDirectoryScan, wake: (name: string) => void): void {
    for (const name of new Set([...this.#loaded.keys(), ...scan.drivers.keys()])) wake(name);
  }

  #observe(scan: DriverDirectoryScan, name: string): ObservedDriver {
    return {
      nowMs: this.#env.clock.monotonicMs(),
      installed: scan.drivers.get(name),
      loaded: this.#loaded.get(name),
    };
  }

  // Act

  #actions(): Actions<ObservedDriver, DriverStep> {
    return {
      settle: () => settled,
      wait: ({ ms }) => ({ requeueAfterMs: ms }),
      load: ({ driver }, _observed, pass) => this.#load(driver, pass),
      drop: ({ pluginName }, _observed, { key }) => {
        this.#loaded.delete(key);
        this.#events.set(pluginName, { op: "remove", pluginName });
        this.#env.logger.info("Flexvolume driver removed", { driver: pluginName });
        return observeAgain;
      },
    };
  }

  async #load(installed: InstalledDriver, { key, signal }: Pass): Promise<Next<ObservedDriver>> {
    const { pluginName, fingerprint } = installed;
    try {
      const driver = this.#drivers.get(key) ?? new FlexVolumeDriver(this.#env, installed);
      driver.forgetUnsupported();
      const capabilities = await initDriver(driver, installed, signal);
      const plugin = flexVolumePlugin(driver, capabilities);
      if (this.#volumeHost !== undefined) await plugin.init(this.#volumeHost);
      this.#drivers.set(key, driver);
      this.#loaded.set(key, { fingerprint, pluginName, failure: undefined });
      this.#events.set(pluginName, { op: "addOrUpdate", plugin });
      this.#env.logger.info("Flexvolume driver loaded", { driver: pluginName, attach: capabilities.attach });
    } catch (error) {
      signal.throwIfAborted();
      this.#loadFailed(key, installed, error);
    }
    this.#afterPass();
    // It may have been replaced while it was asked.
    return observeAgain;
  }

  #loadFailed(key: string, { pluginName, fingerprint }: InstalledDriver, error: unknown): void {
    const before = this.#loaded.get(key);
    const count = (before?.fingerprint === fingerprint ? (before.failure?.count ?? 0) : 0) + 1;
    const retryInMs = backoffMs(retryBackoff, count);
    const retryAtMs = this.#env.clock.monotonicMs() + retryInMs;
    this.#loaded.set(key, { fingerprint, pluginName, failure: { count, retryAtMs } });
    this.#events.set(pluginName, { op: "remove", pluginName });
    const level = count === 1 ? "error" : "info";
    this.#env.logger[level]("Flexvolume driver not usable", {
      driver: pluginName,
      error: errorChain(error),
      retryInMs,
    });
  }
}
