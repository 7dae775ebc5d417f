/**
 * Every flip in every state of a cluster under work. One cluster is walked from state to state until each flip that is
 * possible in each state that can be reached has been made; an order of flips, of whatever length, is a path in what that
 * yields. That histories which end in one state go on alike is what `replay-orders.ts` is for: orders on clusters of
 * their own, whose states a test compares with those of the walk.
 */
import { type Flip, flipWords, type GatePicture, possibleFlips, tourOfFlips } from "./flip.ts";
import { SkewWorld } from "./skew-world.ts";
import type { SkewOptions, Stall } from "./stall.ts";

/** A flip as it was made. */
export interface SkewEdge {
  readonly flip: Flip;
  /** Where it led to: an index into the states. */
  readonly to: number;
  /** What did not go on after it. */
  readonly stalls: readonly Stall[];
}

/** A state at rest. */
export interface SkewNode {
  readonly key: string;
  readonly gates: GatePicture;
  /** By the words of the flip. */
  readonly edges: ReadonlyMap<string, SkewEdge>;
}

/** All states and all flips between them. */
export interface SkewGraph {
  readonly options: SkewOptions;
  /** The first is where all gates are off. */
  readonly states: readonly SkewNode[];
  /** Flips that were made, those that were passed again included. */
  readonly steps: number;
  /** Virtual milliseconds. */
  readonly elapsedMs: number;
  /** What broke the contract, with the flip after which it was seen. */
  readonly violations: readonly string[];
}

/** How far an exploration is. */
export interface SkewProgress {
  readonly states: number;
  readonly flips: number;
  /** Flips that are known to be possible and were not made yet. */
  readonly open: number;
}

interface OpenNode {
  readonly key: string;
  readonly gates: GatePicture;
  readonly edges: Map<string, SkewEdge>;
  readonly open: Flip[];
}

/** Explores; ends early, with the signal's reason, when the signal aborts. */
export function exploreSkew(
  options: SkewOptions,
  hooks: { readonly signal?: AbortSignal; readonly onStep?: (progress: SkewProgress) => void } = {},
): Promise<SkewGraph> {
  return SkewWorld.play(options, false, async (world) => {
    const walk = new Walk(world, options);
    for (let flip = walk.next(); flip !== undefined; flip = walk.next()) {
      hooks.signal?.throwIfAborted();
      await walk.go(flip);
      hooks.onStep?.(walk.progress());
    }
    await world.end();
    walk.note("the end of all work");
    return walk.graph();
  });
}

class Walk {
  readonly #world: SkewWorld;
  readonly #options: SkewOptions;
  readonly #states: OpenNode[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #violations: string[] = [];
  /** What is left of the walk that makes every flip once where a state is nothing but the gates. */
  readonly #tour: Flip[];
  #here: number;
  #steps = 0;

  constructor(world: SkewWorld, options: SkewOptions) {
    this.#world = world;
    this.#options = options;
    this.#tour = [...tourOfFlips(world.gates, options.plugins)];
    this.note("the start");
    this.#here = this.#arrive();
  }

  /** The next step of the tour; after it, one of the way to the nearest flip that was not made; undefined when all were. */
  next(): Flip | undefined {
    return this.#tour.shift() ?? this.#toNearest();
  }

  #toNearest(): Flip | undefined {
    const seen = new Set([this.#here]);
    let border: { readonly at: number; readonly first: Flip | undefined }[] = [
      { at: this.#here, first: undefined },
    ];
    while (border.length > 0) {
      for (const { at, first } of border) {
        const open = this.#states[at]?.open[0];
        if (open !== undefined) return first ?? open;
      }
      border = border.flatMap(({ at, first }) =>
        [...(this.#states[at]?.edges.values() ?? [])].flatMap(({ flip, to }) => {
          if (seen.has(to)) return [];
          seen.add(to);
          return [{ at: to, first: first ?? flip }];
        }),
      );
    }
    return undefined;
  }

  async go(flip: Flip): Promise<void> {
    const from = this.#states[this.#here] as OpenNode;
    const words = flipWords(flip);
    await this.#world.step(flip);
    this.#steps++;
    this.note(words);
    const to = this.#arrive();
    const known = from.edges.get(words);
    if (known === undefined) from.edges.set(words, { flip, to, stalls: this.#world.stalls });
    else if (known.to !== to) this.#violations.push(`${words}: two histories of one state go on differently`);
    const index = from.open.findIndex((open) => flipWords(open) === words);
    if (index >= 0) from.open.splice(index, 1);
    this.#here = to;
  }

  /** Takes over what has broken the contract since the last look. */
  note(after: string): void {
    for (const violation of this.#world.watch.violations.slice(this.#violationsSeen)) {
      this.#violations.push(`after ${after}: ${violation}`);
    }
    this.#violationsSeen = this.#world.watch.violations.length;
  }

  #violationsSeen = 0;

  progress(): SkewProgress {
    const open = this.#states.reduce((sum, state) => sum + state.open.length, 0);
    return { states: this.#states.length, flips: this.#steps, open };
  }

  graph(): SkewGraph {
    return {
      options: this.#options,
      states: this.#states.map(({ key, gates, edges }) => ({ key, gates, edges })),
      steps: this.#steps,
      elapsedMs: Math.round(this.#world.clock.monotonicMs()),
      violations: this.#violations,
    };
  }

  #arrive(): number {
    const key = this.#world.state();
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const { gates } = this.#world;
    const open = [...possibleFlips(gates, this.#options.plugins)];
    this.#states.push({ key, gates, edges: new Map(), open });
    this.#byKey.set(key, this.#states.length - 1);
    return this.#states.length - 1;
  }
}
