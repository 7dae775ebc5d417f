/** Wherever a write waits on its way to the server, it is not sent once the lease has lapsed: though no signal says so yet. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type RuntimeEnv, VirtualClock } from "@longshore/runtime";
import { realEnv } from "@longshore/testing/kube";
import { afterEach, expect, test } from "vitest";
import { anonymous, type CredentialSource } from "../config/cluster-config.ts";
import { createHttpClient, type HttpClientOptions } from "../http/http-client.ts";
import { resources } from "../resources.ts";
import { fencedClient } from "./fenced-client.ts";
import { LeadershipLostError } from "./leadership-lost-error.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const { signal } = new AbortController();
const map = (name: string) => ({ metadata: { name, namespace: "default" } });

/** A fenced client, a server that records its requests, and a way to end the lease without aborting a signal. */
async function world(
  options: HttpClientOptions & { readonly credentials?: CredentialSource; readonly env?: RuntimeEnv } = {},
) {
  const asked: { readonly body: string; readonly response: ServerResponse }[] = [];
  let onRequest = () => {};
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      asked.push({ body, response });
      onRequest();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { credentials = anonymous, env = realEnv, ...rest } = options;
  const http = createHttpClient(env, { server: `http://127.0.0.1:${port}`, credentials }, rest);
  cleanups.push(
    () => new Promise((resolve) => server.close(resolve)),
    async () => server.closeAllConnections(),
    () => http.close(),
  );
  let endsMs = Number.POSITIVE_INFINITY;
  const kube = fencedClient(http, env.clock, { lease: "test", endsMs: () => endsMs, signal });
  return {
    http,
    kube,
    asked,
    lapse: () => {
      endsMs = 0;
    },
    async untilAsked(count: number): Promise<void> {
      while (asked.length < count) {
        await new Promise<void>((resolve) => {
          onRequest = resolve;
        });
      }
    },
  };
}

const answer = (response: ServerResponse, code: number, headers: Record<string, string> = {}) => {
  response.writeHead(code, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(code < 300 ? map("answer") : { kind: "Status", code }));
};

test("a write within the term is sent", async () => {
  const { kube, asked, untilAsked } = await world();
  const write = kube.create(resources.configMaps, map("a"), { signal });
  await untilAsked(1);
  answer(asked[0]?.response as ServerResponse, 201);
  expect((await write).metadata.name).toBe("answer");
});

test("one that waited for a credential is not", async () => {
  let give: (credential: object) => void = () => {};
  let isAsked: () => void = () => {};
  const waiting = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const credentials: CredentialSource = {
    current: () => {
      isAsked();
      return new Promise((resolve) => {
        give = resolve;
      });
    },
    refused() {},
  };
  const { kube, asked, lapse } = await world({ credentials });
  const write = kube.create(resources.configMaps, map("a"), { signal });
  await waiting;
  lapse();
  give({});
  await expect(write).rejects.toThrow(LeadershipLostError);
  expect(asked).toEqual([]);
});

test("one that waited for its turn is not", async () => {
  const clock = new VirtualClock();
  const env = { ...realEnv, clock };
  const { kube, http, asked, lapse, untilAsked } = await world({ env, flowControl: { qps: 20, burst: 1 } });
  const first = http.create(resources.configMaps, map("first"), { signal });
  const write = kube.create(resources.configMaps, map("a"), { signal });
  await untilAsked(1);
  lapse();
  answer(asked[0]?.response as ServerResponse, 201);
  await first;
  const refused = expect(write).rejects.toThrow(LeadershipLostError);
  await clock.advance(50);
  await refused;
  expect(asked).toHaveLength(1);
});

test("one that waited for a free connection is not", async () => {
  const { kube, http, asked, lapse, untilAsked } = await world();
  const connections = 32;
  const before = Array.from({ length: connections }, (_, i) =>
    http.create(resources.configMaps, map(`before-${i}`), { signal }),
  );
  await untilAsked(connections);
  const write = kube.create(resources.configMaps, map("late"), { signal });
  // Others come after it, so that it is seen that its turn has come and gone.
  const after = http.create(resources.configMaps, map("after"), { signal });
  lapse();
  for (const { response } of asked.slice()) answer(response, 201);
  await expect(write).rejects.toThrow(LeadershipLostError);
  await untilAsked(connections + 1);
  answer(asked[connections]?.response as ServerResponse, 201);
  await Promise.all([...before, after]);
  expect(asked.filter(({ body }) => body.includes("late"))).toEqual([]);
});

test("one that the server asked to come again is not sent again", async () => {
  const { kube, asked, lapse, untilAsked } = await world();
  const write = kube.create(resources.configMaps, map("a"), { signal });
  await untilAsked(1);
  lapse();
  answer(asked[0]?.response as ServerResponse, 429, { "retry-after": "0" });
  await expect(write).rejects.toThrow(LeadershipLostError);
  expect(asked).toHaveLength(1);
});
