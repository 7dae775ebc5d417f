/** Agents of one node of which each but the last dies at a chosen call, or does not learn its answer. */
import { lostReply } from "@longshore/csi";
import { KubeTransportError } from "@longshore/kube";
import type { CrashPoint } from "@longshore/testing/kube";
import type { NodeWorld, RunningAgent } from "./node-world.ts";

/** What happens at a call: the agent dies before or after it, or only its answer is lost. */
export interface Fault {
  /** The number of the call since the fault before it, from 1. */
  readonly at: number;
  readonly what: "crash before" | "crash after" | "lost answer to";
}

/** The crashes at these points. */
export function crashesAt(points: readonly CrashPoint[]): readonly Fault[] {
  return points.map(({ at, side }) => ({ at, what: `crash ${side}` }));
}

/** The lost answers to the calls of these points. */
export function lostAnswersAt(points: readonly CrashPoint[]): readonly Fault[] {
  return points.map(({ at }) => ({ at, what: "lost answer to" }));
}

/** What a lost answer looks like to the caller; undefined for a call of the host, which never loses its own. */
export function lostAnswer(call: string): Error | undefined {
  if (/^node[A-Z]|^getInfo$|^notify/.test(call)) return lostReply(call);
  return /^(get|list|create|update|patch|delete)$/.test(call) ? new KubeTransportError("reset") : undefined;
}

/** Where a call stands in the calls since the last fault. */
interface Place {
  readonly log: readonly string[];
  readonly at: number;
}

/** From a crash to the next agent, in virtual milliseconds. */
const awayMs = 500;

/** The agent of a node, and those that take its place. */
export class FailingAgents {
  /** What was called, from one fault to the next. */
  readonly calls: string[][] = [[]];
  /** Undefined between a crash and the next start. */
  running: RunningAgent | undefined;
  /** Calls outside of the flow neither count nor fail. */
  isCounting = true;
  readonly #world: NodeWorld;
  readonly #gates: () => Readonly<Record<string, boolean>>;
  readonly #faults: readonly Fault[];

  /** @param gates of the next agent */
  constructor(world: NodeWorld, gates: () => Readonly<Record<string, boolean>>, faults: readonly Fault[]) {
    this.#world = world;
    this.#gates = gates;
    this.#faults = faults;
  }

  /** The calls; with nothing for a fault at a call that has no answer before the flow ends: such a point is not played. */
  get played(): readonly (readonly string[])[] {
    const missing = this.#faults.length + 1 - this.calls.length;
    return [...this.calls, ...Array.from({ length: Math.max(0, missing) }, () => [])];
  }

  launch(): void {
    // Calls overlap: which one an answer is to is known by its number.
    const places = new Map<number, Place>();
    const agent = this.#world.start(this.#gates(), (call, when, number) => {
      if (!this.isCounting) return;
      const log = this.calls.at(-1) ?? [];
      if (when === "before") places.set(number, { log, at: log.push(call) });
      const place = places.get(number);
      if (place?.log === log) this.#called(agent, call, when, place.at);
    });
    this.running = agent;
  }

  /** Stops the one that runs. @returns false where none does: the next one is on its way */
  async stop(): Promise<boolean> {
    const agent = this.running;
    const { isCounting } = this;
    // An agent that is being stopped is not started again by its crash.
    this.isCounting = false;
    await this.#world.clock.run(Promise.resolve(agent?.stop()));
    this.isCounting = isCounting;
    return agent !== undefined;
  }

  #called(agent: RunningAgent, call: string, when: "before" | "after", at: number): void {
    const fault = this.#faults[this.calls.length - 1];
    const moment = fault?.what === "crash before" ? "before" : "after";
    if (fault === undefined || when !== moment || at !== fault.at) return;
    const error = fault.what === "lost answer to" ? lostAnswer(call) : undefined;
    this.calls.push([]);
    if (error !== undefined) throw error;
    agent.crash();
    this.running = undefined;
    void this.#world.clock.sleep(awayMs, this.#world.signal).then(() => this.launch());
  }
}
