/** What the cloud's state was a moment ago, for answers that lag behind as those of providers do. States are immutable. */
import type { Clock } from "@longshore/runtime";
import type { CloudState } from "./cloud-state.ts";
import type { StateFile } from "./state-file.ts";

/** The file, and the states that it had within the time that is kept. */
export class StateHistory implements StateFile {
  readonly #file: StateFile;
  readonly #clock: Clock;
  #keptMs = 0;
  /** Each with the instant from which on it held; the first one is from before the time that is kept. */
  #past: { readonly fromMs: number; readonly state: CloudState }[] = [];

  constructor(file: StateFile, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  get state(): CloudState {
    return this.#file.state;
  }

  async update(change: (state: CloudState) => CloudState): Promise<void> {
    await this.#file.update(change);
    this.#note();
  }

  /** From now on states are kept for so long. */
  keep(ms: number): void {
    if (this.#keptMs === 0) this.#past = [{ fromMs: Number.NEGATIVE_INFINITY, state: this.state }];
    this.#keptMs = Math.max(this.#keptMs, ms);
  }

  /** The state of so many milliseconds ago, as far as it is kept. */
  ago(ms: number): CloudState {
    if (ms <= 0) return this.state;
    const at = this.#clock.monotonicMs() - ms;
    return this.#past.findLast(({ fromMs }) => fromMs <= at)?.state ?? this.state;
  }

  #note(): void {
    if (this.#keptMs === 0 || this.#past.at(-1)?.state === this.state) return;
    const now = this.#clock.monotonicMs();
    this.#past.push({ fromMs: now, state: this.state });
    // What held at the beginning of the kept time is kept, too.
    const first = this.#past.findLastIndex(({ fromMs }) => fromMs <= now - this.#keptMs);
    if (first > 0) this.#past = this.#past.slice(first);
  }
}
