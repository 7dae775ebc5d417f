/**
 * One seeded simulation of a conversion and its undo on a whole cluster: components crash and come back at random moments, the
 * process that converts dies too and is started again, here or on another machine, requests and replies get lost. The contract is
 * checked after every call; once the faults end, every volume must be where it was carried, with its data.
 *
 * Invariant: the same seed produces the same run.
 */
import { type KubeClient, resources } from "@longshore/kube";
import type { PluginName } from "@longshore/local";
import type { ConversionEvent } from "@longshore/migration";
import { type Host, type Random, SeededRandom } from "@longshore/runtime";
import type { AttachmentCall } from "./contract-watch.ts";
import { ConversionWorld, type Operator } from "./conversion-world.ts";
import { type CallGate, Life, type SeamCall } from "./cut.ts";
import { FaultDraws } from "./fault-draws.ts";
import { defaultFaultRates, type FaultRates, faultyGate } from "./faults.ts";
import type { SeedOptions, SeedResult } from "./seed-result.ts";
import { TraceHash, type TraceKind, traceLine } from "./trace.ts";

/** What to simulate. */
export interface ConversionSimulationOptions extends SeedOptions {
  /** Default `aws-ebs`; a writer on a volume of each. */
  readonly plugins?: readonly PluginName[];
  /** Default {@link defaultFaultRates}. */
  readonly rates?: FaultRates;
  /** Whether components of the cluster, and the process that converts, crash; default true. */
  readonly crashes?: boolean;
}

/** How a simulation went. Of a death that was drawn the process may have ended before. */
export interface ConversionSimulationResult extends SeedResult {
  /** Crashes of components, and deaths of processes that converted. */
  readonly crashes: number;
  readonly deaths: number;
  readonly faults: number;
}

const attemptsMax = 60;
const directions = ["convert", "undo"] as const;

/** Runs one seed. Never throws for what the simulated world does. */
export async function simulateConversion(
  options: ConversionSimulationOptions,
): Promise<ConversionSimulationResult> {
  const run = new ConversionSimulation(options);
  try {
    await run.play();
  } catch (error) {
    run.report(`C8: ${error instanceof Error ? error.message : String(error)}`);
  }
  return run.result();
}

class ConversionSimulation {
  readonly #violations: string[] = [];
  readonly #options: ConversionSimulationOptions;
  readonly #random: Random;
  readonly #draws: FaultDraws;
  readonly #traceHash = new TraceHash();
  readonly #comeBacks: Promise<void>[] = [];
  #world: ConversionWorld | undefined;
  /** Settles when the process dies that converts now. */
  #death: Promise<void> = new Promise(() => {});
  #healed = true;
  #crashes = 0;
  #deaths = 0;
  #faults = 0;
  #steps = 0;

  constructor(options: ConversionSimulationOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#draws = new FaultDraws(this.#random.fork("faults"), options.only);
  }

