/**
 * What a node answers to its API server: logs of containers, programs beside them, their ports, and the figures of volumes. The paths are those of a
 * kubelet. It listens on a unix socket of the cluster's directory, which only the cluster's own user may open: who is allowed
 * what, the API server has decided. Source: kubernetes pkg/kubelet/server.
 */
import { rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type Component, TaskGroup, underUmask } from "@longshore/runtime";
import { logOf } from "./container-log.ts";
import { answerUpgrade } from "./http-upgrade.ts";
import { NodeRefusal, type NodeServices, targetOf } from "./node-request.ts";

const summaryPath = "/stats/summary";
const metricsPath = "/metrics";

/** Listens on the unix socket, with mode 0600; replaces one that is left from before. */
export async function startNodeServer(services: NodeServices, socketPath: string): Promise<Component> {
  const tasks = new TaskGroup(services.onError);
  const server = createServer((request, response) => {
    tasks.spawn((signal) => answer(services, request, response, signal));
  });
  const sockets = new Set<Duplex>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => {});
    tasks.spawn((signal) => answerUpgrade(services, { request, socket, head, stopped: signal }));
  });
  await rm(socketPath, { force: true });
  await underUmask(
    0o177,
    () =>
      new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(socketPath, resolve);
      }),
  );
  return {
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await tasks.stop();
    },
  };
}

async function answer(
  services: NodeServices,
  request: IncomingMessage,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<void> {
  try {
    const { pathname } = new URL(request.url ?? "", "http://node");
    if (pathname === summaryPath) {
      const summary = JSON.stringify(services.stats());
      response.writeHead(200, { "content-type": "application/json" }).end(summary);
      return;
    }
    if (pathname === metricsPath && services.metrics !== undefined) {
      response.writeHead(200, { "content-type": "text/plain" }).end(await services.metrics());
      return;
    }
    const target = targetOf(services, request.url ?? "");
    if (target.verb !== "containerLogs")
      throw new NodeRefusal(400, "the request must be upgraded to SPDY/3.1 or WebSocket");
    const ended = new AbortController();
    response.on("close", () => ended.abort());
    const signal = AbortSignal.any([stopped, ended.signal]);
    const log = await logOf(services, target, signal);
    response.writeHead(200, { "content-type": "text/plain" });
    response.flushHeaders();
    for await (const bytes of log) {
      if (!response.write(bytes))
        await new Promise<void>((resolve) => response.once("drain", resolve).once("close", resolve));
      if (signal.aborted) return;
    }
    response.end();
  } catch (error) {
    if (response.headersSent) response.destroy();
    else refuse(response, error);
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  const code = error instanceof NodeRefusal ? error.code : 500;
  response.writeHead(code, { "content-type": "text/plain" });
  response.end(error instanceof Error ? error.message : String(error));
}
