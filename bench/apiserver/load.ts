/** The load: what is asked of a server, and the times it takes. Runs in a process of its own (`driver.ts`). */

import { performance } from "node:perf_hooks";
import { Connection, type Target } from "./raw-http.ts";
import { agent, volumeBody, volumeName } from "./volumes.ts";

/** One thing to be measured. */
export type Job =
  | { readonly do: "fill"; readonly from: number; readonly to: number; readonly connections: number }
  | { readonly do: "watch"; readonly from: number; readonly events: number; readonly writers: number }
  | { readonly do: "list"; readonly query: string; readonly rounds: number }
  | { readonly do: "get"; readonly of: number; readonly rounds: number };

/** Times in milliseconds. */
export interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
  /** Bytes of the last answer. */
  readonly bytes: number;
  /** CPU time of the driver in milliseconds. */
  readonly driverCpuMs: number;
  readonly wallMs: number;
}

const volumes = "/api/v1/persistentvolumes";

/** Does one job. @throws Error when the server's answer is not the expected one */
export async function measure(target: Target, job: Job): Promise<Measured> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  const { times, bytes } = await work(target, job);
  const wallMs = performance.now() - start;
  const used = process.cpuUsage(cpu);
  const sorted = times.sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return {
    p50: at(0.5),
    p99: at(0.99),
    perSecond: (times.length / wallMs) * 1000,
    bytes,
    driverCpuMs: (used.user + used.system) / 1000,
    wallMs,
  };
}

interface Times {
  readonly times: number[];
  readonly bytes: number;
}

function work(target: Target, job: Job): Promise<Times> {
  switch (job.do) {
    case "fill":
      return fill(target, job.from, job.to, job.connections);
    case "watch":
      return watch(target, job.from, job.events, job.writers);
    case "list":
      return repeat(target, `${volumes}${job.query}`, job.rounds, () => 0);
    case "get":
      return repeat(target, "", job.rounds, (i) => (i * 7919) % job.of);
  }
}

async function fill(target: Target, from: number, to: number, connections: number): Promise<Times> {
  const times: number[] = [];
  let next = from;
  let bytes = 0;
  const writer = async () => {
    const connection = await Connection.open(target);
    while (next < to) {
      const body = volumeBody(next++);
      const start = performance.now();
      const answer = await connection.send("POST", volumes, body, { agent });
      times.push(performance.now() - start);
      if (answer.status !== 201) throw new Error(`a create was answered ${answer.status}: ${answer.body}`);
      bytes = answer.bytes;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, writer));
  return { times, bytes };
}

async function repeat(
  target: Target,
  path: string,
  rounds: number,
  index: (round: number) => number,
): Promise<Times> {
  const connection = await Connection.open(target);
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i < rounds + 1; i++) {
    const of = path === "" ? `${volumes}/${volumeName(index(i))}` : path;
    const start = performance.now();
    const answer = await connection.send("GET", of);
    if (answer.status !== 200) throw new Error(`GET ${of} was answered ${answer.status}: ${answer.body}`);
    // The first opens caches, of ours and of theirs.
    if (i > 0) times.push(performance.now() - start);
    bytes = answer.bytes;
  }
  connection.close();
  return { times, bytes };
}

/** From the moment a write is sent until a watch has its event. */
async function watch(target: Target, from: number, events: number, writers: number): Promise<Times> {
  const sent = new Map<string, number>();
  const times: number[] = [];
  const watching = await Connection.open(target);
  const reader = await Connection.open(target);
  const { body } = await reader.send("GET", `${volumes}?limit=1`, undefined, { keep: true });
  reader.close();
  const version = /"resourceVersion":"(\d+)"/.exec(body)?.[1];
  let line = "";
  let arrived: () => void = () => {};
  const all = new Promise<void>((resolve) => {
    arrived = () => {
      if (times.length >= events) resolve();
    };
  });
  let seen: () => void = () => {};
  watching.onData = (data) => {
    const now = performance.now();
    line += data.toString("latin1");
    for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
      const name = /"name":"(pvc-[0-9a-f-]+)"/.exec(line.slice(0, end))?.[1];
      line = line.slice(end + 1);
      const at = name === undefined ? undefined : sent.get(name);
      if (at !== undefined) times.push(now - at);
      seen();
    }
    arrived();
  };
  watching.send("GET", `${volumes}?watch=true&resourceVersion=${version}`).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 300));
  let next = from;
  const writer = async () => {
    const connection = await Connection.open(target);
    while (next < from + events) {
      const index = next++;
      const body = volumeBody(index);
      const event = new Promise<void>((resolve) => {
        seen = resolve;
      });
      sent.set(volumeName(index), performance.now());
      const answer = await connection.send("POST", volumes, body, { agent });
      if (answer.status !== 201) throw new Error(`a create was answered ${answer.status}: ${answer.body}`);
      // Quiet means that nothing else is under way.
      if (writers === 1) {
        await event;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: writers }, writer));
  await all;
  watching.close();
  await remove(target, from, from + events);
  return { times, bytes: 0 };
}

/** Takes away what a watch has seen come, so that every server holds as much as before. */
async function remove(target: Target, from: number, to: number): Promise<void> {
  let next = from;
  const remover = async () => {
    const connection = await Connection.open(target);
    while (next < to) {
      const path = `${volumes}/${volumeName(next++)}`;
      await connection.send("DELETE", path);
      const body = Buffer.from('{"metadata":{"finalizers":null}}');
      await connection.send("PATCH", path, body, { type: "application/merge-patch+json" });
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: 16 }, remover));
}
