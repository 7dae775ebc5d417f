/**
 * Draws what goes wrong. Each kind of decision has a stream of its own, so that what one part of the world draws shifts the
 * draws of no other, and each fault has a name: its kind and its number in the stream. A run can be limited to some of them:
 * that is what its minimisation does.
 */
import type { Random } from "@longshore/runtime";

/** One decision about a fault. */
export interface FaultDraw {
  /** The kind and the number of the decision, such as `node-1 kube.update #12`. */
  readonly name: string;
  /** A number from 0 to below `bound`. */
  below(bound: number): number;
}

interface Stream {
  readonly random: Random;
  count: number;
}

/** The faults of one run. */
export class FaultDraws {
  /** The faults that were drawn and let happen, in order. */
  readonly struck: string[] = [];
  readonly #random: Random;
  readonly #only: ReadonlySet<string> | undefined;
  readonly #streams = new Map<string, Stream>();

  /** @param only the names of the faults that may happen; left out: all of them */
  constructor(random: Random, only?: ReadonlySet<string>) {
    this.#random = random;
    this.#only = only;
  }

  /** The next decision of the kind. */
  next(kind: string): FaultDraw {
    let stream = this.#streams.get(kind);
    if (stream === undefined) {
      stream = { random: this.#random.fork(kind), count: 0 };
      this.#streams.set(kind, stream);
    }
    const { random } = stream;
    return { name: `${kind} #${++stream.count}`, below: (bound) => random.below(bound, kind) };
  }

  /** Whether the fault that was drawn happens; it is recorded where it does. */
  happens({ name }: FaultDraw): boolean {
    if (this.#only !== undefined && !this.#only.has(name)) return false;
    this.struck.push(name);
    return true;
  }
}
