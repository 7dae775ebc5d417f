/**
 * Follows the server once and prints what it cost: `bare` only reads and parses, `kept` also keeps what it parsed (so
 * that the collector of garbage has the same to do), `paged` and `streamed` are informers. `memory` only prints what an
 * object takes in an informer's cache: a call of the collector in between changes what the collector does later.
 * Arguments: mode, where the server is (JSON), objects, events. `memory` needs --expose-gc.
 */
import type { IncomingMessage } from "node:http";
import { Agent, get } from "node:https";
import { createHttpClient, type Informer, resources, startInformer } from "@longshore/kube";
import { noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";

const [mode, where = "", sizeText, eventsText] = process.argv.slice(2);
const { port, ca } = JSON.parse(where) as { port: number; ca: string };
const size = Number(sizeText);
const events = Number(eventsText);
const origin = `https://127.0.0.1:${port}`;
const path = "/api/v1/persistentvolumes";
const agent = new Agent({ keepAlive: true, ca });

const request = (url: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => get(url, { agent }, resolve).on("error", reject));

const heapUsed = () => {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

async function cost(work: () => Promise<void>): Promise<Cost> {
  const started = performance.now();
  const cpu = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs: performance.now() - started, cpuMs: (user + system) / 1000 };
}

async function text(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Reads lines and parses each, until `count` have come. */
function parseLines(response: IncomingMessage, count: number, keep: (object: Parsed) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let rest: Buffer | undefined;
    let left = count;
    response.on("error", reject);
    response.on("data", (chunk: Buffer) => {
      const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
        keep((JSON.parse(bytes.toString("utf8", start, end)) as { object: Parsed }).object);
        start = end + 1;
        if (--left === 0) resolve();
      }
      rest = start < bytes.length ? bytes.subarray(start) : undefined;
    });
  });
}

interface Parsed {
  readonly metadata: { readonly name: string };
}

async function bare(keeps: boolean): Promise<void> {
  const kept = new Map<string, Parsed>();
  const keep = keeps ? (object: Parsed) => void kept.set(object.metadata.name, object) : () => {};
  await text(await request(`${origin}/go`));
  const sync = await cost(async () => {
    let token = "";
    do {
      const page = JSON.parse(await text(await request(`${origin}${path}?limit=500&continue=${token}`))) as {
        metadata: { continue?: string };
        items: readonly Parsed[];
      };
      for (const item of page.items) keep(item);
      token = page.metadata.continue ?? "";
    } while (token !== "");
  });
  const watch = await request(`${origin}${path}?watch=1`);
  const streamed = await cost(async () => {
    await text(await request(`${origin}/go`));
    await parseLines(watch, events, keep);
  });
  print({ sync, events: streamed });
}

async function informer(initialList: "paged" | "streamed", measuresMemory = false): Promise<void> {
  const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
  const kube = createHttpClient(env, {
    server: origin,
    ca,
    credentials: { current: async () => ({}), refused() {} },
  });
  // What is loaded and connected once is no cost of following.
  await kube.list(resources.persistentVolumes, { limit: 1, signal: new AbortController().signal });
  const before = measuresMemory ? heapUsed() : 0;
  let cache: Informer<object> | undefined;
  const sync = await cost(async () => {
    cache = startInformer({ ...env, kube }, resources.persistentVolumes, { initialList }) as Informer<object>;
    await cache.synced(new AbortController().signal);
  });
  if (measuresMemory) return print({ bytesPerObject: (heapUsed() - before) / size });
  let left = events;
  let done = () => {};
  const all = new Promise<void>((resolve) => {
    done = resolve;
  });
  cache?.onChange({
    updated() {
      if (--left === 0) done();
    },
  });
  // The watch of a paged list begins a moment later.
  await new Promise((resolve) => setTimeout(resolve, 200));
  const streamed = await cost(async () => {
    await text(await request(`${origin}/go`));
    await all;
  });
  print({ sync, events: streamed });
}

function print(result: object): void {
  console.log(JSON.stringify(result));
  process.exit(0);
}

if (mode === "bare" || mode === "kept") await bare(mode === "kept");
else await informer(mode === "streamed" ? "streamed" : "paged", mode === "memory");
