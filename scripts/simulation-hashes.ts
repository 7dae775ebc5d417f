/**
 * Prints the sum of the trace of some seeds of the simulation, crossings and ten times as many small worlds, run twice each: the same
 * on every Node. CI compares them.
 *
 *   npx tsx scripts/simulation-hashes.ts [--seeds=3]
 */
import { simulateCrossing, simulateSmallWorld } from "@longshore/simulation";

const seeds = Number(process.argv.find((arg) => arg.startsWith("--seeds="))?.split("=")[1] ?? 3);
for (let seed = 1; seed <= seeds; seed++) await printTwice("crossing", seed, simulateCrossing);
for (let seed = 1; seed <= seeds * 10; seed++) await printTwice("small world", seed, simulateSmallWorld);

async function printTwice(
  world: string,
  seed: number,
  simulate: (options: {
    readonly seed: number;
  }) => Promise<{ readonly steps: number; readonly traceHash: string }>,
): Promise<void> {
  const [first, second] = [await simulate({ seed }), await simulate({ seed })];
  if (first.traceHash !== second.traceHash) {
    console.error(`${world} ${seed}: two runs differ: ${first.traceHash} and ${second.traceHash}`);
    process.exitCode = 1;
  }
  console.log(`${world} ${seed}: ${first.steps} steps, trace ${first.traceHash}`);
}
