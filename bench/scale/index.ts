/**
 * The three controllers of volumes (attach/detach, persistent volumes, expansion), with their caches in one process, in a large
 * cluster of the embedded API server and in one a tenth as large.
 *
 *   npm run bench -- scale [--nodes=5000] [--volumes=50000] [--seconds=60] [--rounds=3]
 *
 * - Restart: from the start of the controllers to the first correct decisions, that a volume without a pod is to be detached
 *   and that a claim is to be bound. The goal is twice the time in which the same client lists all of these objects, the
 *   median of rounds that take turns, each in a process of its own.
 * - At rest: the processor time that the process uses while nodes renew their leases and nodes and pods are reported, see
 *   `rates.ts`. The goal is less than a twentieth of a core, and no write.
 * - Memory: bytes of the heap for each volume, with its pod, claim and attachment and its part of a node. The goal is at most 1.1
 *   times those of the smaller cluster.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import type { Figures } from "./controllers.ts";
import type { Size } from "./objects.ts";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const large: Size = { nodes: option("nodes", 5_000), volumes: option("volumes", 50_000) };
const small: Size = { nodes: large.nodes / 10, volumes: large.volumes / 10 };
const seconds = option("seconds", 60);
const rounds = option("rounds", 3);
const goals = { restart: 2, core: 0.05, memory: 1.1 };
const script = (name: string) => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));

interface Result {
  readonly listMs: number;
  readonly restartMs: number;
  readonly restartCpuMs: number;
  readonly core: number;
  readonly writes: number;
  readonly bytesPerVolume: number;
}

class Controllers {
  readonly #child: ChildProcess;
  constructor(where: object, { nodes, volumes }: Size) {
    this.#child = fork(script("controllers"), [JSON.stringify(where), String(nodes), String(volumes)], {
      execArgv: ["--expose-gc", "--max-old-space-size=4096"],
      env: { ...process.env, BENCH_OBSERVE_MS: String(seconds * 1000) },
    });
  }

  ready(): Promise<unknown> {
    return once(this.#child, "message");
  }

  async ask(word: "list" | "restart" | "run" | "quiet" | "observe"): Promise<Figures> {
    this.#child.send(word);
    const [figures] = (await once(this.#child, "message")) as [Figures];
    return figures;
  }

  async end(): Promise<void> {
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function measure(size: Size): Promise<Result> {
  const server = fork(script("server"), [process.cwd(), String(size.nodes), String(size.volumes)], {
    execArgv: ["--max-old-space-size=6144"],
  });
  try {
    const [where] = (await once(server, "message")) as [object];
    const inProcess = async <T>(work: (controllers: Controllers) => Promise<T>): Promise<T> => {
      const controllers = new Controllers(where, size);
      try {
        await controllers.ready();
        return await work(controllers);
      } finally {
        await controllers.end();
      }
    };
    // A server that has just been filled has served no list yet: its first is no reference.
    await inProcess((controllers) => controllers.ask("list"));
    const lists: number[] = [];
    const restarts: Figures[] = [];
    for (let round = 0; round < rounds; round++) {
      lists.push((await inProcess((controllers) => controllers.ask("list"))).wallMs);
      restarts.push(await inProcess((controllers) => controllers.ask("restart")));
    }
    const { bytes, rest } = await inProcess(async (controllers) => {
      const before = await controllers.ask("quiet");
      await controllers.ask("run");
      const after = await controllers.ask("quiet");
      server.send("load");
      return { bytes: after.heapBytes - before.heapBytes, rest: await controllers.ask("observe") };
    });
    return {
      listMs: median(lists),
      restartMs: median(restarts.map(({ wallMs }) => wallMs)),
      restartCpuMs: median(restarts.map(({ cpuMs }) => cpuMs)),
      core: rest.cpuMs / rest.wallMs,
      writes: rest.writes,
      bytesPerVolume: bytes / size.volumes,
    };
  } finally {
    server.kill("SIGKILL");
  }
}

console.log(`load average ${loadavg()[0]?.toFixed(2)} on ${cpus().length} cores; ${rounds} rounds`);
console.log(
  "nodes  volumes  list s  restart s  (CPU s)  ratio  at rest, % of a core  writes  bytes/volume  ratio",
);
const results: Result[] = [];
for (const size of [small, large]) {
  const result = await measure(size);
  results.push(result);
  const { listMs, restartMs, restartCpuMs, core, writes, bytesPerVolume } = result;
  console.log(
    [
      String(size.nodes).padStart(5),
      String(size.volumes).padStart(8),
      (listMs / 1000).toFixed(2).padStart(7),
      (restartMs / 1000).toFixed(2).padStart(10),
      (restartCpuMs / 1000).toFixed(2).padStart(8),
      (restartMs / listMs).toFixed(2).padStart(6),
      (100 * core).toFixed(1).padStart(21),
      String(writes).padStart(7),
      bytesPerVolume.toFixed(0).padStart(13),
      (bytesPerVolume / (results[0]?.bytesPerVolume ?? Number.NaN)).toFixed(2).padStart(6),
    ].join(" "),
  );
}
const [first, last] = results as [Result, Result];
for (const [what, value, goal] of [
  ["a restart takes so many times the list", last.restartMs / last.listMs, goals.restart],
  ["at rest so much of a core is used", last.core, goals.core],
  ["writes at rest", last.writes, 0],
  ["a volume takes so many times the memory", last.bytesPerVolume / first.bytesPerVolume, goals.memory],
] as const) {
  if (value <= goal) continue;
  console.error(`${what}: ${value.toFixed(2)}; the goal is ${goal}`);
  process.exitCode = 1;
}
