/**
 * The API server compared with the real kube-apiserver and etcd, under one and the same load, over TLS, every write
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

interface Measure {
  readonly name: string;
  readonly unit: string;
  /** Bound of our value over theirs; negative: at least. None: only shown. */
  readonly ratioMax?: number;
  /** By server, in their order. */
  readonly values: number[];
}

const measures = new Map<string, Measure>();

function add(server: Server, name: string, unit: string, value: number, ratioMax?: number, busy = ""): void {
  const measure = measures.get(name) ?? {
    name,
    unit,
    values: [],
    ...(ratioMax === undefined ? {} : { ratioMax }),
  };
  measure.values.push(value);
  measures.set(name, measure);
  console.log(`  ${server.name}: ${name}: ${value.toFixed(2)} ${unit} ${busy}`);
}

/**
 * Takes all measures, each of one server right after that of the other: whatever else the machine does is then
 * nearly the same for both.
 */
async function measureAll(servers: readonly Server[]): Promise<void> {
  const driver = fork(script("driver"), { stdio: "inherit" });
  const each = async (job: Job, note: (server: Server, measured: Measured & { busy: string }) => void) => {
    for (const server of servers) note(server, await run(driver, server, job));
  };
  let made = 0;
  try {
    for (const size of scale > 1 ? [volumes, volumes * scale] : [volumes]) {
      const at = `${(size / 1000).toFixed(0)}k`;
      await each({ do: "fill", from: made, to: size, connections: 16 }, (server, fill) => {
        add(server, `${at}: creates, 16 connections`, "/s", fill.perSecond, -1, fill.busy);
        add(server, `${at}: create p50`, "ms", fill.p50, 1);
        add(server, `${at}: create p99`, "ms", fill.p99, 1);
      });
      made = size;
      await new Promise((resolve) => setTimeout(resolve, 5000));
      for (const server of servers) add(server, `${at}: resident memory`, "MiB", server.residentMb(), 0.4);
      await each({ do: "get", of: size, rounds: 3000 }, (server, get) => {
        add(server, `${at}: get p50`, "ms", get.p50, 1, get.busy);
        add(server, `${at}: get p99`, "ms", get.p99, 1);
      });
      const rounds = size > 50_000 ? 7 : 21;
      await each({ do: "list", query: "", rounds }, (server, list) => {
        add(server, `${at}: list, newest, p50`, "ms", list.p50, 0.5, list.busy);
        add(server, `${at}: list, size`, "MB", list.bytes / 1e6);
      });
      await each({ do: "list", query: "?resourceVersion=0", rounds }, (server, list) => {
        add(server, `${at}: list, from cache, p50`, "ms", list.p50, 0.5, list.busy);
      });
      await each({ do: "watch", from: 1e9, events: 1000, writers: 1 }, (server, watch) => {
        add(server, `${at}: watch, quiet, p50`, "ms", watch.p50, 1, watch.busy);
        add(server, `${at}: watch, quiet, p99`, "ms", watch.p99, 1);
      });
      await each({ do: "watch", from: 2e9, events: 8000, writers: 16 }, (server, watch) => {
        add(server, `${at}: watch, 16 writers, p50`, "ms", watch.p50, 1, watch.busy);
        add(server, `${at}: watch, 16 writers, p99`, "ms", watch.p99, 1);
      });
      for (const server of servers) add(server, `${at}: memory after all`, "MiB", server.residentMb(), 0.4);
    }
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

/** How long starts take: medians of a few. */
async function starts(): Promise<void> {
  const inProcess = Array.from({ length: 5 }, () =>
    JSON.parse(
      execFileSync(process.execPath, [script("in-process"), `${repository}/packages`], { encoding: "utf8" }),
    ),
  ) as { importMs: number; firstRequestMs: number; firstHttpsRequestMs: number }[];
  const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
  const first = median(inProcess.map((s) => s.firstRequestMs));
  const https = median(inProcess.map((s) => s.firstHttpsRequestMs));
  console.log(`in process: start to first request ${first.toFixed(1)} ms (target 50)`);
  console.log(`  over HTTPS, certificates made for it: ${https.toFixed(0)} ms`);
  console.log(`  imports before that: ${median(inProcess.map((s) => s.importMs)).toFixed(0)} ms`);
  const ready: number[] = [];
  const cpu: number[] = [];
  for (let i = 0; i < 5; i++) {
    const server = await startOurs(repository);
    ready.push(server.readyMs);
    cpu.push(server.cpuMs());
    await server.stop();
  }
  console.log(
    `longshore run apiserver to ready: median ${median(ready).toFixed(0)} ms, best ${Math.min(...ready).toFixed(0)} ms (target 400), of which ${median(cpu).toFixed(0)} ms on a processor`,
  );
}

function printTable(): void {
  const line = (cells: readonly string[]) =>
    `${(cells[0] ?? "").padEnd(30)}${cells
      .slice(1, 4)
      .map((cell) => cell.padStart(14))
      .join("")}  ${cells[4] ?? ""}`;
  console.log(`\n${line(["measure", "longshore", "real pair", "ratio", "target"])}`);
  for (const { name, unit, values, ratioMax } of measures.values()) {
    const [own = 0, real] = values;
    const shown = (value: number) => `${value.toFixed(value < 100 ? 2 : 0)} ${unit}`;
    if (real === undefined) console.log(line([name, shown(own)]));
    else {
      const ratio = own / real;
      const reached = ratioMax === undefined || (ratioMax < 0 ? ratio >= -ratioMax : ratio <= ratioMax);
      const target = ratioMax === undefined ? "" : `${ratioMax < 0 ? "≥" : "≤"} ${Math.abs(ratioMax)}`;
      console.log(
        line([name, shown(own), shown(real), ratio.toFixed(2), `${target}${reached ? "" : "  missed"}`]),
      );
    }
  }
}

await starts();
const servers = [await startOurs(repository)];
try {
  if (process.env.KUBEBUILDER_ASSETS !== undefined) servers.push(await startReal());
  for (const server of servers) add(server, "start to ready", "ms", server.readyMs, 1);
  await measureAll(servers);
  printTable();
} finally {
  for (const server of servers) await server.stop();
}
