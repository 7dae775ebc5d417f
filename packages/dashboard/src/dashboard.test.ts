import { createApiServer, memoryStore } from "@longshore/apiserver";
import { resources } from "@longshore/kube";
import {
  type Clock,
  noMeter,
  silentLogger,
  systemClock,
  systemRandom,
  VirtualClock,
} from "@longshore/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Dashboard, startDashboard } from "./dashboard.ts";
import { createDashboardServer, watchersMax } from "./http-server.ts";
import type { DashboardState } from "./state.ts";

const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
const token = "0123456789abcdef";
const signal = new AbortController().signal;

/** The server on a feed of two pictures, without the built page. */
function aServer(clock: Clock = systemClock) {
  const listeners = new Set<(json: string) => void>();
  const server = createDashboardServer({
    clock,
    token,
    feed: {
      latest: () => '"first"',
      subscribe(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      stop: async () => {},
    },
    files: new Map([["index.html", { contentType: "text/html; charset=utf-8", body: Buffer.from("page") }]]),
  });
  return { server, listeners };
}

let served: ReturnType<typeof aServer>;
let address: string;
beforeEach(async () => {
  served = aServer();
  address = await served.server.listen({ host: "127.0.0.1", port: 0 });
});
afterEach(() => served.server.close());

test.each([
  ["the token opens the page", `/${token}/`, 200],
  ["another token does not", "/0123456789abcdeg/", 403],
  ["a longer one does not", `/${token}0/`, 403],
  ["none does not", "/", 403],
  ["none does not open the stream either", "/events", 403],
  ["there is nothing beside the page's files", `/${token}/../package.json`, 403],
  ["there is nothing below them", `/${token}/%2e%2e%2fpackage.json`, 404],
] as const)("%s", async (_name, path, status) => {
  const answer = await fetch(`${address}${path}`);
  expect(answer.status).toBe(status);
  expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  expect(answer.headers.get("set-cookie")).toBeNull();
  expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  await answer.arrayBuffer();
});

test("a watcher gets the newest picture and each that follows, until it leaves", async () => {
  const leave = new AbortController();
  const answer = await fetch(`${address}/${token}/events`, { signal: leave.signal });
  expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
  const read = reader(answer);
  expect(await read()).toContain('data: "first"\n\n');
  for (const listener of served.listeners) listener('"second"');
  expect(await read()).toContain('data: "second"\n\n');
  leave.abort();
  await expect.poll(() => served.listeners.size).toBe(0);
});

test("a watcher of a quiet cluster gets a sign of life every 15 s, as an event that a page can see", async () => {
  const clock = new VirtualClock();
  const { server } = aServer(clock);
  const quiet = await server.listen({ host: "127.0.0.1", port: 0 });
  try {
    const read = reader(await fetch(`${quiet}/${token}/events`));
    expect(await read()).toContain('data: "first"\n\n');
    for (let i = 0; i < 2; i++) {
      await clock.advance(15_000);
      expect(await read()).toBe("event: alive\ndata:\n\n");
    }
  } finally {
    await server.close();
  }
});

test("so many may watch and no more", async () => {
  const streams = await Promise.all(
    Array.from({ length: watchersMax }, () => fetch(`${address}/${token}/events`)),
  );
  const refused = await fetch(`${address}/${token}/events`);
  expect(refused.status).toBe(503);
  await refused.arrayBuffer();
  await Promise.all(streams.map((answer) => answer.body?.cancel()));
});

test("closing ends every stream", async () => {
  const answer = await fetch(`${address}/${token}/events`);
  const read = reader(answer);
  await read();
  await served.server.close();
  await expect(drained(read)).resolves.toBe(true);
});

test("the whole dashboard, on a real API server", async () => {
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const dashboard: Dashboard = await startDashboard({ ...env, kube });
  try {
    expect(dashboard.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{64}\/$/);
    const page = await (await fetch(dashboard.url)).text();
    for (const [, link] of page.matchAll(/(?:href|src)="([^"]+)"/g)) {
      expect((await fetch(new URL(link ?? "", dashboard.url))).status, link).toBe(200);
    }
    const read = reader(await fetch(`${dashboard.url}events`));
    await kube.create(resources.nodes, { metadata: { name: "node-1" } }, { signal });
    await expect.poll(async () => picture(await read()).nodes.map((node) => node.name)).toEqual(["node-1"]);
    await expect(
      startDashboard({ ...env, kube }, { port: Number(new URL(dashboard.url).port) }),
    ).rejects.toThrow(/choose another `port`/);
  } finally {
    await dashboard.stop();
  }
});

function reader(answer: Response): () => Promise<string | undefined> {
  const stream = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  return async () => (await stream?.read())?.value;
}

async function drained(read: () => Promise<string | undefined>): Promise<boolean> {
  while ((await read()) !== undefined) {}
  return true;
}

function picture(text: string | undefined): Pick<DashboardState, "nodes"> {
  const data = /data: (.*)\n\n$/.exec(text ?? "")?.[1];
  return data === undefined ? { nodes: [] } : (JSON.parse(data) as DashboardState);
}
