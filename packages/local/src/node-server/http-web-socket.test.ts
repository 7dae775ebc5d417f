/** Programs and ports over WebSockets, as current kubectl asks for them, from a node that serves on a real unix socket. */
import { once } from "node:events";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Informer, Pod, Stored } from "@longshore/kube";
import { type Component, systemClock } from "@longshore/runtime";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { ExecProcess, ExecRequest, PodRuntime } from "../containers/pod-runtime.ts";
import { podLogFile } from "../containers/read-pod-logs.ts";
import { startNodeServer } from "./http-node-server.ts";
import { InputQueue } from "./input-queue.ts";

const pod = {
  metadata: { name: "p", namespace: "default", uid: "u" },
  spec: { containers: [{ name: "c" }] },
} as Stored<Pod>;

let dir: string;
let node: Component;
let ran: ExecRequest[];
let isRunning: boolean;
const running = { kind: "running", attempt: 0, quickRestarts: 0, startedAt: "2026-01-01T00:00:00Z" } as const;
const log = () => podLogFile(dir, { namespace: "default", name: "p", uid: "u" }, "c", 0);
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "longshore-ws-"));
  ran = [];
  isRunning = true;
  const runtime: Pick<PodRuntime, "state" | "exec" | "attachInput"> = {
    async attachInput() {
      return {
        write: async (bytes) => appendFileSync(log(), bytes),
        endInput: () => {
          isRunning = false;
        },
      };
    },
    state: async () => (isRunning ? new Map([["c", running]]) : new Map()),
    async exec(request) {
      ran.push(request);
      return echo(request);
    },
  };
  const services = {
    clock: systemClock,
    pods: { get: () => pod } as unknown as Informer<Pod>,
    runtime: runtime as PodRuntime,
    logDir: dir,
    stats: () => {
      throw new Error("no test asks for figures");
    },
    onError: () => {},
  };
  node = await startNodeServer(services, join(dir, "node"));
});
afterEach(async () => {
  await node.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** Says what it is given, on both outputs, and ends with 3 when its input does, or when it is ended. */
function echo({ signal }: ExecRequest): ExecProcess {
  const [stdout, stderr] = [new InputQueue(), new InputQueue()];
  let end = (_code: number) => {};
  const exitCode = new Promise<number>((resolve) => {
    end = resolve;
  });
  void exitCode.then(() => {
    stdout.finish();
    stderr.finish();
  });
  signal.addEventListener("abort", () => end(137));
  return {
    async write(bytes) {
      await Promise.all([stdout.push(bytes), stderr.push(Buffer.from("e"))]);
    },
    endInput: () => end(3),
    resize: ({ columns, rows }) => void stdout.push(Buffer.from(`${columns}x${rows}`)),
    stdout,
    stderr,
    exitCode,
  };
}

function open(path: string, protocols: readonly string[]) {
  const client = new WebSocket(`ws+unix:${join(dir, "node")}:${path}`, protocols);
  const messages: Buffer[] = [];
  client.on("message", (message) => void messages.push(message));
  const said = (channel: number) =>
    Buffer.concat(messages.filter(([n]) => n === channel).map((m) => m.subarray(1)));
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise<void>((resolve) => client.on("message", () => resolve()));
  };
  const send = (...bytes: readonly (number | string)[]) =>
    client.send(Buffer.concat(bytes.map((b) => (typeof b === "string" ? Buffer.from(b) : Buffer.of(b)))), {
      binary: true,
    });
  const opened = new Promise<void>((resolve, reject) => client.on("open", resolve).on("error", reject));
  const closed = new Promise<void>((resolve) => client.on("close", resolve));
  return { client, messages, said, until, send, opened, closed };
}
const all = "stdin=true&stdout=true&stderr=true";

it("v5: streams are channels, the client ends its input, and the end of the program is a status", async () => {
  const client = open(`/exec/default/p/c?command=cat&command=-&${all}`, [
    "v4.channel.k8s.io",
    "v5.channel.k8s.io",
  ]);
  await client.opened;
  expect(client.client.protocol).toBe("v5.channel.k8s.io");
  client.send(0, "there");
  await client.until(() => client.said(1).length > 0 && client.said(2).length > 0);
  expect(String(client.said(1))).toBe("there");
  expect(String(client.said(2))).toBe("e");
  client.send(255, 0);
  await client.closed;
  expect(JSON.parse(String(client.said(3)))).toMatchObject({ reason: "NonZeroExitCode" });
  expect(ran[0]?.argv).toEqual(["cat", "-"]);
});

it("a program with a terminal hears how large it is, and has no stream of errors", async () => {
  const client = open("/exec/default/p/c?command=sh&stdin=true&stdout=true&stderr=true&tty=true", [
    "v5.channel.k8s.io",
  ]);
  await client.opened;
  client.send(4, '{"Width":80,"Height":24}\n');
  await client.until(() => client.said(1).length > 0);
  client.send(0, "there");
  await client.until(() => String(client.said(1)).includes("there"));
  client.send(255, 0);
  await client.closed;
  expect(String(client.said(1)).replace("there", "").replace("e", "")).toBe("80x24");
  expect(client.said(2)).toHaveLength(0);
  expect(ran[0]?.tty).toBe(true);
});

it("attach writes to the container's input, and shows what it says from then on", async () => {
  mkdirSync(dirname(log()), { recursive: true });
  writeFileSync(log(), "before\n");
  const client = open(`/attach/default/p/c?${all}`, ["v5.channel.k8s.io"]);
  await client.opened;
  client.send(0, "there\n");
  await client.until(() => client.said(1).length > 0);
  client.send(255, 0);
  await client.closed;
  expect(String(client.said(1))).toBe("there\n");
  expect(ran).toEqual([]);
});

it("v4 knows no end of input: the program ends with the connection", async () => {
  const client = open(`/exec/default/p/c?command=cat&${all}`, ["v4.channel.k8s.io"]);
  await client.opened;
  client.send(255, 0);
  client.send(0, "x");
  await client.until(() => client.said(1).length > 0);
  const ended = once(ran[0]?.signal as AbortSignal, "abort");
  client.client.terminate();
  await ended;
});

it("more than is read waits, and arrives in its order", async () => {
  const client = open(`/exec/default/p/c?command=cat&${all}`, ["v5.channel.k8s.io"]);
  await client.opened;
  const text = Array.from({ length: 64 }, (_, i) => String(i).padStart(16 * 1024, "."));
  for (const part of text) client.send(0, part);
  client.send(255, 0);
  await client.closed;
  expect(String(client.said(1))).toBe(text.join(""));
});

it.each([
  ["no known protocol", "/exec/default/p/c?command=x&stdout=true", ["v9.channel.k8s.io"], 403],
  ["the protocol of ports for a program", "/exec/default/p/c?command=x", ["portforward.k8s.io"], 403],
  ["a terminal of a container", `/attach/default/p/c?${all}&tty=true`, ["v5.channel.k8s.io"], 400],
  ["a container that is not there", "/exec/default/p/d?command=x", ["v5.channel.k8s.io"], 404],
] as const)("%s is refused before the protocol changes", async (_name, path, protocols, code) => {
  await expect(open(path, protocols).opened).rejects.toThrow(String(code));
  expect(ran).toEqual([]);
});

it("a message that is too long ends the connection, and the program", async () => {
  const client = open(`/exec/default/p/c?command=cat&${all}`, ["v5.channel.k8s.io"]);
  await client.opened;
  client.send(0, "x".repeat(1024 * 1024 + 1));
  await client.closed;
  const signal = ran[0]?.signal as AbortSignal;
  if (!signal.aborted) await once(signal, "abort");
});

it("ports are SPDY inside of a WebSocket, whose protocol has a name that no library lets pass", async () => {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-protocol": "SPDY/3.1+portforward.k8s.io",
  };
  const request = httpRequest({ socketPath: join(dir, "node"), path: "/portForward/default/p", headers });
  request.end();
  const [answer, socket] = (await once(request, "upgrade")) as [IncomingMessage, Socket];
  expect(answer.headers["sec-websocket-protocol"]).toBe("SPDY/3.1+portforward.k8s.io");
  // A ping of SPDY is answered by itself. The client's message is masked, with zeros here.
  const ping = Buffer.from("8003000600000004000000ab", "hex");
  socket.write(Buffer.concat([Buffer.of(0x82, 0x80 | ping.length, 0, 0, 0, 0), ping]));
  expect((await once(socket, "data"))[0]).toEqual(Buffer.concat([Buffer.of(0x82, ping.length), ping]));
  socket.destroy();
});
