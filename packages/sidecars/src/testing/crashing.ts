/** A component that dies at its n-th call to the outside, before or after the call took effect. */
import type { CsiConnection } from "@longshore/csi";
import type { KubeClient } from "@longshore/kube";
import type { SidecarEnv } from "../common/env.ts";

/** Counts the calls of one life, and ends it at a chosen one. */
export class Life {
  calls = 0;
  /** What each call was. */
  readonly log: string[] = [];
  readonly #diesAt: number;
  readonly #effect: "before" | "after";
  #onDeath: () => void = () => {};
  /** Resolves when it dies. */
  readonly death = new Promise<void>((resolve) => {
    this.#onDeath = resolve;
  });
  dead = false;

  constructor(diesAt = Number.POSITIVE_INFINITY, effect: "before" | "after" = "before") {
    this.#diesAt = diesAt;
    this.#effect = effect;
  }

  /** Makes a call, unless this life has ended: then it waits for ever, as a dead process does. */
  async call<T>(what: string, make: () => Promise<T>): Promise<T> {
    if (this.dead) return new Promise<T>(() => {});
    const n = ++this.calls;
    this.log.push(what);
    if (n === this.#diesAt) {
      this.dead = true;
      this.#onDeath();
      if (this.#effect === "after") make().catch(() => {});
      return new Promise<T>(() => {});
    }
    const answer = await make();
    return this.dead ? new Promise<T>(() => {}) : answer;
  }
}

/** The seams of a component with this life. Watches are not counted: nothing happens at them. */
export function mortal(env: SidecarEnv, life: Life): SidecarEnv {
  const kube = new Proxy(env.kube, {
    get(target, name: keyof KubeClient) {
      const member = target[name] as (...args: unknown[]) => unknown;
      if (name === "watch" || name === "list" || name === "servedVersion") return member.bind(target);
      return (...args: unknown[]) => {
        const { kind } = (args[0] ?? {}) as { readonly kind?: string };
        // Events are told on the side.
        if (kind === "Event") return Promise.resolve(args[1]);
        return life.call(`${String(name)} ${kind}`, () => member.apply(target, args) as Promise<unknown>);
      };
    },
  });
  const service = <T extends object>(client: T): T =>
    new Proxy(client, {
      get(target, name) {
        const member = target[name as keyof T] as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) => life.call(String(name), () => member.apply(target, args));
      },
    });
  const csi: CsiConnection = { ...env.csi, controller: service(env.csi.controller) };
  return { ...env, kube, csi };
}
