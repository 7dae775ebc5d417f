/**
 * A crash: the component is cut off from all its seams at once and forgotten. Nothing that it had
 * begun goes on, whatever it awaits never settles, and none of its timers fires.
 */
import type { CsiConnection, CsiConnector, CsiListener, CsiServer } from "@longshore/csi";
import type { PodRuntime, Seams } from "@longshore/local";
import { type Clock, deadlineOn } from "@longshore/runtime";
import type { MachineTime } from "./machine-time.ts";

/** What stands before every call of a component: runs the call, or loses it. */
export type CallGate = <T>(call: SeamCall, proceed: () => Promise<T>) => Promise<T>;

/** A call at a seam. */
export interface SeamCall {
  readonly component: string;
  readonly seam: "kube" | "host" | "csi" | "cloud" | "runtime";
  readonly method: string;
}

/** One life of a component, from its start to its end or crash. */
export class Life {
  readonly #component: string;
  readonly #gate: CallGate;
  readonly #machine: MachineTime | undefined;
  readonly #endpoints = new Set<string>();
  /** Calls that are under way, by seam and method. */
  readonly #underWay = new Map<string, number>();
  #cut = false;
  /** What it will see and do once it goes on; undefined while it runs. */
  #held: (() => void)[] | undefined;

  /** @param machine on which it lives; left out: one that always runs */
  constructor(component: string, gate: CallGate, machine?: MachineTime) {
    this.#component = component;
    this.#gate = gate;
    this.#machine = machine;
  }

  /** Ends the life at once. Returns the endpoints that it served, whose connections break now. */
  cut(): readonly string[] {
    this.#cut = true;
    return [...this.#endpoints];
  }

  /** The calls that it waits for now, such as `kube.update`. */
  get underWay(): readonly string[] {
    return [...this.#underWay.keys()];
  }

  /** Stops the process, as SIGSTOP or a frozen machine does: it sees no answer, event or timer, and sends nothing, until it goes on. */
  pause(): void {
    this.#held ??= [];
  }

  /** Whether it is stopped so. */
  get isPaused(): boolean {
    return this.#held !== undefined;
  }

  /** Lets it go on: it sees in their order what has come in between, at the time that it is now. */
  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const see of held) this.#seen(see);
  }

  /** The seams as this life sees them. */
  seams(seams: Seams): Seams {
    return {
      ...seams,
      clock: this.#clock(this.#machine?.clock(seams.clock) ?? seams.clock),
      kube: this.#wrap("kube", seams.kube),
      host: this.#wrap("host", seams.host),
      runtime: this.#runtime(seams.runtime),
      connector: this.#connector(seams.connector),
      listener: this.#listener(seams.listener),
      cloudFor: (caller) => this.#wrap("cloud", seams.cloudFor(caller)),
    };
  }

  /** Time as this life sees it, for who has no seams of a component. */
  time(clock: Clock): Clock {
    return this.#clock(clock);
  }

  /** One seam as this life sees it, for who has no others. */
  seam<T extends object>(seam: SeamCall["seam"], target: T): T {
    return this.#wrap(seam, target);
  }

