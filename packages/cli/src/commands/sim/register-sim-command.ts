/** `longshore sim`: worlds under seeded faults, replayed by their seed. */
import { writeFile } from "node:fs/promises";
import { DiskTimeline, type SeedOptions, timelinePage, traceLine } from "@longshore/simulation";
import { type Command, Option } from "commander";
import { interruptible, UsageError } from "../../exit.ts";
import { wholeNumber, withForms } from "../../flags.ts";
import { registerSkewCommand } from "./register-skew-command.ts";
import { type SeedRange, seedRange, shares } from "./seed-range.ts";
import { Sweep, type SweepFlags } from "./sweep.ts";
import { inWorkers } from "./workers.ts";
import {
  conversionWorld,
  crossingWorld,
  hourMs,
  smallWorld,
  swarmWorld,
  type World,
  type WorldName,
  worldNames,
} from "./world.ts";

interface SimFlags extends SweepFlags {
  readonly world: WorldName;
  readonly seed?: string;
  readonly seeds: string;
  readonly nodes?: string;
  readonly restHours?: string;
  readonly workers: string;
  readonly trace?: boolean;
  readonly until?: string;
  readonly timeline?: string;
}

const workersMax = 64;
const nodesDefault = "2";
/** Longest rest, in hours: a year. */
const restHoursMax = 8_760;

/** Adds the verb. */
export function registerSimCommand(program: Command): void {
  // The verb below it has flags of the same names: what stands after a verb is that verb's.
  const sim = program.enablePositionalOptions().command("sim");
  registerSkewCommand(sim);
  withForms(sim, ["text", "json"])
    .description("simulate worlds under crashes and other faults, and check the contract at every step")
    .addOption(
      new Option(
        "--world <name>",
        "a crossing and its way back; a swarm of worlds whose cluster, faults and operations each seed draws; small ones of them, with a node or two and one plugin; a conversion of PersistentVolumes and its undo",
      )
        .choices(worldNames)
        .default(worldNames[0]),
    )
    .option("--seed <number>", "the first seed (default: 1)")
    .option("--seeds <count|A..B>", "how many seeds, or from which to which", "1")
    .option("--workers <count>", "processes that simulate at the same time", "1")
    .option("--nodes <count>", `nodes of the cluster that crosses (default: ${nodesDefault})`)
    .option("--rest-hours <hours>", "how long the cluster rests between the crossing and its way back")
    .option("--trace", "print what happens as it happens")
    .option(
      "--until <step>",
      "end after this step and print the state of the cluster; one seed, with --trace",
    )
    .option(
      "--minimise",
      "find the fewest faults with which the first seed that broke the contract still does",
    )
    .option(
      "--coverage",
      "print how often each kind of fault and operation of the swarm happened, and which never did",
    )
    .option("--timeline <file>", "write a page that shows who held which disk when; one seed")
    .addHelpText(
      "after",
      "\nWith -o json each seed's result is a line of JSON; what --coverage and --minimise print is another.\nThe same seed gives the same run. Exits 1 when the contract was broken, and prints the events of the first seed that did.",
    )
    .action((flags: SimFlags) => interruptible((signal) => simulate(flags, signal)));
}

async function simulate(flags: SimFlags, signal: AbortSignal): Promise<void> {
  const range = seedRange(flags.seed, flags.seeds);
  const workers = wholeNumber("--workers", flags.workers, 1, workersMax);
  const world = worldOf(flags);
  requireOneSeed(range, flags);
  const sweep = new Sweep(range, world, flags);
  if (workers === 1 || flags.trace === true) await oneByOne(range, world, flags, sweep, signal);
  else {
    const options = { shares: shares(range, workers), workers, world };
    await inWorkers({ ...options, onResult: (result) => sweep.add(result) }, signal);
  }
  await sweep.end(signal);
}

/** @throws UsageError for a flag that the world cannot follow */
function worldOf(flags: SimFlags): World {
  const { nodes = nodesDefault, restHours } = flags;
  const crossing = () =>
    crossingWorld({
      nodes: wholeNumber("--nodes", nodes, 1, 20),
      ...(restHours === undefined
        ? {}
        : { restMs: hourMs * wholeNumber("--rest-hours", restHours, 1, restHoursMax) }),
    });
  const others = { swarm: swarmWorld, small: smallWorld, conversion: conversionWorld };
  const world = flags.world === "crossing" ? crossing() : others[flags.world];
  const given: Readonly<Record<string, unknown>> = {
    "--nodes": flags.nodes,
    "--rest-hours": restHours,
    "--timeline": flags.timeline,
    "--until": flags.until,
    "--coverage": flags.coverage,
  };
  for (const [flag, why] of Object.entries(world.refused)) {
    if (given[flag] === undefined) continue;
    throw new UsageError(`${flag}: not with --world ${world.name}, ${why}: leave it out`);
  }
  return world;
}

/** @throws UsageError for flags that are about one run when there are several */
function requireOneSeed({ first, last }: SeedRange, { until, timeline, trace }: SimFlags): void {
  for (const [flag, value] of Object.entries({ "--until": until, "--timeline": timeline })) {
    if (value !== undefined && first !== last) {
      throw new UsageError(`${flag}: it is about one run: name one seed with --seed`);
    }
  }
  if (until !== undefined && trace !== true) {
    throw new UsageError("--until: without --trace nothing would be printed: add --trace");
  }
}

async function oneByOne(
  { first, last }: SeedRange,
  world: World,
  flags: SimFlags,
  sweep: Sweep,
  signal: AbortSignal,
): Promise<void> {
  const onTrace: SeedOptions["onTrace"] = (event) => void process.stdout.write(`${traceLine(event)}\n`);
  const until =
    flags.until === undefined
      ? {}
      : { until: wholeNumber("--until", flags.until, 1, Number.MAX_SAFE_INTEGER) };
  const timeline = flags.timeline === undefined ? undefined : new DiskTimeline();
  for (let seed = first; seed <= last; seed++) {
    signal.throwIfAborted();
    const result = await world.simulate({
      ...until,
      seed,
      ...(flags.trace === true ? { onTrace } : {}),
      ...(timeline === undefined ? {} : { timeline }),
    });
    if (timeline !== undefined && flags.timeline !== undefined) {
      const title = `Seed ${seed}, ${Number(flags.nodes ?? nodesDefault)} nodes: who held which disk when`;
      await writeFile(flags.timeline, timelinePage(timeline, { title, violations: result.violations }));
    }
    sweep.add(result);
    // Timers and signals get their turn: a simulation on a virtual clock may leave them none.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
