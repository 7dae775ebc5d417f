/** Runs single steps of a crossing: within their limit, reported, in the journal before and after, and patient while the API server is unreachable. */
import { type CrossingEnv, type CrossingOptions, defaultStepTimeoutMs } from "./crossing-options.ts";
import type { JournalKeeper } from "./journal-keeper.ts";
import { patiently } from "./patience.ts";
import type { Wait, WaitReport } from "./wait.ts";
import { type OnWaiting, watchStep } from "./watch-step.ts";

const pollMs = 100;
/** Looks take at most this share of the time that a step waits. */
const lookShare = 0.2;

/** The work of a step: it reports what it waits for, and ends when the signal aborts. */
export type Work<T> = (onWaiting: OnWaiting, signal: AbortSignal) => Promise<T>;

/** Which step, and of which node. */
export interface Place {
  readonly name: string;
  readonly nodeName?: string;
  /** What it waits for unless it says otherwise. */
  readonly wait: Wait;
}

/** What the work of a start needs. */
type StartOptions = Pick<CrossingOptions, "onEvent" | "stepTimeoutMs" | "isLaterTerm">;

/**
 * Work of a run before its first step, which changes nothing: it fails at once where the API server does not answer, unless
 * the run goes on after the loss of its Lease. The journal stays as it was.
 */
export function startWork<T>(
  { clock }: Pick<CrossingEnv, "clock">,
  { onEvent, stepTimeoutMs: limitMs = defaultStepTimeoutMs, isLaterTerm }: StartOptions,
  { name: step, wait }: Place,
  signal: AbortSignal,
  work: Work<T>,
): Promise<T> {
  const onWaiting = (report: WaitReport) => onEvent?.({ kind: "waiting", step, ...report });
  return watchStep(
    clock,
    { step, nodeName: undefined, limitMs, wait, onWaiting },
    signal,
    (waiting, within) =>
      isLaterTerm === true
        ? patiently(clock, waiting, within, () => work(waiting, within))
        : work(waiting, within),
  );
}

/** Runs steps until `signal` aborts. */
export class StepRunner {
  /** The steps that have come to their end. */
  readonly steps: { name: string; ms: number }[] = [];
  readonly #env: Pick<CrossingEnv, "clock">;
  readonly #options: StartOptions;
  readonly #keeper: JournalKeeper;

  constructor(env: Pick<CrossingEnv, "clock">, options: StartOptions, keeper: JournalKeeper) {
    this.#env = env;
    this.#options = options;
    this.#keeper = keeper;
  }

  /** A step as {@link startWork} has it. */
  unrecorded<T>(place: Place, signal: AbortSignal, work: Work<T>): Promise<T> {
    return this.#reported(place, () => startWork(this.#env, this.#options, place, signal, work));
  }

  /** A step: its beginning is in the journal before its work begins, and its end before it resolves. */
  step(place: Place, signal: AbortSignal, work: Work<void>): Promise<void> {
    const { name, nodeName } = place;
    const node = nodeName === undefined ? {} : { nodeName };
    const now = () => this.#env.clock.now().toISOString();
    return this.#reported(place, () =>
      this.patiently(place, signal, async (onWaiting, within) => {
        await this.#keeper.begun({ name, ...node, since: now() }, within);
        await work(onWaiting, within);
        await this.#keeper.record({ stepDone: { name, ...node, at: now() } }, within);
      }),
    );
  }

  /** Does the work within the step's limit, and again while the API server is unreachable. */
  patiently<T>(place: Place, signal: AbortSignal, work: Work<T>): Promise<T> {
    const { clock } = this.#env;
    const { name, nodeName } = place;
    const node = nodeName === undefined ? {} : { nodeName };
    this.#keeper.begin({ name, ...node, since: clock.now().toISOString() });
    const onWaiting = (report: WaitReport) => {
      const since = new Date(clock.now().getTime() - report.waitedMs).toISOString();
      this.#keeper.note({ waiting: { since, ...report.wait } });
      this.#options.onEvent?.({ kind: "waiting", step: name, ...node, ...report });
    };
    return this.#watch(place, onWaiting, signal, (waiting, within) =>
      patiently(clock, waiting, within, () => work(waiting, within)),
    );
  }

  /** Polls until `obstacle` finds none; a look that takes long, as at all volumes of a large cluster, is followed by a longer pause. */
  async until(
    onWaiting: OnWaiting,
    signal: AbortSignal,
    obstacle: () => Promise<Wait | undefined>,
  ): Promise<void> {
    const { clock } = this.#env;
    for (;;) {
      const startMs = clock.monotonicMs();
      const wait = await obstacle();
      if (wait === undefined) return;
      onWaiting(wait);
      await clock.sleep(Math.max(pollMs, (clock.monotonicMs() - startMs) / lookShare), signal);
    }
  }

  /** Reports the step's beginning and end. */
  async #reported<T>(place: Place, work: () => Promise<T>): Promise<T> {
    const { name: step, nodeName } = place;
    const node = nodeName === undefined ? {} : { nodeName };
    const startMs = this.#env.clock.monotonicMs();
    this.#options.onEvent?.({ kind: "stepStarted", step, ...node });
    const result = await work();
    const ms = Math.round(this.#env.clock.monotonicMs() - startMs);
    this.steps.push({ name: nodeName === undefined ? step : `${nodeName}: ${step}`, ms });
    this.#options.onEvent?.({ kind: "stepDone", step, ...node, ms });
    return result;
  }

  #watch<T>(
    place: Place,
    onWaiting: (report: WaitReport) => void,
    signal: AbortSignal,
    work: Work<T>,
  ): Promise<T> {
    const { name: step, nodeName, wait } = place;
    const limitMs = this.#options.stepTimeoutMs ?? defaultStepTimeoutMs;
    return watchStep(this.#env.clock, { step, nodeName, limitMs, wait, onWaiting }, signal, work);
  }
}
