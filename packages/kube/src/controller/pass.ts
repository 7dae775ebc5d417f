/**
 * One pass of a controller over one key: observe, decide, act, until an action ends it.
 *
 *     observe ──► decide ──► action of the step ──► settled, or requeueAfterMs: the pass ends
 *        ▲          ▲            │    │
 *        │          └─ observed ─┘    │ the action knows what its write returned
 *        └────────── observeAgain ────┘
 */
import type { Pass, ReconcileResult } from "../queue/work-queue.ts";

/** One step of a decision: its name, with what its action needs. */
export interface Step {
  readonly step: string;
}

/** Asks for a fresh observation. */
export interface ObserveAgain {
  readonly observeAgain: true;
}

/** Returned by an action: read the state again, then decide. */
export const observeAgain: ObserveAgain = { observeAgain: true };

/** What comes after an action: the end of the pass, a decision on what the action knows, or a fresh observation. */
export type Next<O> = ReconcileResult | { readonly observed: O } | ObserveAgain;

/** The action of each step, by the name of the step. */
export type Actions<O, S extends Step> = {
  readonly [K in S["step"]]: (
    step: Extract<S, { readonly step: K }>,
    observed: O,
    pass: Pass,
  ) => Next<O> | Promise<Next<O>>;
};

/**
 * The three parts of a controller. A pass calls them in turn, one at a time; passes of several keys may interleave at any
 * `await`, so nothing of a pass is kept outside it. What `observe` or an action throws fails the pass, which is retried
 * from a fresh observation: every action can be repeated.
 */
export interface Steps<O, S extends Step> {
  /** Reads the state that the decision needs. @returns undefined when there is nothing to decide: the object is gone */
  observe(key: string, pass: Pass): O | undefined | Promise<O | undefined>;
  /** Names the next step. Pure: it reads no clock, logs nothing, changes nothing. */
  decide(observed: O): S;
  /** Does one step each: one write, call, event or wait. */
  readonly actions: Actions<O, S>;
}

/** How a pass is walked. */
export interface WalkOptions {
  /** A pass of more steps fails, as two actions that undo each other would have it; default 32. */
  readonly stepsMax?: number;
  /** Called before each action. */
  onStep?(step: Step): void;
  /** Awaited before each observation after the first, so that it shows what the pass has written. */
  beforeObservation?(pass: Pass): Promise<void>;
}

const STEPS_MAX = 32;

/**
 * Walks one pass to its end.
 *
 * @throws what an observation or an action throws; Error when the pass takes more than `stepsMax` steps
 */
export async function walkSteps<O, S extends Step>(
  { observe, decide, actions }: Steps<O, S>,
  pass: Pass,
  options: WalkOptions = {},
): Promise<ReconcileResult> {
  const { stepsMax = STEPS_MAX, onStep, beforeObservation } = options;
  const names: string[] = [];
  // What is there at once is not awaited: most passes only look at caches and find nothing to do.
  const first = observe(pass.key, pass);
  let observed = first instanceof Promise ? await first : first;
  while (observed !== undefined) {
    const step = decide(observed);
    if (names.length === stepsMax) throw new Error(endless(pass.key, names));
    names.push(step.step);
    onStep?.(step);
    // The table has an action for each step of the union; TypeScript cannot relate the two.
    const act = actions[step.step as S["step"]] as (
      step: S,
      observed: O,
      pass: Pass,
    ) => Next<O> | Promise<Next<O>>;
    const acted = act(step, observed, pass);
    const next = acted instanceof Promise ? await acted : acted;
    if (!("observed" in next) && !("observeAgain" in next)) return next;
    pass.signal.throwIfAborted();
    if ("observed" in next) {
      observed = next.observed;
    } else {
      await beforeObservation?.(pass);
      observed = await observe(pass.key, pass);
    }
  }
  return {};
}

function endless(key: string, names: readonly string[]): string {
  return `${key}: the pass does not end after ${names.length} steps; the last: ${names.slice(-4).join(", ")}`;
}
