/**
 * Sends garbage to `longshore run apiserver`, a process of its own, over TLS: methods, paths, headers, bodies, content
 * types and patches put together at random, watches that are dropped, and bytes that are no HTTP at all. The server must
 * answer on, never with a 5xx that it does not mean, and in bounded memory.
 *
 *   tsx scripts/fuzz-apiserver.ts [--requests=1000000] [--seed=1] [--heap-mib=256] [--emulated-version=1.36]
 *
 * Needs the built command (`npm run build`). Exits 1 when something does not hold, saying what and after which request.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { loadKubeconfig } from "@longshore/kube";
import { kernelHost, SeededRandom, systemClock } from "@longshore/runtime";
import { type GarbageRequest, garbage } from "../packages/apiserver/src/testing/garbage.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    "heap-mib": { type: "string", default: "256" },
    "emulated-version": { type: "string", default: "1.36" },
  },
});
const requests = Number(values.requests);
const heapMib = Number(values["heap-mib"]);

/** Requests sent on one connection before their answers are awaited. */
const batch = 32;
const connections = 8;
const answerWithinMs = 30_000;
/** What the server's memory may grow between the first fifth of the run and its end, in MiB. */
const growthMibMax = 96;

const directory = mkdtempSync(join(tmpdir(), "longshore-fuzz-"));
const kubeconfig = join(directory, "kubeconfig");
const command = fileURLToPath(new URL("../packages/cli/bin/longshore.js", import.meta.url));
const server: ChildProcess = spawn(
  process.execPath,
  [
    `--max-old-space-size=${heapMib}`,
    ...[command, "run", "apiserver", "--in-memory", "--secure-port=0", `--kubeconfig-out=${kubeconfig}`],
    `--emulated-version=${values["emulated-version"]}`,
  ],
  { stdio: ["ignore", "pipe", "pipe"] },
);
// Whatever ends this program ends the server too.
process.on("exit", () => {
  server.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));
let log = "";
let ended = false;
server.stderr?.on("data", (chunk: Buffer) => {
  log = `${log}${chunk}`.slice(-20_000);
});
server.on("exit", (code, signal) => {
  ended = true;
  if (code !== 0 && signal !== "SIGTERM") fail(`the server ended with ${code ?? signal}`);
});

const codes = new Map<number, number>();
let answered = 0;
let isFailed = false;

function fail(why: string): void {
  if (isFailed) return;
  isFailed = true;
  process.exitCode = 1;
  console.error(`after ${answered} answers: ${why}\n${log.slice(-3000)}`);
  server.kill("SIGKILL");
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
  /** Value of the Authorization header. */
  readonly authorization: string;
}

async function ready(): Promise<Target> {
  if (server.stdout !== null) await Promise.race([once(server.stdout, "data"), once(server, "exit")]);
  const { server: url, ca = "", credentials } = await loadKubeconfig(kernelHost(), { path: kubeconfig });
  const { authorization = "" } = await credentials.current(systemClock, new AbortController().signal);
  return { host: new URL(url).hostname, port: Number(new URL(url).port), ca, authorization };
}

/** One kept connection: requests go out in batches, answers come back in order. */
class Connection {
  readonly #target: Target;
  #socket: TLSSocket | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #expected: GarbageRequest[] = [];
  #done: () => void = () => {};

  constructor(target: Target) {
    this.#target = target;
  }

  async send(all: readonly GarbageRequest[]): Promise<void> {
    this.#expected = [...all];
    while (this.#expected.length > 0 && !isFailed) {
      this.#socket ??= await this.#open();
      const socket = this.#socket;
      const timer = setTimeout(() => {
        const [first] = this.#expected;
        fail(`no answer within ${answerWithinMs} ms to ${first?.method} ${first?.url}`);
        this.#done();
      }, answerWithinMs);
      await new Promise<void>((resolve) => {
        this.#done = resolve;
        socket.write(
          Buffer.concat(this.#expected.map((request) => encoded(request, this.#target.authorization))),
        );
      });
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#socket?.destroy();
  }

  async #open(): Promise<TLSSocket> {
    const { host, port, ca } = this.#target;
    const socket = connect({ host, port, ca, ALPNProtocols: ["http/1.1"] });
    socket.on("error", () => {});
    await Promise.race([once(socket, "secureConnect"), once(socket, "close")]);
    this.#bytes = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
      this.#read();
    });
    // A server may close after an answer that ends the connection; what it has not answered is sent again.
    socket.on("close", () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      // The first one made the server close: it has had its answer, or is no HTTP.
      this.#expected.shift();
      this.#done();
    });
    return socket;
  }

  #read(): void {
    while (this.#expected.length > 0) {
      const answer = answerAt(this.#bytes, this.#expected[0]?.method === "HEAD");
      if (answer === undefined) return;
      const request = this.#expected.shift();
      this.#bytes = this.#bytes.subarray(answer.length);
      note(request, answer);
    }
    this.#done();
  }
}

function note(request: GarbageRequest | undefined, { status, body }: Answer): void {
  answered++;
  codes.set(status, (codes.get(status) ?? 0) + 1);
  if (status < 500 || status === 504) return;
  // Meant: bodies and patches that the reference, too, answers with 500, and what is not implemented.
  const isMeant = (status === 500 && !body.includes("InternalError")) || status === 501;
  if (!isMeant)
    fail(
      `${status} to ${request?.method} ${request?.url} ${request?.body.toString("latin1").slice(0, 500)}: ${body.slice(0, 500)}`,
    );
}

