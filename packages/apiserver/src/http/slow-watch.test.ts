/** Clients that open watches and do not read them: they cost a bounded piece of memory each, and are cut off in the end. */
import { connect as http2Connect } from "node:http2";
import { connect as tlsConnect } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memoryStore } from "../storage/object-store.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";

const historyLimit = 40;
const writes = 400;
const objectBytes = 100_000;

let server: TestServer;
beforeEach(async () => {
  server = await serveForTest({ store: memoryStore({ historyLimit }), controllers: false });
});
afterEach(() => server.stop());

const path = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=1";

interface SlowClient {
  /** Reads until the server ends the response. Returns its length in bytes. */
  readAll(): Promise<number>;
}

function overHttp1(): Promise<SlowClient> {
  const { port } = server.front;
  const socket = tlsConnect({
    host: "127.0.0.1",
    port,
    ca: server.authority.certificate,
    ALPNProtocols: ["http/1.1"],
  });
  socket.pause();
  socket.on("error", () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${adminToken}\r\n\r\n`);
  const readAll = () =>
    new Promise<number>((resolve) => {
      let bytes = 0;
      socket.on("data", (data) => (bytes += data.length));
      socket.on("close", () => resolve(bytes));
      socket.resume();
    });
  return new Promise((resolve) => socket.once("secureConnect", () => resolve({ readAll })));
}

async function overHttp2(): Promise<SlowClient> {
  const session = http2Connect(server.front.url, { ca: server.authority.certificate });
  session.on("error", () => {});
  const stream = session.request({ ":path": path, authorization: `Bearer ${adminToken}` });
  stream.on("error", () => {});
  stream.pause();
  const readAll = () =>
    new Promise<number>((resolve) => {
      let bytes = 0;
      stream.on("data", (data: Buffer) => (bytes += data.length));
      stream.on("close", () => {
        session.destroy();
        resolve(bytes);
      });
      stream.resume();
    });
  await new Promise((resolve) => stream.once("response", resolve));
  return { readAll };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
] as const)("a watch over %s that is not read", (_name, open) => {
  it("is ended when what it would read next is forgotten, and holds little until then", async () => {
    const { store, watches } = server.server.registry.context;
    const clients = await Promise.all([open(), open(), open()]);
    while (watches.size < 3) await turn();
    for (let i = 0; i < writes; i++) {
      const object = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "busy", namespace: "default", uid: "busy" },
        data: { text: "x".repeat(objectBytes) },
      };
      store.commit([{ resource: "configmaps", namespace: "default", name: "busy", object }]);
      await turn();
    }
    while (watches.size > 0) await turn();
    for (const client of clients) {
      // What was on its way already: the buffers of the sockets, and a piece.
      expect(await client.readAll()).toBeLessThan((writes * objectBytes) / 3);
    }
  });
});

it("a watch that is read gets every change, however many there are", async () => {
  const { store, watches } = server.server.registry.context;
  const session = http2Connect(server.front.url, { ca: server.authority.certificate });
  const stream = session.request({ ":path": path, authorization: `Bearer ${adminToken}` });
  let lines = 0;
  stream.on("data", (data: Buffer) => (lines += data.toString("latin1").split("\n").length - 1));
  while (watches.size < 1) await turn();
  for (let i = 0; i < 200; i++) {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c${i}`, namespace: "default" } };
    store.commit([{ resource: "configmaps", namespace: "default", name: `c${i}`, object }]);
    while (lines <= i) await turn();
  }
  expect(lines).toBe(200);
  session.destroy();
});
