/**
 * The API server beside the real kube-apiserver with etcd, under one and the same load, over TLS, every write
 * durable. The real pair takes part when KUBEBUILDER_ASSETS names it (`scripts/kubernetes-assets.sh`); ours is the
 * built command, so build first.
 *
 *   npm run bench -- apiserver [--volumes=10000] [--scale=10]
 *
 * The measures are taken with `volumes` volumes and again with `scale` times as many.
 */

import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Job, Measured } from "./load.ts";
import { type Server, startOurs, startReal } from "./servers.ts";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const volumes = option("volumes", 10_000);
const scale = option("scale", 10);
const repository = process.cwd();
const script = (name: string) => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));

interface Row {
  readonly measure: string;
  readonly unit: string;
  readonly value: number;
  /** Server CPU over wall time, and the same of the driver: who was busy. */
  readonly busy?: string;
  /** Bound of our value over theirs; negative: at least. */
  readonly ratioMax: number;
}

/** All measures of one server. */
async function measureAll(server: Server): Promise<Row[]> {
  const driver = fork(script("driver"), { stdio: "inherit" });
  const rows: Row[] = [{ measure: "start to ready", unit: "ms", value: server.readyMs, ratioMax: 1 }];
  let made = 0;
  try {
    for (const size of scale > 1 ? [volumes, volumes * scale] : [volumes]) {
      const at = `${(size / 1000).toFixed(0)}k`;
      const add = (measure: string, unit: string, value: number, ratioMax: number, busy?: string) => {
        rows.push({
          measure: `${at}: ${measure}`,
          unit,
          value,
          ratioMax,
          ...(busy === undefined ? {} : { busy }),
        });
        console.log(
          `  ${server.name}: ${at}: ${measure}: ${value.toFixed(2)} ${unit}${busy === undefined ? "" : ` (${busy})`}`,
        );
      };
      const fill = await run(driver, server, { do: "fill", from: made, to: size, connections: 16 });
      made = size;
      add("creates, 16 connections", "/s", fill.perSecond, -1, fill.busy);
      add("create p50", "ms", fill.p50, 1);
      add("create p99", "ms", fill.p99, 1);
      await new Promise((resolve) => setTimeout(resolve, 5000));
      add("resident memory", "MiB", server.residentMb(), 0.4);
      const get = await run(driver, server, { do: "get", of: size, rounds: 3000 });
      add("get p50", "ms", get.p50, 1, get.busy);
      add("get p99", "ms", get.p99, 1);
      const rounds = size > 50_000 ? 5 : 15;
      const newest = await run(driver, server, { do: "list", query: "", rounds });
      add("list, newest, p50", "ms", newest.p50, 0.5, newest.busy);
      const cached = await run(driver, server, { do: "list", query: "?resourceVersion=0", rounds });
      add("list, cache, p50", "ms", cached.p50, 0.5, cached.busy);
      add("list, size", "MB", cached.bytes / 1e6, 2);
      const quiet = await run(driver, server, { do: "watch", from: 1e9, events: 300, writers: 1 });
      add("watch, quiet, p50", "ms", quiet.p50, 1, quiet.busy);
      add("watch, quiet, p99", "ms", quiet.p99, 1);
      const busy = await run(driver, server, { do: "watch", from: 2e9, events: 5000, writers: 16 });
      add("watch, 16 writers, p50", "ms", busy.p50, 1, busy.busy);
      add("watch, 16 writers, p99", "ms", busy.p99, 1);
      add("resident memory after all", "MiB", server.residentMb(), 0.4);
    }
    return rows;
  } finally {
    driver.kill();
  }
}

async function run(
  driver: ChildProcess,
  server: Server,
  job: Job,
): Promise<Measured & { readonly busy: string }> {
  const cpu = server.cpuMs();
  driver.send({ target: server.target, job });
  const [answer] = (await once(driver, "message")) as [{ measured?: Measured; error?: string }];
  if (answer.measured === undefined) throw new Error(`${server.name}, ${job.do}: ${answer.error}`);
  const { measured } = answer;
  const part = (ms: number) => `${((ms / measured.wallMs) * 100).toFixed(0)}%`;
  return {
    ...measured,
    busy: `CPU: server ${part(server.cpuMs() - cpu)}, driver ${part(measured.driverCpuMs)}`,
  };
}

/** The best of a few starts: others on the machine only ever add. */
async function starts(): Promise<void> {
  const inProcess = Array.from({ length: 5 }, () =>
    JSON.parse(
      execFileSync(process.execPath, [script("in-process"), `${repository}/packages`], { encoding: "utf8" }),
    ),
  ) as { importMs: number; firstRequestMs: number }[];
  const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
  const first = median(inProcess.map((s) => s.firstRequestMs));
  console.log(
    `in process: start to first request ${first.toFixed(1)} ms (target 50), imports before that ${median(inProcess.map((s) => s.importMs)).toFixed(0)} ms`,
  );
  const ready: number[] = [];
  for (let i = 0; i < 5; i++) {
    const server = await startOurs(repository);
    ready.push(server.readyMs);
    await server.stop();
  }
  console.log(
    `longshore run apiserver to ready: median ${median(ready).toFixed(0)} ms, best ${Math.min(...ready).toFixed(0)} ms (target 400)`,
  );
}

async function measured(start: () => Promise<Server>): Promise<Row[]> {
  const server = await start();
  try {
    return await measureAll(server);
  } finally {
    await server.stop();
  }
}

await starts();
const ours = await measured(() => startOurs(repository));
const theirs = process.env.KUBEBUILDER_ASSETS === undefined ? [] : await measured(startReal);
console.log(
  `\n${"measure".padEnd(32)}${"longshore".padStart(14)}${"real pair".padStart(14)}${"ratio".padStart(8)}  target`,
);
for (const [i, row] of ours.entries()) {
  const real = theirs[i]?.value;
  const ratio = real === undefined ? undefined : row.value / real;
  const { ratioMax } = row;
  const reached =
    ratio === undefined ? "" : (ratioMax < 0 ? ratio >= -ratioMax : ratio <= ratioMax) ? "reached" : "MISSED";
  const shown = (value: number | undefined) =>
    value === undefined ? "" : `${value.toFixed(value < 100 ? 2 : 0)} ${row.unit}`;
  console.log(
    `${row.measure.padEnd(32)}${shown(row.value).padStart(14)}${shown(real).padStart(14)}${(ratio?.toFixed(2) ?? "").padStart(8)}  ${ratioMax < 0 ? `≥ ${-ratioMax}` : `≤ ${ratioMax}`} ${reached}`,
  );
}
