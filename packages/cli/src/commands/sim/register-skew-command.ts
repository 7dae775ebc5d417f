/** `longshore sim skew`: every order in which the migration gates of a cluster under work can be flipped. */
import {
  combinationBreaks,
  combinationsOf,
  combinationTable,
  exploreSkew,
  isAsPromised,
  isStoryAsPromised,
  mayStall,
  modeWords,
  orderCount,
  orderLines,
  orderNumbered,
  ordersOf,
  type PlayedCombination,
  playCombination,
  playVersions,
  replay,
  replayLines,
  type SkewMode,
  type SkewOptions,
  versionLines,
  versionStories,
} from "@longshore/simulation";
import { type Command, Option } from "commander";
import { exitCodes, interruptible, UsageError } from "../../exit.ts";
import { repeated, wholeNumber, withForms } from "../../flags.ts";
import { createProgress, type Progress, table } from "../../terminal.ts";
import { pluginsOption } from "../plugin-flag.ts";
import type { SeedRange } from "./seed-range.ts";

const parts = ["combinations", "orders", "versions"] as const;
type Part = (typeof parts)[number];
const modes = ["upstream", "node-only"] as const;
const nodesMax = 3;
/** Gates beyond which an exploration takes hours: the states are two to the power of them. */
const gatesMax = 8;

interface SkewFlags {
  readonly plugin?: readonly string[];
  readonly nodes: string;
  readonly mode?: SkewMode;
  readonly part?: readonly Part[];
  readonly orders?: string;
  readonly json?: boolean;
}

/** Adds the verb below `sim`. */
export function registerSkewCommand(sim: Command): void {
  const part = new Option("--part <part>", "what to play; may be repeated; default: all of them");
  const mode = new Option("--mode <mode>", "what the attach/detach controller goes by; default: both");
  withForms(sim.command("skew"), ["text", "json"])
    .description(
      "flip migration gates in every order on a cluster under work, and check the contract after every call",
    )
    .addOption(pluginsOption("whose gates are flipped; default: aws-ebs and cinder"))
    .option("--nodes <count>", "nodes of the cluster", "2")
    .addOption(mode.choices(modes))
    .addOption(withChoices(part))
    .option(
      "--orders <A..B>",
      "only the orders of these numbers, each on a cluster of its own from its start",
    )
    .addHelpText(
      "after",
      `
Parts: combinations plays the four combinations of gates with each plugin; orders makes every flip in every state that can be
reached, and counts the orders of which all work goes on; versions upgrades, downgrades and upgrades again, with kubelets one
to three versions behind. In upstream mode an order may be unsafe: the shortest story of each reason is printed.
With -o json each result is a line of JSON.
Exit codes: 0 all as expected, 1 the contract or what the modes promise was broken, 2 wrong usage.`,
    )
    .action((flags: SkewFlags) => interruptible((signal) => explore(flags, signal)));
}

/** Several values, each of which commander checks. */
function withChoices(option: Option): Option {
  option.choices(parts);
  const one = option.parseArg;
  return option.argParser((value: string, before: readonly string[] | undefined) =>
    repeated(one?.(value, undefined as never) as unknown as string, before),
  );
}

async function explore(flags: SkewFlags, signal: AbortSignal): Promise<void> {
  const { pluginsNamed } = await import("@longshore/local");
  const plugins = pluginsNamed(flags.plugin ?? ["aws-ebs", "cinder"]);
  const nodes = wholeNumber("--nodes", flags.nodes, 1, nodesMax);
  const wanted = flags.part ?? (flags.orders === undefined ? parts : []);
  const gates = plugins.length * (nodes + 1);
  if (wanted.includes("orders") && gates > gatesMax) {
    throw new UsageError(
      `--part orders: ${plugins.length} plugins on ${nodes} nodes have ${gates} gates, more than ${gatesMax}: take fewer, or some orders with --orders A..B`,
    );
  }
  const orders =
    flags.orders === undefined ? undefined : orderRange(flags.orders, orderCount(plugins, nodes));
  const report = new SkewReport(flags.json === true);
  for (const mode of flags.mode === undefined ? modes : [flags.mode]) {
    report.text([`${mode}: ${modeWords[mode]}`]);
    const options = { plugins, nodes, mode };
    if (wanted.includes("combinations")) await report.combinations(options, signal);
    if (wanted.includes("orders")) await report.orders(options, signal);
    if (orders !== undefined) await report.replays(options, orders, signal);
    if (wanted.includes("versions")) await report.versions(options, signal);
  }
  if (report.isBroken) process.exitCode = exitCodes.failed;
}

