/** The story of a world: its steps, what happened at each of them, and how often each kind did. */
import type { Clock } from "@longshore/runtime";
import type { SeedOptions } from "../seed-result.ts";
import { TraceHash, type TraceKind, traceLine } from "../trace.ts";
import type { FaultKind, SwarmKind } from "./swarm-plan.ts";

/** How it is followed. */
export interface StoryOptions extends Pick<SeedOptions, "onTrace"> {
  /** The run ends after this step. */
  readonly until?: number;
}

/** Of one world. */
export class WorldStory {
  /** Resolves when the step has come after which the run ends. */
  readonly stopped: Promise<void>;
  readonly #clock: Clock;
  readonly #options: StoryOptions;
  readonly #hash = new TraceHash();
  readonly #counters: Partial<Record<SwarmKind, number>> = {};
  #stop: () => void = () => {};
  #hasStopped = false;
  #steps = 0;

  constructor(clock: Clock, options: StoryOptions) {
    this.#clock = clock;
    this.#options = options;
    this.stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
  }

  get steps(): number {
    return this.#steps;
  }

  get counters(): Readonly<Partial<Record<SwarmKind, number>>> {
    return this.#counters;
  }

  get traceHash(): string {
    return this.#hash.toString();
  }

  count(kind: SwarmKind): void {
    this.#counters[kind] = (this.#counters[kind] ?? 0) + 1;
  }

  /** A fault strikes this component, or the cloud. */
  fault(kind: FaultKind, subject: string, what: string): void {
    this.count(kind);
    this.trace("call", subject, `${kind} ${what}`);
  }

  trace(kind: TraceKind, subject: string, text: string): void {
    if (this.#hasStopped) return;
    const event = { atMs: Math.round(this.#clock.monotonicMs()), step: this.#steps, kind, subject, text };
    this.#hash.add(traceLine(event));
    this.#options.onTrace?.(event);
  }

  /**
   * A step.
   *
   * @param look looks at the world after it
   * @param state says where everything stands, should the run end here
   */
  step(look: () => void, state: () => readonly string[]): void {
    if (this.#hasStopped) return;
    this.#steps++;
    look();
    if (this.#steps !== this.#options.until) return;
    for (const line of state()) this.trace("stopped", "at the end:", line);
    // What is under way goes on until its next wait: it belongs to no step any more.
    this.#hasStopped = true;
    this.#stop();
  }
}
