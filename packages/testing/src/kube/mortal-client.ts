/**
 * A client that dies at a chosen point between its calls. A point lies before a call is sent, or after its answer:
 * the request took effect, but the component does not know it.
 */
import type { KubeClient } from "@longshore/kube";

/** On which side of its call a life ends. */
export type Side = "before" | "after";

/** A call by what it is, and how many of its kind there have been by then, from 1: where the order may vary. */
export interface NthCall {
  readonly what: string;
  readonly nth: number;
}

/** Counts the calls of one life, and ends it at a chosen one. */
export class Life {
  calls = 0;
  /** What each call was. */
  readonly log: string[] = [];
  readonly #ofKind = new Map<string, number>();
  readonly #diesAt: number | NthCall;
  readonly #side: Side;
  #onDeath: () => void = () => {};
  /** Resolves when it dies. */
  readonly death = new Promise<void>((resolve) => {
    this.#onDeath = resolve;
  });
  dead = false;

  /** @param diesAt the call at which it ends, by its number from 1 or by its kind; never when left out */
  constructor(diesAt: number | NthCall = Number.POSITIVE_INFINITY, side: Side = "before") {
    this.#diesAt = diesAt;
    this.#side = side;
  }

  /** Makes a call, unless this life has ended: then it waits for ever, as a dead process does. */
  async call<T>(what: string, make: () => Promise<T>): Promise<T> {
    if (this.dead) return never();
    const isLast = this.#note(what);
    if (isLast && this.#side === "before") return this.#die();
    try {
      const answer = await make();
      return isLast || this.dead ? this.#die() : answer;
    } catch (error) {
      if (isLast || this.dead) return this.#die();
      throw error;
    }
  }

  /** Whether this is the call at which it dies. */
  #note(what: string): boolean {
    const number = ++this.calls;
    this.log.push(what);
    const nth = (this.#ofKind.get(what) ?? 0) + 1;
    this.#ofKind.set(what, nth);
    const at = this.#diesAt;
    return typeof at === "number" ? number === at : what === at.what && nth === at.nth;
  }

  #die<T>(): Promise<T> {
    this.dead = true;
    this.#onDeath();
    return never();
  }
}

const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** The client of a component with this life: every API request is one of its calls. */
export function mortalClient(kube: KubeClient, life: Life): KubeClient {
  return new Proxy(kube, {
    get(target, name: keyof KubeClient) {
      const member = target[name] as (...args: unknown[]) => unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        const { kind } = (args[0] ?? {}) as { readonly kind?: string };
        const what = `${String(name)} ${kind}`;
        if (name === "watch") {
          return mortalStream(what, life, () => member.apply(target, args) as AsyncIterable<unknown>);
        }
        return life.call(what, () => member.apply(target, args) as Promise<unknown>);
      };
    },
  });
}

/** A seam all of whose methods are calls of this life, each named by its method, or as `nameOf` says. */
export function mortalSeam<T extends object>(
  seam: T,
  life: Life,
  nameOf: (method: string, args: readonly unknown[]) => string = (method) => method,
): T {
  return new Proxy(seam, {
    get(target, key) {
      const member = Reflect.get(target, key) as unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) =>
        life.call(nameOf(String(key), args), () => Reflect.apply(member, target, args) as Promise<unknown>);
    },
  });
}

/** Its opening is the call; a dead process receives nothing more from it. */
async function* mortalStream(
  what: string,
  life: Life,
  open: () => AsyncIterable<unknown>,
): AsyncGenerator<unknown> {
  const events = await life.call(what, async () => open());
  for await (const event of events) {
    if (life.dead) await never();
    yield event;
  }
}
