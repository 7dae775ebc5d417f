/**
 * One of several processes that run the same sidecars: it can be stopped for a while, as by SIGSTOP, or killed, at any of
 * its calls. It keeps what it sent, and who held the lease then.
 */
import { type CsiConnection, interceptCalls } from "@longshore/csi";
import { interceptWrites, type KubeClient, type Lease } from "@longshore/kube";
import type { SidecarEnv } from "@longshore/sidecars";
import { ProcessClock } from "@longshore/testing/kube";

/** Who holds the leases of a world, by their names, as its server knows. */
export type Holders = Map<string, string>;

/** Something that a replica asked others to do. */
export interface Sent {
  readonly what: string;
  /** Who held the only lease, or the first of several, when it was sent. */
  readonly holder: string | undefined;
}

/** What happens to a replica once, after one of its calls was answered. */
export interface Accident {
  /** Which call, from 1 on. */
  readonly after: number;
  /** Stopped for so long, in milliseconds; for ever: killed. */
  readonly stopMs: number;
}

/** A process with sidecars that a test can pause or kill at any of its calls. */
export class Replica {
  readonly identity: string;
  readonly clock: ProcessClock;
  /** Writes to the API server and calls to the driver, without those of leases and events. */
  readonly sent: Sent[] = [];
  readonly #env: SidecarEnv;
  readonly #holders: Holders;
  readonly #accident: Accident | undefined;

  constructor(env: SidecarEnv, identity: string, holders: Holders, accident?: Accident) {
    this.#env = env;
    this.identity = identity;
    this.#holders = holders;
    this.#accident = accident;
    this.clock = new ProcessClock(env.clock, { rate: 1, wallOffsetMs: 0 });
  }

  /** Seams of what runs in it. */
  env(): SidecarEnv {
    const { kube, csi, random } = this.#env;
    return {
      ...this.#env,
      clock: this.clock,
      random: random.fork(this.identity),
      kube: this.#answersWait(this.#recordWrites(kube)),
      csi: this.#recordCalls(csi),
    };
  }

  #note(what: string): void {
    this.sent.push({ what, holder: [...this.#holders.values()][0] });
  }

  /** What comes in waits while the process is stopped. */
  async #arrived<T>(answer: Promise<T>, counts: boolean): Promise<T> {
    try {
      return await answer;
    } finally {
      if (counts && this.sent.length === this.#accident?.after) this.clock.stopFor(this.#accident.stopMs);
      await this.clock.running();
    }
  }

  #recordWrites(kube: KubeClient): KubeClient {
    return interceptWrites(kube, async ({ verb, resource: { kind }, key }, signal, send) => {
      if (kind === "Event") return send(signal);
      if (kind !== "Lease") {
        this.#note(`${verb} ${kind} ${key}`);
        return this.#arrived(send(signal), true);
      }
      const answer = await send(signal);
      const { spec } = answer as Lease;
      // A released lease has no holder until it is acquired again.
      if (key !== undefined && verb !== "delete") this.#holders.set(key, spec?.holderIdentity ?? "");
      return answer;
    });
  }

  #recordCalls(csi: CsiConnection): CsiConnection {
    return interceptCalls(csi, (method, _request, _options, send) => {
      // What is asked to get to know the driver is asked before any lease.
      const learns = method.parent.name === "Identity" || method.name.endsWith("GetCapabilities");
      if (!learns) this.#note(method.name);
      return this.#arrived(send(), !learns);
    });
  }

  #answersWait(kube: KubeClient): KubeClient {
    return new Proxy(kube, {
      get: (target, name: keyof KubeClient) => {
        const member = target[name] as (...args: unknown[]) => unknown;
        if (name === "watch") {
          return (...args: unknown[]) => this.#stream(member.apply(target, args) as AsyncIterable<unknown>);
        }
        return (...args: unknown[]) => this.#arrived(member.apply(target, args) as Promise<unknown>, false);
      },
    });
  }

  async *#stream(source: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    for await (const item of source) {
      await this.clock.running();
      yield item;
    }
  }
}
