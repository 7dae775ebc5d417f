/**
 * Carries one unit of a run that is no volume: observe, decide, one action, until nothing is left to do. What a kind of unit looks
 * at, decides and does is given; the journal, the waits and the bounds are the same for all.
 */
import { isAlreadyExists, isConflict, isNotFound, type KubeClient } from "@longshore/kube";
import { backoffMs, type Host } from "@longshore/runtime";
import { defaultStepTimeoutMs } from "../../crossing/crossing-options.ts";
import type { JournalStore } from "../../crossing/journal-store.ts";
import { patiently } from "../../crossing/patience.ts";
import { waitFor } from "../../crossing/waits.ts";
import { type OnWaiting, watchStep } from "../../crossing/watch-step.ts";
import type { ConversionEnv, ConversionRunOptions } from "../conversion-options.ts";
import type { ConversionDirection, Refusal } from "../conversion-types.ts";
import { countedClient } from "../counted-client.ts";
import { ConversionBlockedError } from "../volume-run.ts";

/** What the journal of every unit holds. */
export interface UnitJournal<Step extends string = string> {
  readonly version: 1;
  readonly clusterId: string;
  readonly direction: ConversionDirection;
  /** Step that was begun last; its outcome may be unknown. */
  readonly begun?: { readonly step: Step; readonly at: string };
  /** Steps that have come to their end, in order, of both directions. */
  readonly done: readonly {
    readonly direction: ConversionDirection;
    readonly step: Step;
    readonly at: string;
  }[];
  readonly finishedAt?: string;
  /** API requests that the unit has cost. */
  readonly requests: number;
  /** How often it was written. */
  readonly writes?: number;
}

/** What is to be done next with a unit. */
export type UnitDecision<Step extends string> =
  | { readonly kind: "step"; readonly step: Step; readonly why: string }
  | { readonly kind: "done" }
  /** Nothing may be done: the cluster is in a state that the conversion did not make. */
  | { readonly kind: "blocked"; readonly refusal: Refusal };

/** Where an action writes. */
export interface UnitPlaces {
  readonly kube: KubeClient;
  readonly host: Host;
  /** Where objects are saved before they are removed. */
  readonly backupDir: string | undefined;
}

/** What a kind of unit looks at, decides and does. */
export interface UnitKind<Step extends string, Journal extends UnitJournal<Step>, Seen> {
  observe(kube: KubeClient, journal: Journal, signal: AbortSignal): Promise<Seen>;
  /** Pure. */
  decide(journal: Journal, seen: Seen): UnitDecision<Step>;
  /** The steps that write; the others wait. What is returned goes into the journal before the next step begins. */
  readonly actions: {
    readonly [S in Step]?: (
      places: UnitPlaces,
      journal: Journal,
      seen: Seen,
      signal: AbortSignal,
    ) => Promise<Partial<Journal> | undefined>;
  };
  /** Steps before which the cluster is looked at once more, after the journal was written. */
  readonly dangerous: ReadonlySet<Step>;
}

const poll = { initialMs: 100, maximumMs: 2000 };
/** More steps than this are two parties that undo each other's work. */
const stepsMax = 100;

/** A unit of a run: its kind, its journal, and its name for people, such as `StatefulSet shop/web`. */
export interface Unit<Step extends string, Journal extends UnitJournal<Step>, Seen> {
  readonly kind: UnitKind<Step, Journal, Seen>;
  readonly name: string;
  readonly journal: Journal;
  readonly storeOf: (kube: KubeClient) => JournalStore<Journal>;
}

/** Carries it to the end. @throws ConversionBlockedError, StepTimeoutError, or what the client throws */
export function carryUnit<Step extends string, Journal extends UnitJournal<Step>, Seen>(
  env: ConversionEnv,
  unit: Unit<Step, Journal, Seen>,
  options: ConversionRunOptions,
  signal: AbortSignal,
): Promise<Journal> {
  return new UnitRun(env, unit, options).carry(signal);
}

class UnitRun<Step extends string, Journal extends UnitJournal<Step>, Seen> {
  readonly #env: ConversionEnv;
  readonly #kube: KubeClient;
  readonly #unit: Unit<Step, Journal, Seen>;
  readonly #options: ConversionRunOptions;
  readonly #store: JournalStore<Journal>;
  #journal: Journal;