function orderRange(text: string, count: number): SeedRange {
  const [from = "", to = from, ...more] = text.split("..");
  if (more.length > 0) throw new UsageError(`--orders: "${text}" is not a range: write it as 1..10`);
  const first = wholeNumber("--orders", from, 1, count);
  return { first, last: wholeNumber("--orders", to, first, count) };
}

/** Prints results as they come. */
class SkewReport {
  isBroken = false;
  readonly #isJson: boolean;
  readonly #progress: Progress;

  constructor(isJson: boolean) {
    this.#isJson = isJson;
    this.#progress = createProgress(isJson);
  }

  text(lines: readonly string[]): void {
    this.#progress.clear();
    if (!this.#isJson) process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  }

  async combinations({ plugins, mode }: SkewOptions, signal: AbortSignal): Promise<void> {
    const played: PlayedCombination[] = [];
    const breaks: string[] = [];
    for (const combination of plugins.flatMap((plugin) => combinationsOf(plugin, mode))) {
      signal.throwIfAborted();
      this.#progress.status(`… ${combination.plugin}`);
      const outcome = await playCombination(combination);
      played.push([combination, outcome]);
      const broken = combinationBreaks(combination, outcome);
      this.#json({ part: "combinations", ...combination, ...outcome, breaks: broken });
      breaks.push(...broken);
    }
    this.#progress.clear();
    if (!this.#isJson) process.stdout.write(table(combinationTable(played)));
    this.text(breaks);
    this.#breaks(breaks.length > 0);
  }

  async orders(options: SkewOptions, signal: AbortSignal): Promise<void> {
    const onStep = ({ flips, states, open }: { flips: number; states: number; open: number }) =>
      this.#progress.status(`… ${flips} flips made, ${open} to make in ${states} states`);
    const graph = await exploreSkew(options, { signal, onStep });
    const { counts, unsafe } = ordersOf(graph);
    this.text(orderLines(graph));
    const { violations, steps, states, elapsedMs } = graph;
    this.#json({
      part: "orders",
      ...options,
      states: states.length,
      steps,
      elapsedMs,
      counts,
      unsafe,
      violations,
    });
    this.#breaks(!isAsPromised(graph));
  }

  async replays(options: SkewOptions, { first, last }: SeedRange, signal: AbortSignal): Promise<void> {
    for (let number = first; number <= last; number++) {
      signal.throwIfAborted();
      this.#progress.status(`… order ${number}`);
      const order = await replay(options, orderNumbered(options.plugins, options.nodes, number));
      this.text(replayLines(number, order));
      const steps = order.steps.map(({ flip, stalls }) => ({ ...flip, stalls }));
      this.#json({ part: "order", mode: options.mode, number, steps, violations: order.violations });
      this.#breaks(!isStoryAsPromised(order, options.mode === "upstream"));
    }
  }

  async versions({ plugins, mode }: SkewOptions, signal: AbortSignal): Promise<void> {
    for (const story of versionStories(plugins, mode)) {
      signal.throwIfAborted();
      this.#progress.status(`… versions up to 1.${story.minor}`);
      const outcome = await playVersions(story);
      this.text(versionLines(story, outcome));
      this.#json({ part: "versions", ...story, ...outcome });
      this.#breaks(!isStoryAsPromised(outcome, mayStall(story)));
    }
  }

  #json(value: object): void {
    if (this.#isJson) process.stdout.write(`${JSON.stringify(value)}\n`);
  }

  #breaks(isBroken: boolean): void {
    this.isBroken ||= isBroken;
  }
}
