/**
 * The rounds of the health monitor: in each, every volume is looked at once; a pause follows its end. Where the driver
 * lists its volumes, a round begins with that list.
 */
import type { Wake } from "@longshore/kube";
import { abortable, type Component, periodically, type RuntimeEnv, TaskGroup } from "@longshore/runtime";
import type { VolumeHealth } from "./monitored-volume.ts";

/** How rounds run. */
export interface HealthRoundsOptions {
  /** Pause between the end of a round and the begin of the next, in milliseconds. */
  readonly periodMs: number;
  /** Lists the conditions of all volumes; left out: each volume is asked about. */
  readonly list?: (signal: AbortSignal) => Promise<ReadonlyMap<string, VolumeHealth>>;
  /** The keys of the volumes that a round looks at. */
  readonly keys: () => readonly string[];
}

/** Rounds of looks; what looks at a key says when it has. */
export class HealthRounds implements Component {
  readonly #env: RuntimeEnv;
  readonly #options: HealthRoundsOptions;
  readonly #tasks: TaskGroup;
  /** Keys that this round has not looked at. */
  readonly #left = new Set<string>();
  #listed: ReadonlyMap<string, VolumeHealth> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #ended = () => {};

  constructor(env: RuntimeEnv, options: HealthRoundsOptions) {
    this.#env = env;
    this.#options = options;
    this.#tasks = new TaskGroup((error) => env.logger.error("looking after volumes ended", { error }));
  }

  /** The conditions that this round began with; undefined: each volume is asked about. */
  get listed(): ReadonlyMap<string, VolumeHealth> | undefined {
    return this.#listed;
  }

  /** Begins rounds that wake keys, until it is stopped. */
  start(wake: Wake): void {
    const { periodMs } = this.#options;
    this.#tasks.spawn((signal) =>
      periodically(this.#env, { name: "looking after volumes", periodMs }, signal, (s) =>
        this.#round(wake, s),
      ),
    );
  }

  stop(): Promise<void> {
    return this.#tasks.stop();
  }

  /** Nothing is to be looked at for this key: it was, or the round has failed. */
  isOver(key: string): boolean {
    return this.#failure !== undefined || !this.#left.has(key);
  }

  /** The key was looked at. */
  done(key: string): void {
    this.#left.delete(key);
    if (this.#left.size === 0) this.#ended();
  }

  /** The driver cannot be asked: what is left of the round is left out. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  async #round(wake: Wake, signal: AbortSignal): Promise<void> {
    this.#listed = await this.#options.list?.(signal);
    this.#begin(this.#options.keys());
    if (this.#left.size === 0) return;
    const ended = new Promise<void>((resolve) => {
      this.#ended = resolve;
    });
    for (const key of this.#left) wake(key, "background");
    await abortable(ended, signal);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #begin(keys: readonly string[]): void {
    this.#failure = undefined;
    for (const key of keys) this.#left.add(key);
  }
}
