/**
 * Prints the sum of the trace of some seeds of the simulation, run twice each: the same on every Node. CI compares them.
 *
 *   npx tsx scripts/simulation-hashes.ts [--seeds=3]
 */
import { simulateCrossing } from "@longshore/simulation";

const seeds = Number(process.argv.find((arg) => arg.startsWith("--seeds="))?.split("=")[1] ?? 3);
for (let seed = 1; seed <= seeds; seed++) {
  const [first, second] = [await simulateCrossing({ seed }), await simulateCrossing({ seed })];
  if (first.traceHash !== second.traceHash) {
    console.error(`seed ${seed}: two runs differ: ${first.traceHash} and ${second.traceHash}`);
    process.exitCode = 1;
  }
  console.log(`seed ${seed}: ${first.steps} steps, trace ${first.traceHash}`);
}