  /** Something that breaks the contract; the same is reported once. */
  report(violation: string): void {
    if (this.#violations.includes(violation)) return;
    this.#violations.push(violation);
    this.#trace("broken", "the contract is broken:", violation);
  }

  result(): ConversionSimulationResult {
    return {
      seed: this.#options.seed,
      violations: this.#violations,
      struck: this.#draws.struck,
      crashes: this.#crashes,
      deaths: this.#deaths,
      faults: this.#faults,
      steps: this.#steps,
      elapsedMs: Math.round(this.#world?.clock.monotonicMs() ?? 0),
      traceHash: this.#traceHash.toString(),
    };
  }

  async play(): Promise<void> {
    const { plugins = ["aws-ebs"], seed, crashes = true } = this.#options;
    // Made with the world, which has the clock.
    let faulty: CallGate | undefined;
    const gate: CallGate = (call, proceed) => (faulty === undefined ? proceed() : faulty(call, proceed));
    const observers = {
      onDisk: ({ op, path, diskId, nodeName }: AttachmentCall) =>
        this.#trace("disk", diskId, `${path} ${op} ${nodeName}`),
      onViolation: (violation: string) => this.report(violation),
    };
    await ConversionWorld.play({ plugins, seed, gate, ...observers }, async (world) => {
      this.#world = world;
      faulty = faultyGate(
        { clock: world.clock, draws: this.#draws },
        () => (this.#healed ? undefined : (this.#options.rates ?? defaultFaultRates)),
        (call, fault) => {
          this.#steps++;
          if (fault === undefined) return;
          this.#faults++;
          this.#trace("call", call.component, `${fault.kind} ${call.seam}.${call.method}`);
        },
      );
      const volumes = world.cluster.objects(resources.persistentVolumes);
      const names = new Set(volumes.map(({ metadata }) => metadata.name));
      for (const direction of directions) {
        this.#healed = false;
        const ended = new AbortController();
        const crashing = crashes ? this.#crashAtRandom(world, ended.signal) : Promise.resolve();
        await this.#carry(world, direction, gate);
        this.#healed = true;
        this.#trace("rest", "the faults", "end");
        ended.abort(new Error("healed"));
        await crashing;
        await world.writersRun();
        const form = direction === "convert" ? "csi" : "in-tree";
        for (const what of world.leftovers(form, names)) this.report(`C8: ${what}`);
        for (const what of await world.lostWrites()) this.report(`C3: ${what}`);
      }
      for (const what of world.cluster.disks.violations) this.report(`C2: ${what}`);
    });
  }

  /** Begins it again until nothing is unfinished, as an administrator would. */
  async #carry(world: ConversionWorld, direction: "convert" | "undo", gate: CallGate): Promise<void> {
    const random = this.#random.fork(direction);
    const onEvent = (event: ConversionEvent) => this.#trace("crossing", "the conversion", eventText(event));
    for (let attempt = 1; ; attempt++) {
      this.#death = new Promise(() => {});
      const draw = this.#draws.next("death of the operator");
      const at = 1 + draw.below(60);
      // The last attempts are let live, so that a run comes to its end.
      const isDoomed = this.#options.crashes !== false && attempt < 6 && this.#draws.happens(draw);
      const life = new Life("operator", isDoomed ? this.#deadly(at, gate) : gate);
      const machine = `m${1 + random.below(2, "machine")}`;
      this.#trace("crossing", "the operator", `begins on ${machine}: ${direction}`);
      const outcome = await this.#attempt(
        world,
        direction,
        this.#operator(world, life, machine),
        life,
        onEvent,
      );
      this.#trace("crossing", "the operator", `ends: ${outcome}`);
      if (outcome === "done") return;
      if (attempt >= attemptsMax) throw new Error(`${direction} did not end in ${attempt} runs: ${outcome}`);
      await world.clock.sleep(500 + random.below(3000, "pause"), new AbortController().signal);
    }
  }

  async #attempt(
    world: ConversionWorld,
    direction: "convert" | "undo",
    operator: Operator,
    life: Life,
    onEvent: (event: ConversionEvent) => void,
  ): Promise<string> {
    const work = world[direction](operator, { scaleDown: true, onEvent }).then(
      ({ failed, left }) => {
        const problem = failed[0];
        if (problem !== undefined) return `${problem.volume}: ${problem.error}`;
        return left.length > 0 ? "some are left" : "ended";
      },
      (error: unknown) => String(error),
    );
    const outcome = await Promise.race([work, this.#death.then(() => "died")]);
    life.cut();
    if (outcome !== "ended") return outcome;
    const journals = [...(await world.journals(world.operator("judge"))).values()];
    const isDone =
      journals.length > 0 &&
      journals.every((journal) => journal.direction === direction && journal.finishedAt !== undefined);
    return isDone ? "done" : "not every volume was carried";
  }

  /** Ends the life at its call of this number: before it leaves, or after its answer. */
  #deadly(at: number, gate: CallGate): CallGate {
    let die = () => {};
    this.#death = new Promise((resolve) => {
      die = resolve;
    });
    let calls = 0;
    return async <T>(call: SeamCall, proceed: () => Promise<T>): Promise<T> => {
      if (++calls < at) return gate(call, proceed);
      if (calls === at) {
        this.#deaths++;
        this.#trace("life", "the operator", `dies at its call ${call.seam}.${call.method}`);
        // Of two deaths one comes before the call leaves.
        if (at % 2 === 0) await gate(call, proceed).catch(() => {});
        die();
      }
      return new Promise(() => {});
    };
  }

  #operator(world: ConversionWorld, life: Life, machine: string): Operator {
    const { kube, host } = world.operator(machine);
    return {
      kube: life.seam<KubeClient>("kube", kube),
      host: life.seam<Host>("host", host),
    };
  }

  async #crashAtRandom(world: ConversionWorld, until: AbortSignal): Promise<void> {
    const { clock, cluster } = world;
    const pause = (ms: number) =>
      clock.sleep(ms, until).then(
        () => true,
        () => false,
      );
    for (;;) {
      const draw = this.#draws.next("crash");
      const pauseMs = 20 + draw.below(1500);
      const victims = [...cluster.componentNames, "apiserver"];
      const name = victims[draw.below(victims.length)] ?? "apiserver";
      const downMs = 50 + draw.below(3000);
      if (!(await pause(pauseMs))) break;
      const isApiServer = name === "apiserver";
      if (!(isApiServer || cluster.isRunning(name)) || !this.#draws.happens(draw)) continue;
      this.#crashes++;
      this.#trace("life", name, isApiServer ? "restarts" : `crashes for ${downMs} ms`);
      if (isApiServer) {
        cluster.restartApiServer(this.#random.fork(`apiserver ${this.#crashes}`));
        continue;
      }
      world.crash(name);
      this.#comeBacks.push(clock.sleep(downMs, new AbortController().signal).then(() => cluster.start(name)));
    }
    await Promise.all(this.#comeBacks);
  }

  #trace(kind: TraceKind, subject: string, text: string): void {
    const atMs = Math.round(this.#world?.clock.monotonicMs() ?? 0);
    const event = { atMs, step: this.#steps, kind, subject, text };
    this.#traceHash.add(traceLine(event));
    this.#options.onTrace?.(event);
  }
}

function eventText(event: ConversionEvent): string {
  switch (event.kind) {
    case "volumeStarted":
      return `begins with ${event.volume}`;
    case "stepDone":
      return `has done: ${event.step} of ${event.volume}`;
    case "waiting":
      return `waits at: ${event.step} of ${event.volume}`;
    case "volumeDone":
      return `is done with ${event.volume}`;
    case "volumeFailed":
      return `fails with ${event.volume}: ${event.error}`;
  }
}
