/**
 * Simulates seed after seed for hours, and keeps what breaks the contract: for each such seed a file with the seed, the version
 * of the code, the fewest faults that break it, and their trace.
 *
 *   npm run hunt -- [--world=crossing] [--hours=8] [--first=SEED] [--workers=2] [--nodes=N] [--rest-hours=H] [--dir=DIR]
 *
 * Worlds are those of `longshore sim`; nodes and hours of rest are a crossing's. What is found is kept in `.longshore/seeds`, and for
 * other worlds in a directory below it with their name.
 * Exits with 1 when it has found something. Without `--first` it goes on after the last seed that an earlier hunt in the
 * directory has ended with.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const longshore = join(root, "packages/cli/bin/longshore.js");
/** Seeds of one process: few enough that a hunt ends soon after its time. */
const share = 25;
/** Where a hunt begins that nothing came before: the first seeds are those of the tests. */
const firstSeed = 10_000;

const option = (name: string, fallback: string) =>
  process.argv.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback;
const numberOf = (name: string, fallback: number) => {
  const value = Number(option(name, String(fallback)));
  if (Number.isFinite(value) && value >= 0) return value;
  throw new Error(`--${name}: "${option(name, "")}" is not a number from 0`);
};

const hours = numberOf("hours", 8);
const workers = Math.max(1, numberOf("workers", 2));
const worldName = option("world", "crossing");
const dir = option("dir", join(".longshore/seeds", worldName === "crossing" ? "" : worldName));
// What a world cannot follow is refused by the command, and so is a world that it does not have.
const world = [
  "--world",
  worldName,
  ...["nodes", "rest-hours"].flatMap((name) => {
    const value = numberOf(name, 0);
    return value > 0 ? [`--${name}`, String(value)] : [];
  }),
];
const positionFile = join(dir, "next-seed");
mkdirSync(dir, { recursive: true });
const before = existsSync(positionFile) ? Number(readFileSync(positionFile, "utf8")) : firstSeed;
let next = numberOf("first", before);
const version = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
const untilMs = Date.now() + hours * 3_600_000;
const total = { seeds: 0, virtualMs: 0, found: 0 };

interface Result {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly elapsedMs: number;
}

/** Runs the command; returns the lines of JSON that it printed. */
async function simulate(args: readonly string[]): Promise<readonly unknown[]> {
  const child = spawn(process.execPath, [longshore, "sim", "--json", ...world, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0 && code !== 1) throw new Error(`longshore sim ${args.join(" ")} ended with ${code}`);
  return output
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

async function keep({ seed, violations }: Result): Promise<void> {
  total.found++;
  console.log(`seed ${seed}: ${violations[0]}`);
  const [, minimum] = await simulate(["--seed", String(seed), "--minimise"]);
  const file = join(dir, `seed-${seed}.json`);
  writeFileSync(file, `${JSON.stringify({ seed, version, world, violations, minimum }, undefined, 2)}\n`);
  console.log(`  kept in ${file}`);
}

async function worker(): Promise<void> {
  while (Date.now() < untilMs) {
    const first = next;
    next += share;
    const results = (await simulate(["--seeds", `${first}..${first + share - 1}`])) as readonly Result[];
    for (const result of results) {
      total.seeds++;
      total.virtualMs += result.elapsedMs;
      if (result.violations.length > 0) await keep(result);
    }
    writeFileSync(positionFile, String(next));
    const virtualHours = (total.virtualMs / 3_600_000).toFixed(1);
    console.log(`${total.seeds} seeds, ${virtualHours} virtual hours, ${total.found} broke the contract`);
  }
}

await Promise.all(Array.from({ length: workers }, worker));
if (total.found > 0) process.exitCode = 1;
