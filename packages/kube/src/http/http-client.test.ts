/** The client against a server that misbehaves, over real sockets. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { DeadlineError, type RuntimeEnv, VirtualClock } from "@longshore/runtime";
import { realEnv } from "@longshore/testing/kube";
import { afterEach, expect, test } from "vitest";
import { anonymous, type Credential, type CredentialSource } from "../config/cluster-config.ts";
import {
  createHttpClient,
  type HttpClientOptions,
  type HttpKubeClient,
  isExpired,
  KubeApiError,
  KubeTransportError,
  type Node,
  resources,
  type Stored,
} from "../index.ts";

const signal = new AbortController().signal;
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

interface World {
  readonly kube: HttpKubeClient;
  readonly requests: string[];
  readonly sockets: ReadonlySet<Socket>;
}

/** A client and a server that answers with `handle`. */
async function serve(
  handle: (request: IncomingMessage, response: ServerResponse, body: string) => unknown,
  options: HttpClientOptions & { readonly env?: RuntimeEnv; readonly credentials?: CredentialSource } = {},
): Promise<World> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      requests.push(`${request.method} ${request.url}`);
      handle(request, response, body);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { env = realEnv, credentials = anonymous, ...rest } = options;
  const kube = createHttpClient(env, { server: `http://127.0.0.1:${port}/prefix/`, credentials }, rest);
  cleanups.push(async () => {
    await kube.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { kube, requests, sockets };
}

function json(response: ServerResponse, code: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(code, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

const status = (code: number, reason: string, details?: object) => ({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  code,
  reason,
  message: reason,
  details,
});
const node = (resourceVersion: string): Stored<Node> => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n", uid: "u", resourceVersion },
});

/** Waits for a condition on a value. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

test("a 404 of the object is an answer; a 404 of anything else is a failure", async () => {
  const { kube } = await serve((request, response) => {
    if (request.url?.endsWith("/nodes/gone")) json(response, 404, status(404, "NotFound", { name: "gone" }));
    else response.writeHead(404).end("404 page not found");
  });
  expect(await kube.get(resources.nodes, { name: "gone" }, { signal })).toBeUndefined();
  expect(await kube.delete(resources.nodes, { name: "gone" }, { signal })).toBe(false);
  const failure = await kube.get(resources.nodes, { name: "other" }, { signal }).catch((e: unknown) => e);
  expect(failure).toBeInstanceOf(KubeApiError);
  expect((failure as Error).message).toContain("404 page not found");
});

test("items of a list get their kind, and the address may have a path", async () => {
  const { kube, requests } = await serve((_, response) =>
    json(response, 200, {
      items: [{ metadata: { name: "n" } }],
      metadata: { resourceVersion: "5", continue: "" },
    }),
  );
  const page = await kube.list(resources.nodes, { signal, limit: 3, labelSelector: "a in (b,c)" });
  expect(page).toEqual({
    items: [{ apiVersion: "v1", kind: "Node", metadata: { name: "n" } }],
    resourceVersion: "5",
    continue: undefined,
  });
  expect(requests).toEqual(["GET /prefix/api/v1/nodes?labelSelector=a+in+%28b%2Cc%29&limit=3"]);
});

test("a server that asks to wait is asked again after that time, on the clock seam", async () => {
  const clock = new VirtualClock();
  const { kube, requests } = await serve(
    (_, response) => {
      if (requests.length < 3) json(response, 429, status(429, "TooManyRequests"), { "retry-after": "7" });
      else json(response, 200, node("1"));
    },
    { env: { ...realEnv, clock } },
  );
  const reading = kube.get(resources.nodes, { name: "n" }, { signal });
  let isDone = false;
  void reading.then(() => {
    isDone = true;
  });
  const before = clock.monotonicMs();
  while (!isDone) await clock.advance(100);
  expect((await reading)?.metadata.resourceVersion).toBe("1");
  expect(requests).toHaveLength(3);
  expect(clock.monotonicMs() - before).toBeGreaterThanOrEqual(14_000);
});

test("a write whose connection broke is not repeated, and says that its outcome is unknown", async () => {
  const { kube, requests } = await serve((request) => request.socket.destroy());
  const failure = await kube.update(resources.nodes, node("1"), { signal }).catch((e: unknown) => e);
  expect(failure).toBeInstanceOf(KubeTransportError);
  expect((failure as Error).message).toContain("the connection broke");
  expect(requests).toHaveLength(1);
  await expect(kube.get(resources.nodes, { name: "n" }, { signal })).rejects.toThrow(KubeTransportError);
  expect(requests).toHaveLength(3);
});

test("a refused connection is one sentence", async () => {
  const kube = createHttpClient(realEnv, { server: "http://127.0.0.1:1", credentials: anonymous });
  cleanups.push(() => kube.close());
  await expect(kube.list(resources.nodes, { signal })).rejects.toThrow(
    /connection refused: is the API server running/,
  );
});

test("a call that gets no answer ends at its deadline, and closes its socket", async () => {
  const clock = new VirtualClock();
  const { kube, sockets, requests } = await serve(() => {}, {
    env: { ...realEnv, clock },
    callTimeoutMs: 50,
  });
  const failure = kube.get(resources.nodes, { name: "n" }, { signal }).catch((error: unknown) => error);
  await until(() => requests.length === 1);
  await clock.advance(49);
  expect(sockets.size).toBe(1);
  await clock.advance(1);
  expect(await failure).toMatchObject({ message: expect.stringContaining("no answer within 50 ms") });
  expect(await failure).toBeInstanceOf(KubeTransportError);
  expect(requests).toHaveLength(1);
  await until(() => sockets.size === 0);
});

test("answers may come compressed, when that is asked for, and a broken one fails", async () => {
  const asked: (string | undefined)[] = [];
  const packed = gzipSync(JSON.stringify(node("5")));
  const { kube } = await serve(
    (request, response) => {
      asked.push(request.headers["accept-encoding"] as string | undefined);
      response.writeHead(200, { "content-encoding": "gzip" });
      response.end(request.url?.endsWith("/cut") ? packed.subarray(0, 20) : packed);
    },
    { compression: true },
  );
  const read = await kube.get(resources.nodes, { name: "n" }, { signal });
  expect(read?.metadata.resourceVersion).toBe("5");
  await expect(kube.get(resources.nodes, { name: "cut" }, { signal })).rejects.toThrow(KubeTransportError);
  expect(asked[0]).toBe("gzip");
  const plain = await serve((request, response) => {
    asked.push(request.headers["accept-encoding"] as string | undefined);
    json(response, 200, node("6"));
  });
  await plain.kube.get(resources.nodes, { name: "n" }, { signal });
  expect(asked.at(-1)).toBeUndefined();
});

test("an aborted call closes its socket", async () => {
  const { kube, sockets, requests } = await serve(() => {});
  const stop = new AbortController();
  const reading = kube.get(resources.nodes, { name: "n" }, { signal: stop.signal });
  await until(() => requests.length === 1);
  stop.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
  await until(() => sockets.size === 0);
});

test("the connection of a deletion with options serves the next call", async () => {
  const used: Socket[] = [];
  const { kube } = await serve((request, response) => {
    used.push(request.socket);
    json(response, 200, node("1"));
  });
  await kube.delete(resources.nodes, { name: "n" }, { uid: "uid-n", signal });
  // The connection is free with the next turn of the loop.
  await new Promise(setImmediate);
  await kube.get(resources.nodes, { name: "n" }, { signal });
  expect(used[1] === used[0]).toBe(true);
});

test("an error inside a watch that began with 200 is thrown", async () => {
  const { kube, requests } = await serve((_, response) => {
    response.writeHead(200);
    response.write(`${JSON.stringify({ type: "ADDED", object: node("8") })}\n`);
    response.end(`${JSON.stringify({ type: "ERROR", object: status(410, "Expired") })}\n`);
  });
  const types: string[] = [];
  const failure = await (async () => {
    for await (const event of kube.watch(resources.nodes, { signal, resourceVersion: "7" }))
      types.push(event.type);
  })().catch((e: unknown) => e);
  expect(types).toEqual(["ADDED"]);
  expect(isExpired(failure)).toBe(true);
  expect(requests[0]).toBe("GET /prefix/api/v1/nodes?watch=1&allowWatchBookmarks=true&resourceVersion=7");
});

test("bookmarks are reported; characters cut between packets are whole", async () => {
  const bytes = Buffer.from(
    `${JSON.stringify({ type: "MODIFIED", object: { ...node("9"), data: "größer 𝄞" } })}\n` +
      `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "12" } } })}\n`,
  );
  const { kube } = await serve(async (_, response) => {
    response.writeHead(200);
    for (const byte of bytes) {
      response.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  });
  const events = [];
  for await (const event of kube.watch(resources.nodes, { signal })) events.push(event);
  expect(events).toMatchObject([
    { type: "MODIFIED", object: { data: "größer 𝄞" } },
    { type: "BOOKMARK", resourceVersion: "12" },
  ]);
});

test.each([
  ["inside an event", (response: ServerResponse) => response.end('{"type":"ADD')],
  ["by a broken connection", (response: ServerResponse) => response.socket?.destroy()],
])("a watch that is cut off %s fails", async (_, cut) => {
  const { kube } = await serve((_request, response) => {
    response.writeHead(200);
    response.write(`${JSON.stringify({ type: "ADDED", object: node("8") })}\n`, () => cut(response));
  });
  const watching = (async () => {
    for await (const event of kube.watch(resources.nodes, { signal })) expect(event.type).toBe("ADDED");
  })();
  await expect(watching).rejects.toThrow(KubeTransportError);
});

test("leaving a watch, and aborting it, close its socket", async () => {
  const { kube, sockets } = await serve((_, response) => {
    response.writeHead(200);
    response.write(`${JSON.stringify({ type: "ADDED", object: node("8") })}\n`);
  });
  for await (const _ of kube.watch(resources.nodes, { signal })) break;
  await until(() => sockets.size === 0);
  const stop = new AbortController();
  const watching = (async () => {
    for await (const _ of kube.watch(resources.nodes, { signal: stop.signal }))
      stop.abort(new Error("enough"));
  })();
  await expect(watching).rejects.toThrow("enough");
  await until(() => sockets.size === 0);
});

test("a refused credential is renewed once", async () => {
  let token = "old";
  const credentials: CredentialSource = {
    current: async (): Promise<Credential> => ({ authorization: `Bearer ${token}` }),
    refused() {
      token = "new";
    },
  };
  const { kube, requests } = await serve(
    (request, response) => {
      if (request.headers.authorization === "Bearer new") json(response, 200, node("1"));
      else json(response, 401, status(401, "Unauthorized"));
    },
    { credentials },
  );
  expect((await kube.get(resources.nodes, { name: "n" }, { signal }))?.metadata.name).toBe("n");
  expect(requests).toHaveLength(2);
});

test("the served version is discovered once, bodies follow it, and evictions follow theirs", async () => {
  const bodies: string[] = [];
  const { kube, requests } = await serve((request, response, body) => {
    if (request.url === "/prefix/apis/policy/v1") return response.writeHead(404).end();
    if (request.url === "/prefix/apis/policy/v1beta1") {
      return json(response, 200, { resources: [{ name: "poddisruptionbudgets" }] });
    }
    if (request.url === "/prefix/api/v1") {
      return json(response, 200, {
        resources: [{ name: "pods/eviction", group: "policy", version: "v1beta1" }],
      });
    }
    bodies.push((JSON.parse(body) as { apiVersion: string }).apiVersion);
    return json(response, 201, { metadata: {} });
  });
  const budget = { apiVersion: "policy/v1", metadata: { name: "b", namespace: "d" } } as const;
  await kube.create(resources.podDisruptionBudgets, budget, { signal });
  await kube.create(resources.podDisruptionBudgets, budget, { signal });
  const ref = { name: "p", namespace: "d" };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: ref };
  await kube.createSubresource(resources.pods, ref, "eviction", eviction, { signal });
  expect(bodies).toEqual(["policy/v1beta1", "policy/v1beta1", "policy/v1beta1"]);
  expect(requests.filter((request) => request.startsWith("GET"))).toHaveLength(3);
});

test("flow control spreads what exceeds the burst", async () => {
  const clock = new VirtualClock();
  const { kube, requests } = await serve((_, response) => json(response, 200, node("1")), {
    env: { ...realEnv, clock },
    flowControl: { qps: 2, burst: 3 },
  });
  const reads = Array.from({ length: 7 }, () => kube.get(resources.nodes, { name: "n" }, { signal }));
  let done = 0;
  for (const read of reads) void read.then(() => done++);
  while (done < 3) await clock.settle();
  await clock.settle();
  expect(requests).toHaveLength(3);
  while (done < 7) await clock.advance(100);
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(2000);
  expect(clock.monotonicMs()).toBeLessThan(20_000);
});

test("a call that still waits for a connection at its deadline is never sent", async () => {
  const answers: ServerResponse[] = [];
  const clock = new VirtualClock();
  const { kube, requests } = await serve((_, response) => answers.push(response), {
    env: { ...realEnv, clock },
    callTimeoutMs: 300,
  });
  // As many as there are connections, and one more.
  const calls = Array.from({ length: 33 }, (_, i) =>
    kube.get(resources.nodes, { name: `node-${i}` }, { signal }).catch((error: unknown) => error),
  );
  await until(() => requests.length === 32);
  await clock.advance(300);
  const failures = await Promise.all(calls);
  expect(failures.map((failure) => (failure as Error).message)).toEqual(
    Array.from({ length: 33 }, () => expect.stringContaining("no answer within 300 ms")),
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(requests).toHaveLength(32);
  expect(answers).toHaveLength(32);
});

test("a deadline of the caller stays what it is", async () => {
  const { kube, requests } = await serve(() => {}, { callTimeoutMs: 60_000 });
  const given = new AbortController();
  const reason = new DeadlineError(100);
  const calls = [
    kube.get(resources.nodes, { name: "n" }, { signal: given.signal }),
    kube.watch(resources.nodes, { signal: given.signal })[Symbol.asyncIterator]().next(),
  ];
  const ends = calls.map((call) => expect(call).rejects.toBe(reason));
  await until(() => requests.length === 2);
  given.abort(reason);
  await Promise.all(ends);
});

test("managed fields are left out where they are not wanted, wherever they stand", async () => {
  const managedFields = [{ manager: "kubelet", operation: "Update", fieldsV1: { "f:a]": {} } }];
  const bodies: unknown[] = [
    { kind: "Node", metadata: { name: "a", managedFields } },
    { kind: "Node", metadata: { managedFields, name: "a" }, spec: { podCIDR: "managedFields" } },
    { kind: "NodeList", metadata: {}, items: [{ metadata: { name: "a", managedFields } }] },
  ];
  const { kube } = await serve((_, response) => json(response, 200, bodies.shift()), {
    dropManagedFields: true,
  });
  const get = () => kube.get(resources.nodes, { name: "a" }, { signal });
  expect(await get()).toEqual({ kind: "Node", metadata: { name: "a" } });
  expect(await get()).toEqual({ kind: "Node", metadata: { name: "a" }, spec: { podCIDR: "managedFields" } });
  const { items } = await kube.list(resources.nodes, { signal });
  expect(items).toEqual([{ apiVersion: "v1", kind: "Node", metadata: { name: "a" } }]);
});

test("many calls that share one signal are no leak of listeners, and none is reported", async () => {
  const waiting: ServerResponse[] = [];
  const { kube } = await serve((_request, response) => void waiting.push(response));
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", onWarning);
  try {
    const shared = new AbortController().signal;
    const calls = Array.from({ length: 12 }, () =>
      kube.get(resources.nodes, { name: "n" }, { signal: shared }),
    );
    while (waiting.length < calls.length) await new Promise(setImmediate);
    for (const response of waiting) response.writeHead(200).end('{"kind":"Node","metadata":{"name":"n"}}');
    await Promise.all(calls);
    // Warnings come with the next turn of the loop.
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", onWarning);
  }
});
