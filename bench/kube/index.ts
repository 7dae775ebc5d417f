/**
 * What following the API server costs beyond reading and parsing: the first list and a steady stream of events, by an
 * informer over HTTPS, compared with a loop that only reads and parses the same bytes.
 *
 *   npm run bench -- kube [--objects=100000] [--rounds=5]
 *
 * A loop that also keeps what it parsed shows how much of the difference is the collector of garbage.
 *
 * Measured with a tenth of the objects, and with all. Rounds take turns; shown are medians. The target is held
 * to both: wall time is the rate, and processor time, which others on the machine change less, has the collector's threads.
 */
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const objects = option("objects", 100_000);
const rounds = option("rounds", 5);
const script = (name: string) => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));

const modes = ["bare", "kept", "paged", "streamed"] as const;
type Mode = (typeof modes)[number];

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}
interface Result {
  readonly sync: Cost;
  readonly events: Cost;
}

/** Least that reading and parsing must be of what the informer takes. */
const target = 0.7;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

async function measure(size: number): Promise<void> {
  const events = size;
  const server = fork(script("server"), [String(size), String(events), process.cwd()], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  try {
    const [line] = (await once(server.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    const results: Record<Mode, Result[]> = { bare: [], kept: [], paged: [], streamed: [] };
    const follow = (mode: string, ...flags: readonly string[]): unknown => {
      const args = [mode, line.toString().trim(), String(size), String(events)];
      const command = [...flags, "--max-old-space-size=4096", script("follower"), ...args];
      return JSON.parse(execFileSync(process.execPath, command).toString());
    };
    for (let round = 0; round < rounds; round++) {
      for (const mode of modes) results[mode].push(follow(mode) as Result);
    }
    console.log(`${size} objects, ${events} events`);
    for (const what of ["sync", "events"] as const) {
      const cpu = (mode: Mode) => median(results[mode].map((result) => result[what].cpuMs));
      const wall = (mode: Mode) => median(results[mode].map((result) => result[what].wallMs));
      for (const mode of modes) {
        const perSecond = size / (wall(mode) / 1000);
        const ratios = [cpu("bare") / cpu(mode), wall("bare") / wall(mode)].map((r) => r.toFixed(2));
        const ratio = Math.min(cpu("bare") / cpu(mode), wall("bare") / wall(mode));
        const isReached = mode === "bare" || mode === "kept" || ratio >= target;
        console.log(
          `  ${what} ${mode}: ${wall(mode).toFixed(0)} ms, ${perSecond.toFixed(0)}/s, processor ${cpu(mode).toFixed(0)} ms; ` +
            `ratio ${ratios[0]} (processor), ${ratios[1]} (wall)${isReached ? "" : `  BELOW ${target}`}`,
        );
      }
    }
    const { bytesPerObject } = follow("memory", "--expose-gc") as { bytesPerObject: number };
    console.log(`  memory per cached object: ${bytesPerObject.toFixed(0)} bytes`);
  } finally {
    server.kill();
  }
}

for (const size of [objects / 10, objects]) await measure(size);