  constructor(env: ConversionEnv, unit: Unit<Step, Journal, Seen>, options: ConversionRunOptions) {
    this.#env = env;
    this.#unit = unit;
    this.#options = options;
    this.#journal = unit.journal;
    this.#kube = countedClient(env.kube, () => {
      this.#journal = { ...this.#journal, requests: this.#journal.requests + 1 };
    });
    this.#store = unit.storeOf(this.#kube);
  }

  async carry(signal: AbortSignal): Promise<Journal> {
    const { clock } = this.#env;
    const { name } = this.#unit;
    const startMs = clock.monotonicMs();
    this.#options.onEvent?.({ kind: "volumeStarted", volume: name });
    await this.#write({}, () => {}, signal);
    for (let steps = 0; ; steps++) {
      const { seen, decision } = await this.#look(() => {}, signal);
      if (decision.kind === "blocked") throw new ConversionBlockedError(decision.refusal);
      if (decision.kind === "done") break;
      if (steps >= stepsMax) {
        throw new Error(
          `${name}: after ${stepsMax} steps it still needs "${decision.step}" (${decision.why}): see which controller or administrator changes it meanwhile`,
        );
      }
      const stepStartMs = clock.monotonicMs();
      await this.#within(decision, signal, (onWaiting, within) =>
        decision.step in this.#unit.kind.actions
          ? this.#act(decision.step, seen, onWaiting, within)
          : this.#await(decision.step, onWaiting, within),
      );
      const ms = Math.round(clock.monotonicMs() - stepStartMs);
      this.#options.onEvent?.({ kind: "stepDone", volume: name, step: decision.step, ms });
    }
    const change = { done: this.#over(), finishedAt: clock.now().toISOString() };
    await this.#write(change as Partial<Journal>, () => {}, signal);
    const { requests } = this.#journal;
    const ms = Math.round(clock.monotonicMs() - startMs);
    this.#options.onEvent?.({ kind: "volumeDone", volume: name, requests, ms });
    return this.#journal;
  }

  /** One write. Where the object has changed since, the loop looks again. */
  async #act(step: Step, seen: Seen, onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    const { clock, host } = this.#env;
    const { kind } = this.#unit;
    const done = this.#journal.begun?.step === step ? this.#journal.done : this.#over();
    const begun = { step, at: clock.now().toISOString() };
    await this.#write({ done, begun } as unknown as Partial<Journal>, onWaiting, signal);
    let current = seen;
    if (kind.dangerous.has(step)) {
      const again = await this.#look(onWaiting, signal);
      if (again.decision.kind !== "step" || again.decision.step !== step) return;
      current = again.seen;
    }
    try {
      const places = { kube: this.#kube, host, backupDir: this.#options.backupDir };
      const change = await kind.actions[step]?.(places, this.#journal, current, signal);
      this.#journal = { ...this.#journal, ...change, done: this.#over() };
    } catch (error) {
      // What was observed is not so any more: the next look says how it is.
      if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) throw error;
      await clock.sleep(backoffMs(poll, 1), signal);
    }
  }

  /** Waits until another step is due. */
  async #await(step: Step, onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    for (let looks = 1; ; looks++) {
      await this.#env.clock.sleep(backoffMs(poll, looks), signal);
      const { decision } = await this.#look(onWaiting, signal);
      if (decision.kind !== "step" || decision.step !== step) return;
      onWaiting(this.#wait(decision.why));
    }
  }

  async #look(onWaiting: OnWaiting, signal: AbortSignal) {
    const { kind } = this.#unit;
    const seen = await patiently(this.#env.clock, onWaiting, signal, () =>
      kind.observe(this.#kube, this.#journal, signal),
    );
    return { seen, decision: kind.decide(this.#journal, seen) };
  }

  /** The steps that are over, with the one that was begun last: its outcome may be unknown. */
  #over(): UnitJournal<Step>["done"] {
    return stepsOver(this.#journal);
  }

  async #write(change: Partial<Journal>, onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    this.#journal = { ...this.#journal, ...change, writes: (this.#journal.writes ?? 0) + 1 };
    await patiently(this.#env.clock, onWaiting, signal, () => this.#store.write(this.#journal, signal));
  }

  #within(
    { step, why }: { readonly step: string; readonly why: string },
    signal: AbortSignal,
    work: (onWaiting: OnWaiting, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.#env;
    const { name } = this.#unit;
    const options = {
      step: `${name}: ${step}`,
      nodeName: undefined,
      limitMs: this.#options.stepTimeoutMs ?? defaultStepTimeoutMs,
      wait: this.#wait(why),
      onWaiting: (report: Parameters<Parameters<typeof watchStep>[1]["onWaiting"]>[0]) =>
        this.#options.onEvent?.({ kind: "waiting", volume: name, step, ...report }),
    };
    return watchStep(clock, options, signal, (onWaiting, within) =>
      patiently(clock, onWaiting, within, () => work(onWaiting, within)),
    );
  }

  #wait(why: string) {
    const [kind = "", name = ""] = this.#unit.name.split(" ", 2);
    return waitFor(kind, name, why);
  }
}

/** The steps of a journal that are over, with the one that was begun last: its outcome may be unknown. */
export function stepsOver<Step extends string>(journal: UnitJournal<Step>): UnitJournal<Step>["done"] {
  const { begun, direction, done } = journal;
  const last = done.at(-1);
  if (begun === undefined) return done;
  return last?.step === begun.step && last.direction === direction && last.at === begun.at
    ? done
    : [...done, { direction, ...begun }];
}

/** True when the step was begun since the run goes in this direction. */
export function hasBegun<Step extends string>(journal: UnitJournal<Step>, step: Step): boolean {
  return journal.begun?.step === step || hasDone(journal, step);
}

/** True when the step has come to its end since the run goes in this direction. */
export function hasDone<Step extends string>({ done, direction }: UnitJournal<Step>, step: Step): boolean {
  const turn = done.findLastIndex((each) => each.direction !== direction);
  return done.slice(turn + 1).some((each) => each.step === step);
}
