/**
 * One seeded simulation of a conversion and its undo on a whole cluster: components crash and come back at random moments, the
 * process that converts dies too and is started again, here or on another machine, requests and replies get lost. The contract is
 * checked after every call; once the faults end, every volume must be where it was carried, with its data.
 *
 * Invariant: the same seed produces the same run.
 */
import { type KubeClient, resources } from "@longshore/kube";
import type { PluginName } from "@longshore/local";
import { type Host, type Random, SeededRandom } from "@longshore/runtime";
import { ConversionWorld, type Operator } from "./conversion-world.ts";
import { type CallGate, Life, type SeamCall } from "./cut.ts";
import { FaultDraws } from "./fault-draws.ts";
import { defaultFaultRates, type FaultRates, faultyGate } from "./faults.ts";

/** What to simulate. */
export interface ConversionSimulationOptions {
  readonly seed: number;
  /** Default `aws-ebs`; a writer on a volume of each. */
  readonly plugins?: readonly PluginName[];
  /** Default {@link defaultFaultRates}. */
  readonly rates?: FaultRates;
  /** Whether components of the cluster, and the process that converts, crash; default true. */
  readonly crashes?: boolean;
}

/** How a simulation went. */
export interface ConversionSimulationResult {
  readonly seed: number;
  /** Empty: the contract held, and everything is where it is to be. */
  readonly problems: readonly string[];
  /** Crashes of components, and deaths of processes that converted. */
  readonly crashes: number;
  readonly deaths: number;
  readonly faults: number;
  /** Calls at the seams, each a step at which the contract was checked. */
  readonly steps: number;
  /** Virtual milliseconds. */
  readonly elapsedMs: number;
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
    run.problems.push(`C8: ${error instanceof Error ? error.message : String(error)}`);
  }
  return run.result();
}

class ConversionSimulation {
  readonly problems: string[] = [];
  readonly #options: ConversionSimulationOptions;
  readonly #random: Random;
  readonly #comeBacks: Promise<void>[] = [];
  /** Settles when the process dies that converts now. */
  #death: Promise<void> = new Promise(() => {});
  #healed = true;
  #crashes = 0;
  #deaths = 0;
  #faults = 0;
  #steps = 0;
  #elapsedMs = 0;

  constructor(options: ConversionSimulationOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  result(): ConversionSimulationResult {
    return {
      seed: this.#options.seed,
      problems: this.problems,
      crashes: this.#crashes,
      deaths: this.#deaths,
      faults: this.#faults,
      steps: this.#steps,
      elapsedMs: this.#elapsedMs,
    };
  }

  async play(): Promise<void> {
    const { plugins = ["aws-ebs"], seed, crashes = true } = this.#options;
    const random = this.#random.fork("faults");
    // Made with the world, which has the clock.
    let faulty: CallGate | undefined;
    const gate: CallGate = (call, proceed) => (faulty === undefined ? proceed() : faulty(call, proceed));
    await ConversionWorld.play({ plugins, seed, gate }, async (world) => {
      faulty = faultyGate(
        { clock: world.clock, draws: new FaultDraws(random) },
        () => (this.#healed ? undefined : (this.#options.rates ?? defaultFaultRates)),
        (_call, fault) => {
          this.#steps++;
          if (fault !== undefined) this.#faults++;
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
        ended.abort(new Error("healed"));
        await crashing;
        await world.writersRun();
        const form = direction === "convert" ? "csi" : "in-tree";
        this.problems.push(...world.leftovers(form, names), ...(await world.lostWrites()));
      }
      this.problems.push(...world.violations);
      this.#elapsedMs = Math.round(world.clock.monotonicMs());
    });
  }

  /** Begins it again until nothing is unfinished, as an administrator would. */
  async #carry(world: ConversionWorld, direction: "convert" | "undo", gate: CallGate): Promise<void> {
    const random = this.#random.fork(direction);
    for (let attempt = 1; ; attempt++) {
      // The last attempts are let live, so that a run comes to its end.
      this.#death = new Promise(() => {});
      const isDoomed = this.#options.crashes !== false && attempt < 6;
      const life = new Life("operator", isDoomed ? this.#deadly(1 + random.below(60, "death"), gate) : gate);
      const operator = this.#operator(world, life, `m${1 + random.below(2, "machine")}`);
      const outcome = await this.#attempt(world, direction, operator, life);
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
  ): Promise<string> {
    const work = world[direction](operator, { scaleDown: true }).then(
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
    const random = this.#random.fork("crashes");
    const { clock, cluster } = world;
    const pause = (ms: number) =>
      clock.sleep(ms, until).then(
        () => true,
        () => false,
      );
    while (await pause(20 + random.below(1500, "until the next crash"))) {
      const victims = [...cluster.componentNames, "apiserver"];
      const name = victims[random.below(victims.length, "victim")] ?? "apiserver";
      if (name !== "apiserver" && !cluster.isRunning(name)) continue;
      this.#crashes++;
      if (name === "apiserver") {
        cluster.restartApiServer(this.#random.fork(`apiserver ${this.#crashes}`));
        continue;
      }
      world.crash(name);
      const downMs = 50 + random.below(3000, "time down");
      this.#comeBacks.push(clock.sleep(downMs, new AbortController().signal).then(() => cluster.start(name)));
    }
    await Promise.all(this.#comeBacks);
  }
}