function encoded({ method, url, headers, body }: GarbageRequest, authorization: string): Buffer {
  const all = { host: "localhost", ...headers, "content-length": String(body.length) };
  const text = Object.entries(all)
    .map(([name, value]) => `${name}: ${value === "Bearer t" ? authorization : value}`)
    .join("\r\n");
  return Buffer.concat([
    Buffer.from(`${method} ${encodeURI(url).replaceAll("%25", "%")} HTTP/1.1\r\n${text}\r\n\r\n`),
    body,
  ]);
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly length: number;
}

/** The whole answer at the beginning of the bytes; undefined when more must come. */
function answerAt(bytes: Buffer, isHead: boolean): Answer | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = bytes.subarray(0, end).toString("latin1");
  const status = Number(head.slice(9, 12));
  const start = end + 4;
  if (isHead || status === 204 || status === 304) return { status, body: "", length: start };
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const stop = start + Number(length);
    return bytes.length < stop
      ? undefined
      : { status, body: bytes.subarray(start, stop).toString(), length: stop };
  }
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return { status, body: "", length: start };
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(bytes.subarray(at, line).toString("latin1"), 16);
    at = line + 2 + size + 2;
    if (bytes.length < at) return undefined;
    if (size === 0) return { status, body: Buffer.concat(parts).toString(), length: at };
    parts.push(bytes.subarray(line + 2, at - 2));
  }
}

/** A connection that sends bytes that are no HTTP, or opens a watch, and goes. */
async function visit(target: Target, bytes: Buffer): Promise<void> {
  const { host, port, ca } = target;
  const socket = connect({ host, port, ca, ALPNProtocols: ["http/1.1"] });
  socket.on("error", () => {});
  await Promise.race([once(socket, "secureConnect"), once(socket, "close")]);
  socket.write(bytes);
  await Promise.race([
    once(socket, "data").catch(() => {}),
    new Promise((resolve) => setTimeout(resolve, 50)),
  ]);
  socket.destroy();
  answered++;
}

const isWatch = ({ method, url }: GarbageRequest) =>
  (method === "GET" || method === "HEAD") && /[?&]watch=|\/watch(\/|$|\?)/.test(url);

function rssMib(): number {
  if (ended) return 0;
  const text = readFileSync(`/proc/${server.pid}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024);
}

/** Each connection has a sequence of its own, so that a run can be repeated. */
async function play(target: Target, random: SeededRandom, count: number): Promise<void> {
  const connection = new Connection(target);
  for (let sent = 0; sent < count && !isFailed; ) {
    const next = Array.from({ length: Math.min(batch, count - sent) }, () => garbage(random));
    sent += next.length;
    await connection.send(next.filter((request) => !isWatch(request)));
    for (const watch of next.filter(isWatch)) await visit(target, encoded(watch, target.authorization));
    if (random.below(64, "no http") === 0) {
      const bytes = Buffer.from(Array.from({ length: 200 }, () => random.below(256, "byte")));
      await visit(
        target,
        random.below(2, "line") === 0 ? bytes : Buffer.concat([Buffer.from("BREW / HTTP/1.1\r\n"), bytes]),
      );
    }
  }
  connection.close();
}

const begun = performance.now();
const target = await ready();
const memory: number[] = [];
const compaction: GarbageRequest = {
  method: "POST",
  url: "/compact",
  headers: { authorization: "Bearer t" },
  body: Buffer.alloc(0),
};
const timer = setInterval(() => {
  // What the server remembers of the past is bounded by itself; forgotten at once, it hides no growth of anything else.
  void visit(target, encoded(compaction, target.authorization));
  memory.push(rssMib());
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  if (memory.length % 10 === 0)
    console.log(`${answered} answers after ${seconds} s, server ${memory.at(-1)} MiB`);
}, 1000);
await Promise.all(
  Array.from({ length: connections }, (_, i) =>
    play(target, new SeededRandom(Number(values.seed) * 1000 + i), Math.ceil(requests / connections)),
  ),
);
clearInterval(timer);
memory.push(rssMib());
const early = Math.max(...memory.slice(0, Math.max(1, Math.ceil(memory.length / 5))));
const late = memory.at(-1) ?? 0;
if (!isFailed && late > early + growthMibMax) fail(`the server has grown from ${early} to ${late} MiB`);
if (!isFailed) {
  const seconds = (performance.now() - begun) / 1000;
  const shown = [...codes].sort(([a], [b]) => a - b).map(([code, n]) => `${code}: ${n}`);
  console.log(
    `${answered} answers in ${seconds.toFixed(0)} s (${Math.round(answered / seconds)}/s), ${shown.join(", ")}`,
  );
  console.log(`server memory: ${early} MiB early, ${late} MiB at the end (heap limit ${heapMib} MiB)`);
  for (const code of [200, 201, 400, 404, 405, 409, 415, 422]) {
    if ((codes.get(code) ?? 0) < answered / 10_000)
      fail(`hardly any answer was ${code}: the garbage was refused at the door`);
  }
}
server.kill("SIGTERM");
if (!ended) await once(server, "exit");
