/**
 * How fast the simulation is: virtual hours for each minute of processor time, of crossings under faults, of one that rests
 * for a day, and of a cluster that has nothing to do, and whose code the time was spent in.
 *
 *   npm run bench -- simulation [--nodes=3] [--seeds=5] [--hours=2] [--rest=24]
 *
 * Processor time, which others on the machine change less than wall time. There is no target: it shows what a change of the
 * product or of the world costs.
 */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";
import { clusterConfig, createInProcessCluster } from "@longshore/local";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { simulateCrossing } from "@longshore/simulation";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const nodes = option("nodes", 3);
const seeds = option("seeds", 5);
const hours = option("hours", 2);
const restHours = option("rest", 24);
const hourMs = 3_600_000;

/** Whose code a package is: what is released for clusters, the API server, or the world around them. */
const sides: Readonly<Record<string, string>> = {
  apiserver: "API server",
  runtime: "world",
  "reference-driver": "world",
  simulation: "world",
};
const otherSide = "product";

/** The package of each line of this bundle, in which each module begins with a comment that has its path. */
function packagesByLine(): readonly (string | undefined)[] {
  let current: string | undefined;
  return readFileSync(fileURLToPath(import.meta.url), "utf8")
    .split("\n")
    .map((line) => {
      const module = /^\/\/ (\S*?)(packages\/([a-z-]+)\/src|node_modules|bench)\//.exec(line);
      if (module !== null) current = module[3];
      return current;
    });
}

/** Runs the work; its processor time in ms, and the share of each side in percent. */
async function measured(
  work: () => Promise<void>,
): Promise<{ readonly cpuMs: number; readonly shares: string }> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  const { profile } = await session.post("Profiler.stop");
  session.disconnect();
  const packages = packagesByLine();
  const sideById = new Map(
    profile.nodes.map(({ id, callFrame: { url, functionName, lineNumber } }) => {
      if (functionName === "(garbage collector)") return [id, "garbage"];
      const name = url.startsWith("file:") ? packages[lineNumber] : undefined;
      return [id, name === undefined ? "Node" : (sides[name] ?? otherSide)];
    }),
  );
  const times = new Map<string, number>();
  for (const [at, id] of (profile.samples ?? []).entries()) {
    const side = sideById.get(id) ?? "Node";
    times.set(side, (times.get(side) ?? 0) + (profile.timeDeltas?.[at] ?? 0));
  }
  const all = [...times.values()].reduce((sum, time) => sum + time, 0);
  const shares = [...times]
    .sort(([, a], [, b]) => b - a)
    .map(([side, time]) => `${side} ${percent(time / all)}`);
  return { cpuMs: (user + system) / 1000, shares: shares.join(", ") };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function report(
  what: string,
  virtualMs: number,
  { cpuMs, shares }: Awaited<ReturnType<typeof measured>>,
): void {
  const rate = virtualMs / hourMs / (cpuMs / 60_000);
  console.log(`${what}: ${rate.toFixed(2)} virtual hours a minute of processor time; ${shares}`);
}

async function crossings(): Promise<void> {
  let virtualMs = 0;
  // The first one loads and compiles.
  await simulateCrossing({ seed: 0, nodes });
  const cost = await measured(async () => {
    for (let seed = 1; seed <= seeds; seed++)
      virtualMs += (await simulateCrossing({ seed, nodes })).elapsedMs;
  });
  report(`${seeds} crossings of ${nodes} nodes under faults`, virtualMs, cost);
}

/** Days in which crossing and way back are a few busy minutes, as they are for those who run clusters. */
async function restingCrossing(): Promise<void> {
  const restMs = restHours * hourMs;
  let virtualMs = 0;
  const cost = await measured(async () => {
    virtualMs = (await simulateCrossing({ seed: 1, nodes, restMs })).elapsedMs;
  });
  report(
    `the first of them, with a rest of ${restHours} hours and few faults before the way back`,
    virtualMs,
    cost,
  );
}

async function idleCluster(): Promise<void> {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const { signal } = new AbortController();
  await clock.run(
    (async () => {
      const config = clusterConfig(nodes, "unprivileged");
      const cluster = await createInProcessCluster(env, { config, programs: () => ({}) });
      await clock.sleep(hourMs / 6, signal);
      const cost = await measured(() => clock.sleep(hours * hourMs, signal));
      report(`a cluster of ${nodes} nodes that has nothing to do`, hours * hourMs, cost);
      await cluster.stop();
    })(),
    { limitMs: (hours + 1) * hourMs },
  );
}

await crossings();
await restingCrossing();
await idleCluster();
