/**
 * The other clients, in a process of its own: one reads an object and one writes another, every few milliseconds, from
 * one message until the next. The answer to that says how long each of them waited, in milliseconds.
 */
import { performance } from "node:perf_hooks";
import { Connection, type Target } from "../apiserver/raw-http.ts";

/** How long the others waited. */
export interface Waits {
  readonly p50: number;
  readonly max: number;
  /** How many requests there were. */
  readonly count: number;
}

const everyMs = 4;
const path = "/api/v1/namespaces/default/configmaps/bystander";

let running = false;
let done: Promise<number[][]> = Promise.resolve([]);

async function repeat(target: Target, ask: (connection: Connection) => Promise<{ status: number }>) {
  const waits: number[] = [];
  const connection = await Connection.open(target);
  while (running) {
    const begun = performance.now();
    const { status } = await ask(connection);
    waits.push(performance.now() - begun);
    if (status >= 500) throw new Error(`a bystander was answered ${status}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  connection.close();
  return waits;
}

function begin(target: Target): void {
  running = true;
  let count = 0;
  const patch = () => Buffer.from(JSON.stringify({ data: { count: String(count++) } }));
  done = Promise.all([
    repeat(target, (connection) => connection.send("GET", path)),
    repeat(target, (connection) =>
      connection.send("PATCH", path, patch(), { type: "application/merge-patch+json" }),
    ),
  ]);
  // It is looked at when the next message comes.
  done.catch(() => {});
}

async function end(): Promise<Waits> {
  running = false;
  const all = (await done).flat().sort((a, b) => a - b);
  return { p50: all[all.length >> 1] ?? 0, max: all.at(-1) ?? 0, count: all.length };
}

process.on("message", (message: { readonly begin?: Target }) => {
  if (message.begin !== undefined) {
    begin(message.begin);
    process.send?.({});
    return;
  }
  end().then(
    (waits) => process.send?.({ waits }),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
