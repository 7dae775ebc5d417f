/** Requests that a node answers: who may make them, what of them the node sees, and a node that does not answer. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { afterEach, beforeEach, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { createApiServer } from "../api-server.ts";
import { rbacGroup } from "../authorization/rbac/policy-rule.ts";
import { memoryStore } from "../storage/object-store.ts";
import { asker } from "../testing/ask.ts";
import { allowing, startWebhookServer } from "../testing/webhook-server.ts";
import { createHandler } from "./handler.ts";

const clock = new VirtualClock();
const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
const pods = "/api/v1/namespaces/default/pods/p";

let dir: string;
let node: Server;
let front: Server;
const sockets = new Set<Socket>();
/** What the node was asked. */
let seen: IncomingMessage[];
let admin: ReturnType<typeof asker>;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "longshore-proxy-"));
  seen = [];
  node = listening("node", (request) => void seen.push(request));
  node.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    seen.push(request);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    socket.pipe(socket);
  });
  const tokens = ["all", "get", "create", "delete"].map((name) => ({
    token: name,
    user: { name, uid: name, groups: [] },
  }));
  const server = createApiServer(env, { store: memoryStore(), controllers: false, tokens });
  const nodeSocket = () => join(dir, "node");
  const handler = createHandler(env, { server, certificateOf: () => undefined, nodeSocket });
  front = listening("front", (request, response) => void handler.answer(request, response));
  front.on("upgrade", handler.upgrade);
  admin = asker(server, adminUser);
  admin.ask("create", "api/v1/namespaces/default/pods", {
    metadata: { name: "p" },
    spec: { nodeName: "n", containers: [{ name: "c", image: "i" }] },
  });
  for (const name of ["all", "get", "create", "delete"]) grant(admin, name);
  await Promise.all([once(node, "listening"), once(front, "listening")]);
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  node.close();
  front.close();
  rmSync(dir, { recursive: true, force: true });
});

function listening(name: string, answer: Parameters<typeof createServer>[1]): Server {
  const server = createServer(answer);
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  return server.listen(join(dir, name));
}

/** The user of that name has the verb of that name alone on what a pod's node answers; `all` has every one. */
function grant({ ask }: ReturnType<typeof asker>, name: string): void {
  const verbs = [name === "all" ? "*" : name];
  const rules = [{ verbs, apiGroups: [""], resources: ["pods/exec", "pods/portforward", "pods/log"] }];
  const rbac = `apis/${rbacGroup}/v1`;
  ask("create", `${rbac}/clusterroles`, { metadata: { name }, rules });
  ask("create", `${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: rbacGroup, kind: "ClusterRole", name },
    subjects: [{ apiGroup: rbacGroup, kind: "User", name }],
  });
}

const webSocket = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0",
};
const spdy = {
  connection: "Upgrade",
  upgrade: "SPDY/3.1",
  "x-stream-protocol-version": "v4.channel.k8s.io",
};

/** The code of the answer; 101 with the connection. */
async function upgraded(method: string, user: string, headers: object, path = "exec") {
  const request = httpRequest({
    socketPath: join(dir, "front"),
    method,
    path: `${pods}/${path}?command=ls`,
    headers: { ...headers, authorization: `Bearer ${user}` },
  });
  request.end();
  const found = await Promise.race([once(request, "upgrade"), once(request, "response")]);
  const [{ statusCode }, socket] = found as [IncomingMessage, Socket | undefined];
  return { code: statusCode, socket };
}

it.each([
  ["POST", "all", spdy, 101],
  ["POST", "create", spdy, 101],
  ["POST", "get", spdy, 403],
  ["POST", "delete", spdy, 403],
  ["DELETE", "delete", spdy, 400],
  ["DELETE", "all", spdy, 400],
  ["GET", "get", spdy, 400],
  ["GET", "all", webSocket, 101],
  ["GET", "get", webSocket, 403],
  ["GET", "create", webSocket, 403],
  ["HEAD", "all", webSocket, 400],
  ["POST", "all", webSocket, 400],
  ["DELETE", "delete", webSocket, 400],
] as const)("%s of exec by who may %s, over %j: %i", async (method, user, headers, code) => {
  const answer = await upgraded(method, user, headers);
  expect(answer.code).toBe(code);
  expect(seen).toHaveLength(code === 101 ? 1 : 0);
});

it("webhooks are asked about a program, and may refuse it", async () => {
  const hooks = await startWebhookServer();
  try {
    const webhook = {
      name: "hook.example.com",
      clientConfig: { url: hooks.url, caBundle: hooks.caBundle },
      rules: [{ operations: ["CONNECT"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/exec"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    };
    const path = "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    admin.ask("create", path, { metadata: { name: "hook" }, webhooks: [webhook] });
    hooks.answer(({ object }) => ({ response: { allowed: object.command[0] !== "ls" } }));
    expect(await upgraded("POST", "all", spdy)).toMatchObject({ code: 400 });
    expect(seen).toHaveLength(0);
    expect(hooks.asked[0]?.request).toMatchObject({
      operation: "CONNECT",
      name: "p",
      namespace: "default",
      subResource: "exec",
      kind: { group: "", version: "v1", kind: "PodExecOptions" },
      object: { kind: "PodExecOptions", apiVersion: "v1", command: ["ls"] },
    });
    hooks.answer(allowing);
    expect(await upgraded("POST", "all", spdy)).toMatchObject({ code: 101 });
  } finally {
    await hooks.stop();
  }
});

it("a path that is no program is not upgraded", async () => {
  expect(await upgraded("GET", "all", webSocket, "log")).toMatchObject({ code: 400 });
});

it("bytes go both ways; the node sees neither the user nor a token", async () => {
  const { socket } = await upgraded("GET", "all", webSocket);
  socket?.write("there");
  const [back] = await once(socket as Socket, "data");
  expect(String(back)).toBe("there");
  expect(seen[0]).toMatchObject({ method: "GET", url: "/exec/default/p/c?command=ls" });
  expect(seen[0]?.headers).not.toHaveProperty("authorization");
  expect(seen[0]?.headers["sec-websocket-protocol"]).toBe("v5.channel.k8s.io");
});

function log(): { request: ReturnType<typeof httpRequest>; answered: Promise<IncomingMessage> } {
  const headers = { authorization: "Bearer get" };
  const request = httpRequest({ socketPath: join(dir, "front"), path: `${pods}/log?follow=true`, headers });
  const answered = once(request, "response").then(([answer]) => answer as IncomingMessage);
  request.end();
  return { request, answered };
}
const asked = async () => {
  while (seen.length === 0) await once(node, "request");
};

it("a node that does not begin to answer within 30 seconds is unavailable, for logs and for programs", async () => {
  const { answered } = log();
  await asked();
  await clock.advance(29_000);
  await clock.advance(1000);
  expect((await answered).statusCode).toBe(503);
  node.removeAllListeners("upgrade");
  node.on("upgrade", (request) => void seen.push(request));
  const program = upgraded("POST", "create", spdy);
  while (seen.length < 2) await once(node, "upgrade");
  await clock.advance(30_000);
  expect((await program).code).toBe(503);
});

it("a log that is followed has no limit, and ends with the client", async () => {
  node.removeAllListeners("request");
  const ended = new Promise((resolve) => {
    node.on("request", (_request, response) => {
      response.write("a line\n");
      response.on("close", resolve);
    });
  });
  const { request, answered } = log();
  const answer = await answered;
  expect(String((await once(answer, "data"))[0])).toBe("a line\n");
  await clock.advance(3_600_000);
  expect(answer.destroyed).toBe(false);
  request.destroy();
  await ended;
});
