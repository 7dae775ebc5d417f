/**
 * How long others wait while one client sends the heaviest requests that are permitted, on our server and, where
 * KUBEBUILDER_ASSETS names it, on the real kube-apiserver with etcd. Ours is the built command, so build first.
 *
 *   npm run bench -- limits [--quick] [--only=TEXT] [--wait-max=MS] [--ratio-max=N] [--real-seconds=N]
 *
 * `--quick`: without the real server, which needs half a minute for many of them. `--real-seconds`: with it as long as its
 * answers have taken less than that together. The exit code is 1 where others wait for us longer than `wait-max` (default
 * 3000 ms) and, with the real server, longer than `ratio-max` times (default 10) as long as for it as well. The bound
 * is wide: what is watched for is work that grows with the product of two lengths, which takes minutes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { heavyCustom } from "../../packages/apiserver/src/testing/heavy-requests/custom.ts";
import type {
  HeavyRequest,
  SendJson,
} from "../../packages/apiserver/src/testing/heavy-requests/heavy-request.ts";
import { heavyObjects } from "../../packages/apiserver/src/testing/heavy-requests/objects.ts";
import { heavyPatches } from "../../packages/apiserver/src/testing/heavy-requests/patches.ts";
import { Connection, type Target } from "../apiserver/raw-http.ts";
import { type Server, startOurs, startReal } from "../apiserver/servers.ts";
import type { Waits } from "./others.ts";

const word = (name: string) => process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1];
const quick = process.argv.includes("--quick");
const only = word("only") ?? "";
const waitMaxMs = Number(word("wait-max") ?? 3000);
const ratioMax = Number(word("ratio-max") ?? 10);
const realMaxMs = Number(word("real-seconds") ?? Number.POSITIVE_INFINITY) * 1000;

const requests: readonly HeavyRequest[] = [...heavyPatches, ...heavyObjects, ...heavyCustom].filter(
  ({ name }) => name.includes(only),
);

/** What one heavy request did on one server. */
interface Outcome {
  readonly status: number;
  readonly tookMs: number;
  readonly waits: Waits;
}

/** A client that opens a connection for each request: a heavy one may end its own. */
function sender(target: Target): SendJson {
  return async (method, path, body, contentType = "application/json") => {
    const connection = await Connection.open(target);
    try {
      const bytes = body === undefined ? undefined : bytesOf(body);
      const answer = await connection.send(method, path, bytes, { keep: true, type: contentType });
      const { status, body: text } = answer;
      // Read only where it is asked for: a large one would cost the others time here.
      return {
        status,
        get body() {
          return JSON.parse(String(text)) as unknown;
        },
      };
    } finally {
      connection.close();
    }
  };
}

function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/** The bystanders' side of one server. */
class Others {
  readonly #process: ChildProcess = fork(fileURLToPath(new URL("./others.mjs", import.meta.url)), {
    stdio: "inherit",
  });

  async #ask(message: object): Promise<{ readonly waits?: Waits; readonly error?: string }> {
    this.#process.send(message);
    const [answer] = await once(this.#process, "message");
    return answer;
  }

  async begin(target: Target): Promise<void> {
    await this.#ask({ begin: target });
  }

  async end(): Promise<Waits> {
    const { waits, error } = await this.#ask({});
    if (waits === undefined) throw new Error(`the other clients failed: ${error}`);
    return waits;
  }

  stop(): void {
    this.#process.kill();
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function outcomeOf(server: Server, others: Others, request: HeavyRequest): Promise<Outcome> {
  const send = sender(server.target);
  await request.prepare(send);
  await others.begin(server.target);
  await pause(50);
  const begun = performance.now();
  // A server that closes the connection without an answer has given none.
  const status = await request.run(send).catch(() => 0);
  const tookMs = performance.now() - begun;
  await pause(50);
  return { status, tookMs, waits: await others.end() };
}

function isTooLong(own: Waits, real: Waits | undefined): boolean {
  if (own.max <= waitMaxMs) return false;
  return real === undefined || own.max > real.max * ratioMax;
}

const line = (cells: readonly string[]) =>
  cells.map((cell, i) => (i === 0 ? cell.padEnd(64) : cell.padStart(i % 4 === 1 ? 8 : 9))).join("");
const ms = (value: number) => value.toFixed(value < 10 ? 1 : 0);
const cellsOf = ({ status, tookMs, waits }: Outcome) => [
  String(status),
  ms(tookMs),
  ms(waits.p50),
  ms(waits.max),
];

async function measure(servers: readonly Server[], others: Others): Promise<number> {
  const head = ["status", "ms", "wait p50", "wait max"];
  console.log(line(["", ...servers.flatMap(({ name }) => ["", "", "", name.slice(0, 9)])]));
  console.log(
    line(["heavy request", ...servers.flatMap(() => head), ...(servers.length > 1 ? ["ratio"] : [])]),
  );
  let missed = 0;
  let realMs = 0;
  for (const request of requests) {
    const outcomes: Outcome[] = [];
    const asked = realMs < realMaxMs ? servers : servers.slice(0, 1);
    for (const server of asked) outcomes.push(await outcomeOf(server, others, request));
    const [own, real] = outcomes;
    realMs += real?.tookMs ?? 0;
    if (own === undefined) continue;
    const isMissed = isTooLong(own.waits, real?.waits);
    if (isMissed) missed++;
    const ratio = real === undefined ? [] : [(own.waits.max / real.waits.max).toFixed(2)];
    console.log(
      `${line([request.name, ...outcomes.flatMap(cellsOf), ...ratio])}${isMissed ? "  too long" : ""}`,
    );
  }
  return missed;
}

const servers = [await startOurs(process.cwd())];
const others = new Others();
try {
  if (!quick && process.env.KUBEBUILDER_ASSETS !== undefined) servers.push(await startReal());
  for (const { target } of servers) {
    const bystander = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "bystander" } };
    await sender(target)("POST", "/api/v1/namespaces/default/configmaps", bystander);
  }
  const missed = await measure(servers, others);
  for (const { name, peakMb, residentMb } of servers) {
    console.log(
      `${name}: resident memory ${residentMb().toFixed(0)} MiB, at most ${peakMb().toFixed(0)} MiB`,
    );
  }
  if (missed > 0) {
    console.error(`${missed} heavy requests keep others waiting for more than ${waitMaxMs} ms`);
    process.exitCode = 1;
  }
} finally {
  others.stop();
  for (const server of servers) await server.stop();
}