  /** Settles like `work`, unless the life ends first: then never. */
  #alive<T>(work: Promise<T>, settled: () => void = () => {}): Promise<T> {
    if (this.#cut) {
      // No caller awaits it any more: unhandled, its failure would end the process of the simulation.
      work.catch(() => {});
      return new Promise(() => {});
    }
    return new Promise((resolve, reject) => {
      work.then(
        (value) =>
          this.#seen(() => {
            settled();
            resolve(value);
          }),
        (error) =>
          this.#seen(() => {
            settled();
            reject(error);
          }),
      );
    });
  }

  /** Lets the process see something: at once, when it goes on, or never. What comes to a paused machine waits there. */
  #seen(see: () => void): void {
    if (this.#cut) return;
    if (this.#held !== undefined) this.#held.push(see);
    else if (this.#machine === undefined) see();
    else this.#machine.whenRunning(() => this.#cut || see());
  }

  #clock(clock: Clock): Clock {
    const timer: Clock["timer"] = (ms, fire) => {
      let isCancelled = false;
      const inner = clock.timer(ms, () =>
        // While it was held the process may have cancelled it.
        this.#seen(() => isCancelled || fire()),
      );
      return {
        cancel: () => {
          isCancelled = true;
          inner.cancel();
        },
      };
    };
    return {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms, signal) => this.#alive(clock.sleep(ms, signal)),
      timer,
      deadline: (ms, parent) => deadlineOn({ timer }, ms, parent),
    };
  }

  #runtime(runtime: PodRuntime): PodRuntime {
    const wrapped = this.#wrap("runtime", runtime);
    return new Proxy(wrapped, {
      get: (_target, property) =>
        property === "onEnd"
          ? runtime.onEnd && ((listener: (podUID: string) => void) => this.#onEnd(runtime, listener))
          : Reflect.get(wrapped, property, wrapped),
    });
  }

  #onEnd(runtime: PodRuntime, listener: (podUID: string) => void): () => void {
    return (
      runtime.onEnd?.((podUID) => {
        this.#seen(() => listener(podUID));
      }) ?? (() => {})
    );
  }

  /** The object with every call gated: asynchronous ones and streams; the rest as it is. */
  #wrap<T extends object>(seam: SeamCall["seam"], target: T): T {
    return new Proxy(target, {
      get: (_target, property) => {
        const member = Reflect.get(target, property, target) as unknown;
        if (typeof member !== "function" || typeof property !== "string") return member;
        return (...args: unknown[]) => this.#call(seam, property, () => Reflect.apply(member, target, args));
      },
    });
  }

  #call(seam: SeamCall["seam"], method: string, run: () => unknown): unknown {
    if (method === "watch") return this.#stream(run() as AsyncIterable<unknown>);
    if (this.#cut) return new Promise(() => {});
    if (isSynchronous(method)) return run();
    const call = { component: this.#component, seam, method };
    // A call that had not left before the crash never leaves.
    const send = async () => (this.#cut ? new Promise(() => {}) : run());
    const name = `${seam}.${method}`;
    this.#underWay.set(name, (this.#underWay.get(name) ?? 0) + 1);
    const begun = this.#begun();
    const leaves = begun === undefined ? this.#gate(call, send) : begun.then(() => this.#gate(call, send));
    return this.#alive(leaves, () => this.#answered(name));
  }

  /** What is started while the process, or its machine, is paused begins once it goes on; undefined: at once. */
  #begun(): Promise<void> | undefined {
    if (this.#held !== undefined) return new Promise((resolve) => this.#held?.push(resolve));
    const machine = this.#machine;
    if (machine?.isPaused !== true) return undefined;
    return new Promise((resolve) => machine.whenRunning(resolve));
  }

  #answered(name: string): void {
    const left = (this.#underWay.get(name) ?? 1) - 1;
    if (left === 0) this.#underWay.delete(name);
    else this.#underWay.set(name, left);
  }

  async *#stream(source: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    const iterator = source[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.#alive(iterator.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }

  #connector(connector: CsiConnector): CsiConnector {
    const services = ["identity", "controller", "groupController", "node"] as const;
    return {
      connect: (endpoint) => {
        const connection = connector.connect(endpoint);
        const wrapped: Partial<Record<(typeof services)[number], unknown>> = {};
        for (const service of services) wrapped[service] = this.#wrap("csi", connection[service]);
        const onLost = (listener: () => void) =>
          connection.onLost(() => {
            this.#seen(listener);
          });
        const { snapshotMetadata } = connection;
        return { ...wrapped, snapshotMetadata, onLost, close: () => connection.close() } as CsiConnection;
      },
      connectRegistration: (socketPath) => {
        const client = connector.connectRegistration(socketPath);
        const wrapped = this.#wrap("csi", client);
        return {
          getInfo: (options) => wrapped.getInfo(options),
          notifyRegistrationStatus: (status, options) => wrapped.notifyRegistrationStatus(status, options),
          close: () => client.close(),
        };
      },
    };
  }

  #listener(listener: CsiListener): CsiListener {
    const remember = (server: CsiServer): CsiServer => {
      this.#endpoints.add(server.endpoint);
      return {
        endpoint: server.endpoint,
        close: async () => {
          this.#endpoints.delete(server.endpoint);
          await server.close();
        },
      };
    };
    return {
      serve: async (endpoint, services) => remember(await this.#alive(listener.serve(endpoint, services))),
      serveRegistration: async (path, handlers) =>
        remember(await this.#alive(listener.serveRegistration(path, handlers))),
    };
  }
}

/** The few members of the seams that answer at once. */
function isSynchronous(method: string): boolean {
  return method === "placeSocket";
}

/** Calls of components that change nothing. */
const reads: ReadonlySet<string> = new Set([
  "kube.get",
  "kube.list",
  "kube.servedVersion",
  "host.stat",
  "host.readFile",
  "host.readDirectory",
  "host.watchDirectory",
  "host.usage",
  "host.treeUsage",
  "runtime.state",
  "runtime.list",
  "runtime.podsWithRunningContainers",
]);

/** Whether the call may have changed the state of the world. */
export function mayChange({ seam, method }: SeamCall): boolean {
  return !reads.has(`${seam}.${method}`);
}
