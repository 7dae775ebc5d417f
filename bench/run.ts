/**
 * `npm run bench -- NAME…`: runs the benchmarks in `bench/<name>/index.ts`, all of them when none is named. A
 * benchmark exports `run(args)` and prints its own table.
 */

import { existsSync, readdirSync } from "node:fs";

const here = new URL("./", import.meta.url);
const known = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, here)))
  .map((entry) => entry.name)
  .sort();

const words = process.argv.slice(2);
const names = words.filter((word) => !word.startsWith("-"));
const args = words.filter((word) => word.startsWith("-"));
const unknown = names.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`No benchmark ${unknown.join(", ")}; there are: ${known.join(", ")}`);
  process.exitCode = 2;
} else {
  for (const name of names.length > 0 ? names : known) {
    console.log(`# ${name}`);
    const { run } = (await import(new URL(`${name}/index.ts`, here).href)) as {
      run(args: readonly string[]): Promise<void>;
    };
    await run(args);
  }
}
